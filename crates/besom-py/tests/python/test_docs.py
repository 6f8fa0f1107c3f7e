"""Catches: examples in docstrings and documents that do not run, stubs that lack what the package has, a command that fails."""

import ast
import doctest
import importlib.util
import inspect
import os
import pathlib
import re
import subprocess
import sys

import numpy
import pytest

import besom

ROOT = pathlib.Path(__file__).parents[4]


def documented():
    for name in besom.__all__:
        thing = getattr(besom, name)
        yield name, thing
        if inspect.isclass(thing) and not issubclass(thing, Exception):
            for part in dir(thing):
                if not part.startswith("_"):
                    yield f"{name}.{part}", getattr(thing, part)


EXAMPLES = {name: thing.__doc__ for name, thing in documented() if ">>>" in (getattr(thing, "__doc__", None) or "")}


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_docstrings(name):
    names = {**vars(besom), "numpy": numpy}
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], names, name, None, 0)
    results = doctest.DocTestRunner().run(test)
    assert test.examples and results.failed == 0


def test_everything_public_is_documented():
    lacking = [name for name, thing in documented() if not getattr(thing, "__doc__", None) and name != "__version__"]
    assert not lacking and len(EXAMPLES) >= 12


@pytest.mark.parametrize("path", ["README.md", "crates/besom-py/README.md", "docs/python.md"])
def test_documents(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / path).read_text(), re.S)
    assert blocks
    names = {}
    for block in blocks:
        exec(compile(block, path, "exec"), names)


def test_stubs_have_what_the_package_has():
    folder = pathlib.Path(besom.__file__).parent
    assert (folder / "py.typed").exists()
    stubs = {}
    for node in ast.parse((folder / "__init__.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef):
            stubs[node.name] = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            stubs[node.name] = set()
    mixin = {"get", "items", "keys", "values", "pop", "popitem", "setdefault", "update", "clear"}
    for name, thing in documented():
        class_name, _, part = name.partition(".")
        known = set().union(*(stubs.get(base.__name__, set()) for base in getattr(besom, class_name).__mro__)) if part else stubs
        assert (part or class_name) in known or part in mixin or name == "__version__", name


def test_mypy_accepts_the_examples():
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    examples = [ROOT / "crates/besom-py/examples/repeated_stream.py"]
    if importlib.util.find_spec("psycopg") is not None:
        examples.append(ROOT / "crates/besom-py/examples/postgres.py")
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, *map(str, examples)], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_command(tmp_path):
    (tmp_path / "keys").write_text("a\nb\n")
    (tmp_path / "queries").write_text("a\nc\n" * 50)

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "besom", *arguments], capture_output=True, text=True, cwd=tmp_path)

    assert "2 of" in run("build", "keys", "filter", "--rate", "1e-5").stdout
    assert run("query", "filter", "queries").stdout == "a\n" * 50
    assert "kind: bins" in run("inspect", "filter").stdout == run("check", "filter").stdout
    assert "extension" in run("compare", "keys", "queries").stdout
    missing = run("inspect", "nowhere")
    assert missing.returncode == 1 and missing.stderr.startswith("besom: ") and "Traceback" not in missing.stderr


def test_comparison():
    comparison = besom.compare(range(1000), [str(n % 2000) for n in range(20_000)], rate=1 / 16, seed=1)
    useless = {row["filter"]: row["useless"] for row in comparison.rows}
    assert 0 < useless["extension"] < useless["bloom"] / 3
    assert "extension" in repr(comparison) and "<table>" in comparison._repr_html_()
    assert len(comparison.table()) == 4
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("svg")
    assert comparison.plot().get_xlabel() == "queries for missing keys"


def test_a_guard_over_postgres():
    example = ROOT / "crates/besom-py/examples/postgres.py"
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True)
    if "!! NOT SHOWN" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0 and "filter and table agree" in done.stdout, done.stdout + done.stderr

"""Catches: files that Rust and Python read differently, damage that panics, processes that do not share a map."""

import multiprocessing
import os
import pathlib
import pickle
import random
import signal
import threading

import numpy
import pytest

import besom

ROOT = pathlib.Path(__file__).parents[4]


def test_save_open_change_and_save_again(tmp_path):
    path = tmp_path / "filter.besom"
    filter = besom.Filter(1000, seed=5)
    filter.update(range(500))
    filter.save(path, generation=3)
    header = besom.inspect(path)
    assert (header["kind"], header["len"], header["generation"], header["has_seed"]) == ("bins", 500, 3, True)
    assert besom.check(path) == header
    opened = besom.open(path)
    assert opened.contains_many(list(range(500))).all() and opened._mapped_file() is not None
    opened.insert("more")  # a copy from here on
    assert opened._mapped_file() is None and "more" not in besom.open(str(path))
    opened.save(path)
    assert "more" in besom.open(path)
    filter.save(path, include_seed=False)
    with pytest.raises(besom.FormatError, match="seed="):
        besom.open(path)
    assert 499 in besom.open(path, seed=5)
    with pytest.raises(besom.FormatError, match="seed"):
        besom.open(path, seed=6)


def test_files_that_are_none(tmp_path):
    for read in (besom.open, besom.inspect, besom.check):
        with pytest.raises(FileNotFoundError) as error:
            read(tmp_path / "nowhere")
        assert error.value.filename == str(tmp_path / "nowhere") and error.value.errno == 2
    with pytest.raises(OSError):
        besom.open(tmp_path)
    with pytest.raises(OSError):
        besom.Filter(10).save(tmp_path / "no" / "where")
    for content in (b"", b"x", b"x" * 1000):
        (tmp_path / "file").write_bytes(content)
        for read in (besom.open, besom.inspect, besom.check, lambda path: besom.open(path, check=False)):
            with pytest.raises(besom.Error):
                read(tmp_path / "file")
        with pytest.raises(besom.FormatError):
            besom.Filter.from_bytes(content)


@pytest.mark.parametrize("kind", sorted(set(besom.kinds())))
def test_damage_is_found_or_does_no_harm(kind, tmp_path):
    filter = besom.build(kind, capacity=200, seed=1)
    filter.update(range(200))
    whole, path, dice = filter.to_bytes(), tmp_path / "file", random.Random(kind)
    for _ in range(20):
        damaged = bytearray(whole)
        for _ in range(dice.randrange(1, 4)):
            damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
        path.write_bytes(damaged)
        if bytes(damaged) != whole:
            with pytest.raises(besom.Error):
                besom.open(path)
        try:
            opened = besom.open(path, check=False)
            opened.contains_many(range(400))
            opened.insert("key")
        except besom.Error:
            pass  # and nothing else: no PanicException
    with pytest.raises(besom.Error):
        path.write_bytes(whole[: len(whole) // 2])
        besom.open(path)


def test_rust_reads_what_python_writes():
    # tests/python.rs reads the same file, and builds the same filter.
    filter = besom.build("telescoping", capacity=300, rate=1 / 256, seed=0xBE50, hash="siphash")
    filter.update(range(-50, 50))
    filter.update([f"ключ {number}" for number in range(50)])
    filter.update([(f"user {number}", number) for number in range(50)])
    filter.update([bytes([number]) for number in range(50)])
    fixture = ROOT / "tests/fixtures/python/telescoping.besom"
    assert filter.to_bytes() == fixture.read_bytes()


def asked(filter):
    return os.getpid(), filter._mapped_file() is not None, bool(filter.contains_many(list(range(500))).all())


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_share_one_map(method, tmp_path):
    path = tmp_path / "filter.besom"
    filter = besom.Filter(1000)
    filter.update(range(500))
    filter.save(path)
    opened = besom.open(path)
    assert pickle.loads(pickle.dumps(opened))._mapped_file() is None  # an ordinary pickle has the bytes
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert all(mapped and right for _, mapped, right in pool.map(asked, [opened] * 4))
        opened.insert("changed")
        assert all(right and not mapped for _, mapped, right in pool.map(asked, [opened]))
    stale = besom.open(path)
    from multiprocessing.reduction import ForkingPickler

    sent = ForkingPickler.dumps(stale)
    filter.insert("replaced")
    for other in (filter, besom.Filter(10)):  # of the same seed, and of another one
        other.save(path)
        with pytest.raises(OSError, match="another file"):
            pickle.loads(sent)


def test_names_of_files_are_those_that_python_takes(tmp_path):
    filter, name = besom.Filter(10), os.fsencode(tmp_path / "filter")
    filter.save(name)
    assert besom.inspect(name)["kind"] == besom.open(name).kind == "bins"
    with besom.Store.open(name + b".redb") as store:
        store["a"] = b"b"
        store.backup(name + b".copy")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_was_forked_while_a_thread_used_a_filter_does_not_hang():
    filter, is_over = besom.Filter(200_000), threading.Event()

    def work():
        while not is_over.is_set():
            filter.update(numpy.arange(100_000))
            filter.clear()

    thread = threading.Thread(target=work)
    thread.start()
    outcomes = set()
    try:
        for _ in range(40):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                try:
                    filter.insert("a"), "a" in filter
                    os._exit(0)
                except RuntimeError as error:
                    os._exit(1 if "fork" in str(error) else 2)
                finally:
                    os._exit(3)
            outcomes.add(os.waitpid(child, 0)[1])
    finally:
        is_over.set()
        thread.join()
    assert outcomes <= {0, 1 << 8}, outcomes
    filter.verify()


@pytest.mark.parametrize("path", sorted(ROOT.glob("tests/fixtures/v2/*.besom")), ids=lambda path: path.stem)
def test_python_reads_what_rust_writes(path):
    if path.stem.startswith("sharded"):
        with pytest.raises(besom.FormatError, match="sharded"):
            besom.open(path)
        return
    opened, read = besom.open(path), besom.Filter.from_bytes(path.read_bytes())
    for filter in (opened, read):
        filter.verify()
        assert filter.to_bytes(generation=0x01020304) == path.read_bytes()
        assert len(filter) == besom.inspect(path)["len"] > 0
        assert filter.hash == ("siphash" if path.stem.endswith("siphash") else "xxh3")
    if path.stem.startswith("blocked-bloom"):
        assert opened.contains_many(range(100)).all()

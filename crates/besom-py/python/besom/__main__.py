"""The command ``besom``: build, query, inspect and check filter files, compare filters.

    besom build keys.txt filter.besom --kind bins --rate 1/1000
    besom query filter.besom queries.txt
    besom inspect filter.besom
    besom check filter.besom
    besom compare keys.txt queries.txt

Files of keys have one key a line. ``cargo install besom-cli`` has more.
"""

import argparse
import sys

import besom


def lines(path):
    """The keys of a file, as bytes, without the ends of their lines; "-" is the standard input."""
    if path == "-":
        return [line.rstrip(b"\r\n") for line in sys.stdin.buffer]
    import builtins

    with builtins.open(path, "rb") as file:
        return [line.rstrip(b"\r\n") for line in file]


def build(arguments):
    keys = set(lines(arguments.keys))
    filter = besom.build(arguments.kind, capacity=max(1, len(keys)), rate=arguments.rate)
    filter.update(keys)
    filter.save(arguments.filter)
    print(filter)


def query(arguments):
    keys = lines(arguments.queries)
    for key, found in zip(keys, besom.open(arguments.filter).contains_many(keys), strict=True):
        if found:
            sys.stdout.buffer.write(key + b"\n")


def show(read):
    def show(arguments):
        for name, value in read(arguments.filter).items():
            print(f"{name}: {value}")

    return show


def compare(arguments):
    print(besom.compare(lines(arguments.keys), lines(arguments.queries)))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="besom", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"besom {besom.__version__}")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    for name, run, *names in (
        ("build", build, "keys", "filter"),
        ("query", query, "filter", "queries"),
        ("inspect", show(besom.inspect), "filter"),
        ("check", show(besom.check), "filter"),
        ("compare", compare, "keys", "queries"),
    ):
        verb = verbs.add_parser(name)
        verb.set_defaults(run=run)
        for argument in names:
            verb.add_argument(argument)
        if name == "build":
            verb.add_argument("--kind", default="bins")
            verb.add_argument("--rate", default="1/256")
    arguments = parser.parse_args(arguments)
    try:
        arguments.run(arguments)
    except (besom.Error, OSError) as error:
        sys.exit(f"besom: {error}")


if __name__ == "__main__":
    main()

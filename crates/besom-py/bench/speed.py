"""Speed of besom beside the Bloom filters that people use in Python, in one run.

Ratios are medians of interleaved rounds: every round measures all packages one after the other, so that what else the machine
does hits all of them alike. Packages that are not installed are left out.

    python bench/speed.py [--keys 1000000] [--rounds 7]
"""

import argparse
import hashlib
import statistics
import subprocess
import sys
import time

import numpy

import besom

RATE = 0.01


def stable_hash(key):
    """What the README of rbloom recommends for filters that are saved."""
    digest = hashlib.sha256(str(key).encode()).digest()
    return int.from_bytes(digest[:16], "big", signed=True)


def rivals(count):
    """Constructors of empty filters by name, and how a list of keys goes into each."""
    made = {"besom": lambda: besom.Filter(count, RATE)}
    try:
        import rbloom

        made["rbloom"] = lambda: rbloom.Bloom(count, RATE)
        made["rbloom, stable hash"] = lambda: rbloom.Bloom(count, RATE, stable_hash)
    except ImportError:
        print("rbloom is not installed", file=sys.stderr)
    try:
        import probables

        made["pyprobables"] = lambda: probables.BloomFilter(est_elements=count, false_positive_rate=RATE)
    except ImportError:
        print("pyprobables is not installed", file=sys.stderr)
    try:
        import pybloomfilter

        made["pybloomfiltermmap3"] = lambda: pybloomfilter.BloomFilter(count, RATE)
    except ImportError:
        print("pybloomfiltermmap3 is not installed", file=sys.stderr)
    return made


# Slow packages get fewer keys; what is compared is the time of a key.
SHARE = {"pyprobables": 50, "rbloom, stable hash": 10}


def insert_all(name, filter, keys):
    if name == "pyprobables":
        for key in keys:
            filter.add(str(key))
    else:
        filter.update(keys)


def ask_one_by_one(name, filter, keys):
    if name == "pyprobables":
        for key in keys:
            filter.check(str(key))
    else:
        for key in keys:
            key in filter  # noqa: B015


def fresh(keys):
    """The same strings as new objects: Python keeps the hash of a str that was hashed once, and what programs read is new."""
    return [key[:1] + key[1:] for key in keys]


def timed(work, *arguments):
    start = time.perf_counter()
    work(*arguments)
    return time.perf_counter() - start


def measure(count, rounds):
    """Nanoseconds for a key: {(operation, package): [one for every round]}."""
    made = rivals(count)
    strings = [f"user/{number}" for number in range(count)]
    numbers = [int(number) for number in numpy.random.default_rng(1).integers(0, 2**62, count)]
    strangers = [f"nobody/{number}" for number in range(count)]
    array = numpy.array(numbers)
    figures = {}

    def note(operation, name, seconds, keys):
        figures.setdefault((operation, name), []).append(1e9 * seconds / keys)

    for _ in range(rounds):
        for name, make in made.items():
            part = count // SHARE.get(name, 1)
            filter = make()
            note("update, str", name, timed(insert_all, name, filter, fresh(strings[:part])), part)
            asked = fresh(strings[:part])
            note("in, str", name, timed(ask_one_by_one, name, filter, asked), part)
            note("in, str that was hashed before", name, timed(ask_one_by_one, name, filter, asked), part)
            note("in, absent str", name, timed(ask_one_by_one, name, filter, fresh(strangers[:part])), part)
            filter = make()
            note("update, int", name, timed(insert_all, name, filter, numbers[:part]), part)
            note("in, int", name, timed(ask_one_by_one, name, filter, numbers[:part]), part)
            if name == "besom":
                note("contains_many, NumPy int", name, timed(filter.contains_many, array), count)
                note("contains_many, list of str", name, timed(filter.contains_many, strings), count)
                filter = make()
                note("update, NumPy int", name, timed(filter.update, array), count)
    return figures


def time_to_import(module):
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True) for _ in range(7)]
    times = [float(run.stdout) for run in runs if run.returncode == 0]
    return 1e3 * statistics.median(times) if times else None


def report(figures, count, rounds):
    median = {key: statistics.median(values) for key, values in figures.items()}
    print(f"{count:,} keys, rate {RATE}, medians of {rounds} interleaved rounds, Python {sys.version.split()[0]}\n")
    print("| operation | package | ns per key | besom is faster by |")
    print("|---|---|---:|---:|")
    for (operation, name), value in sorted(median.items()):
        ours = median.get((operation, "besom"))
        ratio = f"{value / ours:.2f}" if ours and name != "besom" else ""
        print(f"| {operation} | {name} | {value:.1f} | {ratio} |")
    many, loop = median[("contains_many, NumPy int", "besom")], median.get(("in, int", "rbloom"))
    if loop:
        print(f"\ncontains_many on NumPy integers: {loop / many:.1f} times rbloom in a loop")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    report(measure(arguments.keys, arguments.rounds), arguments.keys, arguments.rounds)
    for module in ("besom", "rbloom", "probables", "pybloomfilter"):
        took = time_to_import(module)
        if took is not None:
            print(f"import {module}: {took:.1f} ms")


if __name__ == "__main__":
    main()

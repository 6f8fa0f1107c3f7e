"""Memory of processes that share one mapped filter: what each takes besides the map.

    python bench/shared_map.py [--keys 10000000] [--processes 8]
"""

import argparse
import multiprocessing
import os
import tempfile

import numpy

import besom


def private():
    """The memory of this process that no other has, in bytes."""
    with open("/proc/self/smaps_rollup") as file:
        parts = [line.split() for line in file]
    return 1024 * sum(int(part[1]) for part in parts if part[0].startswith("Private_"))


def work(path, keys, barrier, results):
    besom.Filter(10).contains_many(numpy.arange(1000))  # what a process has that uses besom at all
    barrier.wait()
    before = private()
    filter = besom.open(path)
    for start in range(0, keys, 10_000):
        assert filter.contains_many(numpy.arange(start, start + 10_000)).all()
    barrier.wait()
    results.put(private() - before)
    barrier.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000)
    parser.add_argument("--processes", type=int, default=8)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "filter.besom")
        filter = besom.Filter(arguments.keys, 1 / 256)
        filter.update(numpy.arange(arguments.keys))
        filter.save(path)
        del filter
        context = multiprocessing.get_context("spawn")
        barrier, results = context.Barrier(arguments.processes), context.Queue()
        common = (path, arguments.keys, barrier, results)
        processes = [context.Process(target=work, args=common) for _ in range(arguments.processes)]
        [process.start() for process in processes]
        grown = [results.get(timeout=300) for _ in processes]
        [process.join(60) for process in processes]
        size = os.path.getsize(path)
        print(f"{arguments.processes} processes, {arguments.keys:,} keys, a file of {size / 1e6:.1f} MB")
        print(f"besides the map, the largest process took {max(grown) / 1e3:.0f} kB: {100 * max(grown) / size:.2f}% of the file")


if __name__ == "__main__":
    main()

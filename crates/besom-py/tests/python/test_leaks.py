"""Catches: memory that operations do not give back. BESOM_FULL makes a million operations of each kind; the short version still finds a leak of
some bytes an operation."""

import gc
import os
import pickle

import pytest

import besom

ROUNDS = 1_000_000 if os.environ.get("BESOM_FULL") else 100_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def operations():
    filter = besom.AdaptiveFilter(1000, 1 / 16, seed=1)
    filter.update(range(500))
    guard = besom.Guard({str(number): number for number in range(100)}, rate=1 / 16, seed=1)

    def refused(number):
        try:
            filter.insert(1.5)
        except TypeError:
            pass

    yield "contains", 1, lambda number: f"stranger {number}" in filter
    yield "insert and remove", 4, lambda number: (filter.insert(f"key {number}"), filter.remove(f"key {number}"))
    yield "tuple", 1, lambda number: (number, "a") in filter
    yield "refused", 4, refused
    yield "contains_many", 100, lambda number: filter.contains_many([number] * 10)
    yield "build", 100, lambda number: besom.Filter(100)
    yield "pickle", 500, lambda number: pickle.loads(pickle.dumps(filter))
    yield "guard", 8, lambda number: (guard.insert(str(number), number), guard.get("nobody"), guard.remove(str(number)))


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="memory is measured on Linux")
@pytest.mark.parametrize("name, cost, operation", operations(), ids=lambda value: value if isinstance(value, str) else "")
def test_nothing_is_left_behind(name, cost, operation):
    rounds = max(200, ROUNDS // cost)
    for number in range(rounds // 4):  # to fill what is kept on purpose
        operation(number)
    gc.collect()
    before = resident()
    for number in range(rounds):
        operation(number)
    gc.collect()
    grown = resident() - before
    print(f"{name}: {grown} bytes after {rounds} rounds")
    assert grown < max(512 * 1024, 4 * rounds)

"""False positives vanish: a stream of queries for missing keys that repeat, before filters that learn and filters that do not.

    python examples/repeated_stream.py [PICTURE]
"""

import random
import sys

import besom


def stream(count: int, distinct: int, seed: int) -> list[str]:
    """Queries for missing names, of which some are far more popular than others (Zipf 1.0)."""
    dice = random.Random(seed)
    weights = [1 / rank for rank in range(1, distinct + 1)]
    return [f"misspelt {number}" for number in dice.choices(range(distinct), weights, k=count)]


def by_hand(names: list[str], queries: list[str]) -> int:
    """What a program does that owns its storage: ask, look up, and tell the filter of its mistakes."""
    stored = set(names)
    filter = besom.AdaptiveFilter(capacity=len(names), rate=1 / 256, seed=1)
    filter.update(names)
    useless = 0
    for name in queries:
        if name in filter and name not in stored:
            useless += 1
            filter.adapt(name)
    return useless


def guarded(names: list[str], queries: list[str]) -> int:
    """The same with a guard, which does all of that by itself."""
    packages: besom.Guard[int] = besom.Guard({name: len(name) for name in names}, rate=1 / 256, seed=1)
    for name in queries:
        packages.get(name)
    return packages.stats()["false_positives"]


def main() -> None:
    names = [f"package {number}" for number in range(20_000)]
    queries = stream(200_000, 20_000, seed=2)
    comparison = besom.compare(names, queries, seed=1)
    print(comparison)
    print("by hand:", by_hand(names, queries), " guarded:", guarded(names, queries))
    if len(sys.argv) > 1:
        axes = comparison.plot()
        axes.set_title("20,000 keys; 200,000 queries for 20,000 others (Zipf 1.0); rate 1/256", fontsize="medium")
        axes.figure.savefig(sys.argv[1], bbox_inches="tight")


if __name__ == "__main__":
    main()

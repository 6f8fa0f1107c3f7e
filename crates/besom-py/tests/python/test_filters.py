"""Catches: a key that a filter loses, after any sequence of operations, copies and pickles; a failure that changes something."""

import copy
import gc
import pickle
import weakref

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import besom

KINDS = sorted(set(besom.kinds()))
keys = st.integers(0, 60) | st.text("ab", max_size=2) | st.tuples(st.integers(0, 2), st.text("a", max_size=1))


class Model(RuleBasedStateMachine):
    """An adaptive filter so small and so coarse that everything collides, beside the set of its keys."""

    kind, hash = "extension", "xxh3"

    def __init__(self):
        super().__init__()
        self.filter = besom.AdaptiveFilter(40, 0.25, kind=self.kind, hash=self.hash, seed=5)
        self.stored = {}

    @rule(key=keys)
    def insert(self, key):
        known = besom.key_bytes(key) in self.stored
        try:
            assert self.filter.insert(key) is not known
            self.stored[besom.key_bytes(key)] = key
        except besom.FullError as error:
            assert not known and "build a larger one" in str(error)

    @rule(many=st.lists(keys, max_size=10))
    def update(self, many):
        for key in many:  # as many as there is room for
            try:
                self.filter.update([key])
                self.stored[besom.key_bytes(key)] = key
            except besom.FullError:
                pass

    @rule(key=keys)
    def remove(self, key):
        assert self.filter.remove(key) is (self.stored.pop(besom.key_bytes(key), None) is not None)

    @rule(key=keys)
    def adapt(self, key):
        accepted = key in self.filter
        stored = besom.key_bytes(key) in self.stored
        if self.filter.adapt(key):
            assert accepted and not stored and key not in self.filter

    @rule()
    def go_through_a_pickle(self):
        self.filter = pickle.loads(pickle.dumps(self.filter))

    @rule()
    def copy(self):
        other = copy.deepcopy(self.filter)
        other.clear()
        self.filter = copy.copy(self.filter)

    @rule()
    def go_through_bytes(self):
        read = besom.Filter.from_bytes(self.filter.to_bytes())
        if read and self.stored:
            with pytest.raises(besom.RemoteError, match="attach"):
                read.insert("something new")
        read.attach(list(self.stored.values()))
        self.filter = read

    @rule()
    def clear(self):
        self.filter.clear()
        self.stored.clear()

    @invariant()
    def no_key_is_lost(self):
        everything = list(self.stored.values())
        assert all(key in self.filter for key in everything)
        assert self.filter.contains_many(everything).all()
        assert len(self.filter) == len(self.stored)
        self.filter.verify()


@pytest.mark.parametrize("kind", ["extension", "telescoping", "broom", "swapping", "cuckooing", "adaptive-bloom", "cascade"])
def test_adaptive_filters_follow_the_model(kind):
    machine = type("Machine", (Model,), {"kind": kind, "hash": "siphash" if kind == "telescoping" else "xxh3"})
    machine.TestCase.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
    machine.TestCase("runTest").runTest()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("hash", ["xxh3", "siphash"])
def test_every_kind_does_what_all_do(kind, hash):
    filter = besom.build(kind, capacity=500, hash=hash, seed=9)
    many = [f"key {number}" for number in range(400)]
    filter.update(many)
    for other in (filter, pickle.loads(pickle.dumps(filter)), filter.copy(), besom.Filter.from_bytes(filter.to_bytes())):
        assert all(key in other for key in many) and other.contains_many(many).all()
        assert (other.kind, other.hash, other.seed) == (filter.kind, hash, 9)
        assert type(other) is type(filter)
        other.verify()
    assert filter.measure_rate() < 0.1
    assert filter.kind in repr(filter) and "<table>" in filter._repr_html_()
    filter.clear()
    assert len(filter) == 0 and not filter


def test_removal_and_multiset_semantics_of_plain_filters():
    filter = besom.Filter(100)
    assert filter.insert("a") and not filter.insert("a") and len(filter) == 2
    assert filter.remove("a") and "a" in filter and filter.remove("a") and not filter.remove("a")
    with pytest.raises(besom.UnsupportedError, match="cannot remove"):
        besom.build("bloom", 10).remove("a")
    assert besom.build("bloom", 10).adapt("a") is False


def test_a_full_filter_keeps_what_it_has():
    filter = besom.Filter(1000, seed=1)
    with pytest.raises(besom.FullError):
        filter.update(range(10**6))
    count = len(filter)
    assert count >= 1000 and filter.contains_many(list(range(count))).all()


def test_merging():
    left, right = besom.Filter(100, seed=1), besom.Filter(100, seed=1)
    left.update("ab".split("x")), right.update(["c", "d"])
    union = left | right
    left |= right
    left |= left.copy()
    assert all(key in union and key in left for key in ("ab", "c", "d"))
    with pytest.raises(besom.MergeError, match="seed"):
        left |= besom.Filter(100, seed=2)
    with pytest.raises(besom.MergeError):
        left |= besom.build("bloom", 100, seed=1)
    with pytest.raises(besom.MergeError):
        left |= besom.Filter(100, seed=1, hash="siphash")
    with pytest.raises(TypeError):
        left |= {"a"}


@pytest.mark.parametrize(
    "arguments",
    [
        dict(capacity=0), dict(capacity=-1), dict(capacity=1.5), dict(capacity="many"), dict(capacity=10**30),
        dict(capacity=10, rate=0), dict(capacity=10, rate=1), dict(capacity=10, rate=float("nan")), dict(capacity=10, seed=-1),
        dict(capacity=10, seed=2**128), dict(capacity=10, hash="md5"), dict(capacity=10, colour="red"), dict(capacity="5,rate=1"),
        dict(capacity=10, kind="blooom"), dict(capacity=10, max_load="1,2"),
    ],
)
def test_what_cannot_be_built_is_refused(arguments):
    with pytest.raises(besom.BuildError) as error:
        besom.Filter(**arguments)
    assert isinstance(error.value, (ValueError, besom.Error)) and len(str(error.value)) > 20


def test_classes_refuse_kinds_that_are_not_theirs():
    with pytest.raises(besom.UnsupportedError, match="AdaptiveFilter"):
        besom.Filter(10, kind="extension")
    with pytest.raises(besom.UnsupportedError, match="Filter"):
        besom.AdaptiveFilter(10, kind="bins")
    with pytest.raises(besom.UnsupportedError):
        besom.build("extension", 10, shape=(2, 4))
    assert besom.build("cuckoo", 10, shape=(2, 4)).kind == "cuckoo"


def test_exact_lists():
    yes, no = list(range(1000)), [str(number) for number in range(5000)]
    exact = besom.ExactList(yes, no, seed=1)
    assert exact.contains_many(yes).all() and not exact.contains_many(no).any() and len(exact) == 1000
    again = pickle.loads(pickle.dumps(exact))
    assert isinstance(again, besom.ExactList) and again.contains_many(yes).all()
    assert besom.ExactList(yes, unknown_rate=0.001, hash="siphash").contains_many(yes).all()
    with pytest.raises(besom.BuildError, match="both lists"):
        besom.ExactList(["a"], ["a"])
    with pytest.raises(besom.UnsupportedError):
        exact.insert("a")
    with pytest.raises(besom.BuildError):
        besom.ExactList(yes, no, unknown_rate=-1)


class Table:
    """A table with a hash column, in the order of an index on it."""

    def __init__(self, seed):
        self.seed, self.rows, self.reads, self.fail = seed, {}, 0, None

    def range(self, lo, hi):
        self.reads += 1
        if self.fail:
            raise self.fail
        hashed = ((besom.key_hash(key, self.seed), key) for key in self.rows)
        return sorted(row for row in hashed if lo <= row[0] <= hi)


def test_an_index_is_read_for_repairs_and_its_exceptions_reach_the_caller():
    table = Table(seed=11)
    filter = besom.AdaptiveFilter(500, 1 / 16, seed=11, index=table)
    for number in range(500):
        table.rows[f"key {number}"] = number
        filter.insert(f"key {number}")
    wrong = [key for key in map(str, range(2000)) if key in filter]
    table.fail = OSError("the database is away")
    with pytest.raises(OSError, match="away"):
        filter.adapt(wrong[0])
    assert wrong[0] in filter
    table.fail = None
    assert sum(filter.adapt(key) for key in wrong) > len(wrong) / 2  # a repair can mend several
    assert not filter.contains_many(wrong).any()
    assert filter.contains_many(list(table.rows)).all()
    filter.verify()
    with pytest.raises(besom.UnsupportedError):
        besom.AdaptiveFilter(10, kind="broom", index=table)
    with pytest.raises(TypeError, match="range"):
        besom.AdaptiveFilter(10, index=object())


def test_an_index_that_answers_nonsense_changes_nothing():
    class Nonsense:
        answer = []

        def range(self, lo, hi):
            return self.answer

    index = Nonsense()
    filter = besom.AdaptiveFilter(100, 0.25, seed=1, index=index)
    filter.insert("a")
    wrong = next(key for key in map(str, range(10_000)) if key in filter)
    for answer in ([(1, "b"), (0, "b")], [(2**63, 5)], 7, [5], [("x", "y")], [(0, None)], [(0, "zz")]):
        index.answer = answer
        with pytest.raises((besom.RemoteError, TypeError)):
            filter.adapt(wrong)
        assert "a" in filter


def test_an_index_may_not_use_its_own_filter():
    class Circular:
        def range(self, lo, hi):
            self.filter.contains("again")
            return []

    index = Circular()
    index.filter = besom.AdaptiveFilter(100, 0.25, seed=1, index=index)
    index.filter.update(["a"])
    wrong = next(key for key in map(str, range(10_000)) if key in index.filter)
    with pytest.raises(RuntimeError, match="while it is being asked"):
        index.filter.adapt(wrong)
    gone = weakref.ref(index)
    del index
    gc.collect()
    assert gone() is None  # the cycle was collected

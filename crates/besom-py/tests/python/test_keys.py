"""Catches: a key whose bytes are not those of Rust, two keys that run into each other, an object that is taken for a key."""

import enum
import uuid

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besom


def test_bytes_are_those_of_rust():
    assert besom.key_bytes("é") == "é".encode()
    assert besom.key_bytes(b"\0\xff") == b"\0\xff"
    assert besom.key_bytes(258) == (258).to_bytes(8, "little")
    assert besom.key_bytes(-2) == (-2).to_bytes(8, "little", signed=True)
    assert besom.key_bytes(2**64 - 1) == b"\xff" * 8 == besom.key_bytes(-1)
    assert besom.key_bytes(numpy.int32(-2)) == besom.key_bytes(-2)
    assert besom.key_bytes(enum.IntEnum("E", ["A"]).A) == besom.key_bytes(1)
    name = uuid.UUID(int=7)
    assert besom.key_bytes(name) == name.bytes
    assert besom.key_bytes(("ab", 1)) == (2).to_bytes(8, "little") + b"ab" + (1).to_bytes(8, "little")
    assert besom.key_bytes((1, (2, 3))) == besom.key_bytes((1, 2, 3)) != besom.key_bytes(((1, 2), 3))


def test_hashes_are_those_of_rust():
    # The same numbers are in src/hash.rs.
    assert besom.key_hash("besom", 7) == 0x91124BBFE0F2E2A2
    assert besom.key_hash(1, 7) == 0xC0AEBF5668B36538
    assert besom.key_hash(-1, 7 << 64 | 9) == 0x04471F3D7FA2D7F7
    assert besom.key_hash("besom", 7, hash="siphash") == 0x671EA525989ACC84
    assert besom.Filter(10, seed=7).key_hash("besom") == 0x91124BBFE0F2E2A2


@pytest.mark.parametrize("key", [1.5, None, True, False, [1], {1}, bytearray(b"x"), object(), numpy.float64(1), numpy.bool_(True), (), (1,), ("a", None)])
def test_what_is_no_key_is_refused_with_advice(key):
    filter = besom.Filter(10)
    for operation in (filter.insert, filter.contains, filter.__contains__, filter.remove, filter.adapt, besom.key_bytes):
        with pytest.raises(TypeError, match="use|key"):
            operation(key)
    with pytest.raises(TypeError):
        filter.update([1, key])
    assert len(filter) == 1  # what came before it is in


@pytest.mark.parametrize("key", [2**64, -(2**63) - 1, 10**100, -(10**100)])
def test_integers_that_do_not_fit_are_refused(key):
    with pytest.raises(OverflowError, match="64 bits"):
        besom.key_bytes(key)


def test_bad_text_and_deep_tuples_are_refused():
    with pytest.raises(UnicodeEncodeError):
        besom.key_bytes("\ud800")
    deep = (1, 2)
    for _ in range(100_000):
        deep = (deep, 1)
    with pytest.raises(ValueError, match="deep"):
        besom.key_bytes(deep)


def test_what_an_object_raises_when_it_is_asked_for_its_number_reaches_the_caller():
    class Broken:
        def __index__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        besom.key_bytes(Broken())


parts = st.text(max_size=4) | st.binary(max_size=4) | st.integers(-(2**63), 2**64 - 1) | st.uuids()


def model(key):
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, int):
        return (key % 2**64).to_bytes(8, "little")
    if isinstance(key, uuid.UUID):
        return key.bytes
    if isinstance(key, tuple):
        *first, last = map(model, key)
        return b"".join(len(part).to_bytes(8, "little") + part for part in first) + last
    return key


@given(st.recursive(parts, lambda part: st.lists(part, min_size=2, max_size=4).map(tuple), max_leaves=8))
def test_bytes_follow_the_rule(key):
    assert besom.key_bytes(key) == model(key)

"""Catches: an array whose elements are other keys than the same values one by one; offsets, strides, nulls and byte orders."""

import signal
import threading
import uuid

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import besom


def filled(keys):
    filter = besom.Filter(max(len(keys), 10), 1e-5, seed=3)
    filter.update(keys)
    return filter


@given(st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]), st.sampled_from("<>"), st.lists(st.integers(-(2**63), 2**64 - 1), max_size=30), st.integers(-3, 3).filter(bool))
def test_integers_of_every_width_order_and_stride(kind, order, values, step):
    info = numpy.iinfo(kind)
    values = [min(max(value, int(info.min)), int(info.max)) for value in values]
    array = numpy.array(values, dtype=order + kind)[::step]
    filter = filled(array)
    assert len(filter) == len(array)
    assert all(int(value) in filter for value in array)
    assert filled([int(value) for value in array]).contains_many(array).all()


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6), max_size=30))
def test_fixed_width_strings(values):
    text = numpy.array(values, dtype="U6")
    assert all(value in filled(text) for value in values)
    raw = numpy.array([value.encode() for value in values], dtype="S24")
    assert filled(values).contains_many(raw).all() and filled(raw).contains_many(text).all()


def test_raw_elements_objects_and_empty_ones():
    raw = numpy.array([b"ab\0", b"\0\0\0"], dtype="V3")
    assert b"ab\0" in filled(raw) and b"\0\0\0" in filled(raw)
    mixed = numpy.array(["a", 1, b"c"], dtype=object)
    assert filled(mixed).contains_many(["a", 1, b"c"]).all()
    for empty in (numpy.array([], dtype="i8"), numpy.array([], dtype="U3"), [], iter(())):
        answers = besom.Filter(10).contains_many(empty)
        assert answers.dtype == bool and answers.shape == (0,)
    answers = filled([1]).contains_many([1, 2])
    answers[1] = True  # it belongs to the caller


@pytest.mark.parametrize("array", [numpy.zeros(3), numpy.zeros(3, bool), numpy.zeros(3, "M8[s]"), numpy.zeros(2, [("a", "i4")])])
def test_arrays_without_keys_are_refused(array):
    with pytest.raises(TypeError, match="keys"):
        besom.Filter(10).update(array)


def test_shapes_and_single_keys_are_refused():
    for array in (numpy.zeros((2, 2), int), numpy.array(5)):
        with pytest.raises(ValueError, match="dimensions"):
            besom.Filter(10).update(array)
    for key in ("abc", b"abc", bytearray(b"abc")):
        with pytest.raises(TypeError, match="list"):
            besom.Filter(10).update(key)
    with pytest.raises(TypeError):
        besom.Filter(10).update(7)
    with pytest.raises(ValueError, match="character"):
        besom.Filter(10).update(numpy.array(["\ud800"]))


@given(st.lists(st.text(max_size=20), max_size=40), st.integers(0, 5), st.integers(0, 5))
def test_arrow_strings(values, skip, drop):
    arrow = pytest.importorskip("pyarrow")
    values = [value.encode("utf8", "replace").decode() for value in values]
    part = values[skip : len(values) - drop]
    raw = [value.encode() for value in values]
    arrays = [arrow.array(values, kind()) for kind in (arrow.string, arrow.large_string, arrow.string_view)]
    arrays += [arrow.array(raw, kind()) for kind in (arrow.binary, arrow.large_binary, arrow.binary_view)]
    arrays += [arrow.chunked_array([values[:3], values[3:], []], arrow.string())]
    for array in arrays:
        # A slice has an offset into the buffers.
        array = array.slice(skip, len(part))
        filter = filled(array)
        assert len(filter) == len(part) and all(value in filter for value in part)
        assert filled(part).contains_many(array).all()


def test_arrow_integers_fixed_sizes_and_nulls():
    arrow = pytest.importorskip("pyarrow")
    for kind in (arrow.int8(), arrow.int16(), arrow.int32(), arrow.int64(), arrow.uint8(), arrow.uint64()):
        assert all(key in filled(arrow.array([1, 2, 3], kind)[1:]) for key in (2, 3))
    assert b"abc" in filled(arrow.array([b"abc"], arrow.binary(3)))
    with pytest.raises(ValueError, match="null"):
        besom.Filter(10).update(arrow.array(["a", None]))
    assert len(filled(arrow.array([None, "a"])[1:])) == 1
    for array in (arrow.array([1.5]), arrow.array(["a"]).dictionary_encode(), arrow.table({"a": [1]})):
        with pytest.raises(TypeError):
            besom.Filter(10).update(array)


def test_the_row_of_a_null_counts_from_the_first_chunk():
    arrow = pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="no key at 4,"):
        besom.Filter(10).update(arrow.chunked_array([[1, 2], [3, 4, None]]))


def test_masked_elements_are_no_keys():
    array = numpy.ma.array([1, 2, 3], mask=[False, True, False])
    for use in (besom.Filter(10).update, besom.Filter(10).contains_many):
        with pytest.raises(ValueError, match="compressed"):
            use(array)
    assert len(filled(array.compressed())) == 2 and len(filled(numpy.ma.array([1, 2]))) == 2


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_series_of_objects_have_the_keys_of_the_objects(package):
    frame = pytest.importorskip(package)
    kind = {"dtype": object if package == "pandas" else frame.Object}
    for keys in ([uuid.UUID(int=1), uuid.UUID(int=2)], [(1, "a"), (2, "b")], [(1, 2), (3, 4)], ["a", b"b"]):
        filter = filled(frame.Series(keys, **kind))
        assert len(filter) == 2 and all(key in filter for key in keys)
        assert filled(keys).contains_many(frame.Series(keys, **kind)).all()


def test_frames():
    for name in ("polars", "pandas"):
        frame = pytest.importorskip(name)
        assert filled(frame.Series(["a", "long enough to be elsewhere"])).contains_many(["a", "long enough to be elsewhere"]).all()
        assert filled(frame.Series([1, 2])).contains_many([1, 2]).all()


def test_iterables_and_what_they_raise():
    def some():
        yield from range(100_000)
        raise KeyboardInterrupt

    filter = besom.Filter(200_000)
    with pytest.raises(KeyboardInterrupt):
        filter.update(some())
    assert len(filter) == 100_000
    filter.update({"a": 1}), filter.update({"b"}), filter.update(range(100_000, 100_010))
    assert "a" in filter and 100_009 in filter


@pytest.mark.parametrize("make", [numpy.arange, lambda count: list(range(count))])
def test_an_interrupt_ends_a_long_update(make):
    def interrupt(*_):
        raise KeyboardInterrupt

    filter, keys = besom.Filter(3_000_000), make(3_000_000)
    old = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        with pytest.raises(KeyboardInterrupt):
            filter.update(keys)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert 0 < len(filter) < 3_000_000 and filter.contains_many(keys[: len(filter)]).all()


def test_an_iterable_may_use_the_filter_that_it_fills():
    filter = besom.AdaptiveFilter(100)
    filter.update(str(filter.insert(number)) + str(number) for number in range(40))
    assert len(filter) == 80


def test_threads_share_a_filter():
    filter = besom.Filter(400_000)
    arrays = [numpy.arange(start, start + 50_000) for start in range(0, 400_000, 50_000)]
    errors = []

    def work(array):
        try:
            filter.update(array)
            assert filter.contains_many(array).all()
            assert all(int(key) in filter for key in array[:1000])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(array,)) for array in arrays]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    assert not errors and len(filter) == 400_000
    filter.verify()

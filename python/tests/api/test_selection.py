"""What an index means, beside NumPy: every result is what NumPy gives, or what orthogonal indexing means."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from zonda.selection import covering, select

SHAPE = (5, 4, 6)
ARRAY = np.arange(np.prod(SHAPE)).reshape(SHAPE)


def read(array, key, cover=True):
    """Through hyperslabs, as a file is read."""
    selection = select(key, array.shape)
    if cover:
        selection = covering(selection)
    buffer = np.full(selection.counts, -1)
    for start, count, stride, where in selection.slabs():
        assert all(n > 0 for n in count)
        steps = stride or (1,) * len(start)
        slab = array[tuple(slice(s, s + (n - 1) * d + 1, d) for s, n, d in zip(start, count, steps))]
        assert slab.shape == count, "a hyperslab leaves the array"
        buffer[where] = slab
    return selection.pick(buffer)


def orthogonal(array, key):
    """One dimension after the other, from the last."""
    key = key if isinstance(key, tuple) else (key,)
    for axis in range(len(key) - 1, -1, -1):
        entry = np.asarray(key[axis]) if isinstance(key[axis], list) else key[axis]
        array = array[(slice(None),) * axis + (entry,)]
    return array


ENTRIES = [
    0, -1, 3, np.int16(2), slice(None), slice(1, 3), slice(None, None, -1), slice(None, None, 2), slice(4, 0, -2),
    slice(-2, None), slice(3, 1), slice(0, 100, 3), slice(-100, 100),
]  # fmt: skip
LISTS = [[0], [1, 3], [3, 1, 1], [-1, 0], [], [0, 1, 2, 3], [0, 2], [3, 0, 2]]


@pytest.mark.parametrize("cover", [False, True])
def test_basic_as_numpy(cover):
    for key in itertools.product(ENTRIES, repeat=3):
        np.testing.assert_array_equal(read(ARRAY, key, cover), ARRAY[key])


@pytest.mark.parametrize(
    "key",
    [..., (), (..., 1), (1, ...), (0, ..., 2), (None, 1), (..., None), (slice(None), None, 2), (1, 2, 3), (1, 2, 3, ...),
     (..., None, 0), (None, None, ..., None)],
)  # fmt: skip
def test_ellipsis_and_new_axes(key):
    np.testing.assert_array_equal(read(ARRAY, key), ARRAY[key])
    assert select(key, SHAPE).shape == ARRAY[key].shape


@pytest.mark.parametrize("cover", [False, True])
def test_lists_are_orthogonal(cover):
    chosen = random.Random(3)
    for _ in range(3000):
        key = tuple(chosen.choice(chosen.choice([ENTRIES, LISTS])) for _ in range(3))
        if any(isinstance(entry, list) and not entry for entry in key):
            expected_shape = select(key, SHAPE).shape
            assert 0 in expected_shape and read(ARRAY, key, cover).shape == expected_shape
            continue
        np.testing.assert_array_equal(read(ARRAY, key, cover), orthogonal(ARRAY, key))


def test_masks():
    mask = [True, False, True, True, False]
    np.testing.assert_array_equal(read(ARRAY, mask), ARRAY[mask])
    other = np.array([False, True, True, False])
    np.testing.assert_array_equal(read(ARRAY, (mask, other)), ARRAY[mask][:, other])
    assert read(ARRAY, [False] * 5).shape == (0, 4, 6)


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (5, IndexError), (-6, IndexError), ((0, 0, 0, 0), IndexError), ((..., ...), IndexError), ([5], IndexError),
        ([-6], IndexError), ([True, False], IndexError), ([[1, 2]], IndexError), ("a", (TypeError, IndexError)),
        ([1.5], TypeError), (1.5, (TypeError, IndexError)), (slice(None, None, 0), ValueError), (slice("a"), TypeError),
    ],
)  # fmt: skip
def test_refusals(key, error):
    with pytest.raises(error):
        select(key, SHAPE)


def test_a_scalar():
    scalar = np.array(7)
    for key in ((), ..., slice(None)):
        assert read(scalar, key) == 7
    with pytest.raises(IndexError):
        select(0, ())


def test_few_slabs():
    # Runs are joined, and a dense list is one hyperslab to read.
    assert len(list(select([0, 1, 2, 10, 12, 14, 90], (100,)).slabs())) <= 4
    assert len(list(covering(select(list(range(0, 1000, 2)) + [7], (1000,))).slabs())) == 1
    assert len(list(select(list(range(0, 1000, 2)), (1000,)).slabs())) == 1
    # A sparse list does not read what is between.
    slabs = list(covering(select([0, 10**9], (10**9 + 1,))).slabs())
    assert sum(count[0] for _, count, _, _ in slabs) == 2


def grown(key, shape, values, growing):
    selection = select(key, shape, growing, np.shape(values))
    return selection, tuple(max(axis.needs, n) for axis, n in zip(selection.axes, shape))


def test_growing():
    any_size = (True, False)
    for key, shape, values, expected in [
        (slice(None), (0, 4), np.zeros((3, 4)), (3, 4)),
        (slice(None), (5, 4), np.zeros((3, 4)), (5, 4)),
        (slice(2, None), (2, 4), np.zeros((3, 4)), (5, 4)),
        (7, (2, 4), np.zeros(4), (8, 4)),
        (slice(10, 12), (2, 4), 1.0, (12, 4)),
        (slice(0, 10, 3), (0, 4), 1.0, (10, 4)),
        (slice(None), (2, 4), 1.0, (2, 4)),
        (slice(None), (0, 4), np.zeros((1, 4)), (1, 4)),
        ([4, 9], (2, 4), 1.0, (10, 4)),
        (..., (0, 4), np.zeros((2, 4)), (2, 4)),
    ]:
        assert grown(key, shape, values, any_size)[1] == expected, key
    with pytest.raises(IndexError):
        select(7, (2, 4), (False, False), ())
    with pytest.raises(IndexError):
        select((0, 4), (2, 4), any_size, ())
    with pytest.raises(IndexError):
        select(-3, (2, 4), any_size, ())


def test_writing_as_numpy():
    chosen = random.Random(5)
    for _ in range(1500):
        key = tuple(chosen.choice(chosen.choice([ENTRIES, LISTS])) for _ in range(3))
        selection = select(key, SHAPE)
        shape = selection.shape
        values = np.arange(1000, 1000 + int(np.prod(shape))).reshape(shape)
        if shape and chosen.random() < 0.3:
            values = values[:1]
        target, expected = ARRAY.copy(), ARRAY.copy()
        spread = selection.spread(values)
        assert spread.shape == selection.counts
        for start, count, stride, where in selection.slabs():
            steps = stride or (1, 1, 1)
            target[tuple(slice(s, s + (n - 1) * d + 1, d) for s, n, d in zip(start, count, steps))] = spread[where]
        indices = orthogonal(np.arange(ARRAY.size).reshape(SHAPE), key) if 0 not in shape else np.empty(shape, int)
        expected.reshape(-1)[indices] = np.broadcast_to(values, shape)
        np.testing.assert_array_equal(target, expected, err_msg=repr(key))


def test_values_of_another_shape():
    selection = select((slice(None), 0), SHAPE)
    assert selection.shape == (5, 6)
    assert selection.spread(np.zeros((1, 1, 5, 6))).shape == (5, 1, 6)
    for shape in [(4,), (6, 5), (2, 5, 6)]:
        with pytest.raises(ValueError, match="do not fit"):
            selection.spread(np.zeros(shape))

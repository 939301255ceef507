"""Ints of few bits, and what NumPy refuses to make of Python's numbers: compiled as interpreted."""

import copy

import numpy as np
import pytest

import fwdad
from tests.tiers import every

pytest.importorskip("numba")

DTYPES = (np.int8, np.uint8, np.int32, np.int64, np.uint64)
INTS = (5, -1, 300, 2**40, 2**63, -(2**63))
FLOATS = (5.7, 300.7, 2.0**63, float("nan"), float("-inf"))
SCALARS = (np.int64(300), np.int64(-1))


def outcome(f, args):
    args = copy.deepcopy(args)
    with np.errstate(all="ignore"):
        try:
            y = f(*args)
        except (OverflowError, ValueError) as error:
            return type(error)
    found = (*(y if isinstance(y, tuple) else (y,)), *args)
    return [(type(x), np.asarray(x).dtype, repr(np.asarray(x).tolist())) for x in found]


def assert_same(f, calls):
    compiled = fwdad.jit(f, backend="numba")
    for args in calls:
        assert outcome(compiled, args) == outcome(f, args), args


def added(a, k):
    return a + k, k * a[0], np.maximum(a, k)


def compared(a, k):
    return a < k, k >= a, a == k, a[0] != k


def nothing_added(a, k):
    return a[:0] + k


def item(a, k):
    a[1] = k
    return a


def part(a, k):
    a[1:] = k
    return a


def masked(a, k):
    a[a > 1] = k
    return a


def gathered(a, k):
    a[np.array([0, 2])] = k
    return a


def listed(a, k):
    return np.array([k, 1], dtype=a.dtype)


def filled(a, k):
    return np.full(2, k, a.dtype), np.full_like(a, k)


def updated(a, k):
    a += k
    return a


@pytest.mark.every(2)
@pytest.mark.parametrize("f", [added, compared, nothing_added, updated], ids=lambda f: f.__name__)
def test_ints_beside_arrays_of_ints(f):
    assert_same(f, [(np.array([1, 2, 3], d), k) for d in DTYPES for k in INTS])


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize(
    "f", every(2, [item, part, masked, gathered, listed]), ids=lambda f: f.__name__
)
def test_numbers_stored_into_arrays_of_ints(f):
    numbers = (*INTS, *FLOATS, *SCALARS)
    assert_same(f, [(np.array([1, 2, 3], d), k) for d in DTYPES for k in numbers])


@pytest.mark.parametrize("f", [item, part], ids=lambda f: f.__name__)
def test_numpy_floats_stored_as_items(f):
    numbers = (np.float64(1e30), np.float64("nan"), np.float32("nan"), np.float32(2.5))
    signed = [d for d in DTYPES if np.dtype(d).kind == "i"]
    assert_same(f, [(np.array([1, 2, 3], d), k) for d in signed for k in numbers])


def test_arrays_filled_with_ints():
    assert_same(filled, [(np.array([1, 2, 3], d), k) for d in DTYPES for k in INTS])


def test_conversions():
    def to_small(k):
        return np.int8(k)

    def to_large(x):
        return np.int64(x)

    assert_same(to_small, [(k,) for k in INTS])
    assert_same(to_large, [(x,) for x in (2.5, -2.0, 1e30, float("nan"), -(2.0**63))])


def test_python_ints_of_more_than_64_bits():
    def f(a, k):
        a[0] = 7
        return k + 1, k * 2, k % 7, k > 5

    assert_same(f, [(np.zeros(2), k) for k in (2**63, 3, 2**64 - 1, 2**70, -(2**63) - 1)])


def test_shifts():
    def f(a, b):
        return a << b, a >> b, a[0] << b[1], a[1] >> b[0], np.left_shift(a, 1)

    cases = [([1, -2, 3], [2, 8, -1], np.int8), ([1, 2, 3], [64, 63, 1], np.uint64)]
    cases += [([-1, 2, 3], [31, 32, 300], np.int32), ([-1, 5, 3], [64, 63, -2], np.int64)]
    assert_same(f, [(np.array(a, d), np.array(b, d)) for a, b, d in cases])


def test_remainders_with_the_sign_of_the_dividend():
    def f(a, b):
        return np.fmod(a, b), np.fmod(a[0], b[0])

    cases = [(np.array([7, -7, -128, 5], d), np.array([2, -3, -1, 0], d)) for d in (np.int8, int)]
    assert_same(f, cases)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint64, np.int8])
def test_sums_that_begin_with_an_int(backend, dtype):
    def f(a):
        s = 0
        for v in a:
            s = s + v * 1
        return s

    a = np.array([100, 100, 3], dtype)
    with np.errstate(over="ignore"):
        wanted, found = f(a), fwdad.jit(f, backend=backend)(a)
    assert (type(found), found) == (type(wanted), wanted)

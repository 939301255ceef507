"""Numbers of NumPy's small types that meet others where two paths merge."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import UntraceableError

BACKENDS = ["numpy", "numba"]
U = np.array([200, 100, 3], np.uint8)
F = np.array([0.5, 1.25, 2.0], np.float32)


def largest(x):
    best = 0
    for v in x:
        best = max(best, v)
    return best


def largest_as_int(x):
    best = -1
    for v in x:
        best = max(best, v)
    return int(best) - 1


def total(x):
    s = 0
    for v in x:
        s = s + v
    return s


def total_of_floats(x):
    s = 0.0
    for v in x:
        s += v * v
    return s


def scaled_by_largest(x):
    best = 0
    for v in x:
        best = max(best, v)
    return x * best


def either(c, a, b):
    return a if c else b


def same(found, wanted):
    assert_array_equal(found, wanted)
    assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [largest, largest_as_int, total, scaled_by_largest])
@pytest.mark.parametrize("x", [U, U[:1], U[:2], U * 0, U.astype(np.int16), U.astype(np.int64)])
@pytest.mark.filterwarnings("ignore:overflow")
def test_small_ints(f, x, backend):
    found, wanted = fwdad.jit(f, backend=backend)(x), f(x)
    assert_array_equal(found, wanted)
    if isinstance(wanted, np.ndarray):
        assert found.dtype == wanted.dtype


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", [total, total_of_floats])
def test_single_precision_stays(f, backend):
    same(fwdad.jit(f, backend=backend)(F), f(F))
    same(fwdad.grad(f)(F), fwdad.jit(fwdad.grad(f), backend=backend)(F))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("a", "b", "dtype"),
    [
        (0.1, np.float32(2), np.float64),
        (300, np.int8(1), np.int64),
        (-1, np.uint8(3), np.int64),
        (0.5, np.uint8(3), np.float64),
        (1e30, np.complex64(3), np.complex128),
        (np.float32(0.1), np.int64(2**53 + 1), np.float64),
    ],
)
def test_what_is_merged_keeps_its_value(a, b, dtype, backend):
    def first(c):
        return a if c > 0 else b

    def other(c):
        return b if c > 0 else a

    for f in (first, other):
        made = fwdad.jit(f, backend=backend)
        for c in (1.0, -1.0):
            found = made(c)
            assert found == f(c)
            assert found.dtype == dtype, (c, f.__name__)


@pytest.mark.parametrize("backend", BACKENDS)
def test_constants_that_a_small_type_holds(backend):
    small = [np.float32(2), np.float32(2), np.int16(7), np.complex64(1j)]
    pairs = [
        (lambda c, x: 0.5 if c > 0 else x, 0.5),
        (lambda c, x: x if c <= 0 else 3, 3),
        (lambda c, x: -300 if c > 0 else x, -300),
        (lambda c, x: 1.5 if c > 0 else x, 1.5),
    ]
    for (f, constant), x in zip(pairs, small, strict=True):
        made = fwdad.jit(f, backend=backend)
        assert made(1.0, x) == constant
        assert made(-1.0, x) == x
        assert made(1.0, x).dtype == made(-1.0, x).dtype == x.dtype


def test_halves():
    f = fwdad.jit(lambda c, x: 70000.0 if c > 0 else x, backend="numpy")
    assert f(1.0, np.float16(1)) == 70000.0
    assert f(-1.0, np.float16(1)) == 1.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_unknown_numbers(backend):
    f = fwdad.jit(lambda c, n, x: n if c > 0 else x, backend=backend)
    assert f(1.0, 300, np.uint8(3)) == 300
    assert f(-1.0, 300, np.uint8(3)) == 3
    assert f(1.0, 0.1, np.float32(3)) == 0.1
    assert f(1.0, 2**24 + 1, np.float32(3)) == 2**24 + 1


def refused(f, *args):
    with pytest.raises(UntraceableError, match="on different paths"):
        fwdad.jit(f)(*args)


@pytest.mark.parametrize("f", [
    lambda x: largest(x) - 1, lambda x: -largest(x), lambda x: largest(x) * 2,
    lambda x: np.sqrt(largest(x)), lambda x: ~largest(x), lambda x: x * max(x[1], 0.5),
    lambda x: either(x[0] > x[1], np.int8(100), x[2]) + np.int8(100),
])  # fmt: skip
def test_arithmetic_that_differs_is_refused(f):
    refused(f, U)


@pytest.mark.parametrize("f", [
    lambda x: largest(x) > 1, lambda x: float(largest(x)) - 1, lambda x: x + largest(x),
    lambda x: np.int64(largest(x)) - 5, lambda x: x[largest(x) - x[0]], lambda x: largest(x) / 2,
    lambda x: [largest(x), 1.5], lambda x: max(x[1], 0.5),
])  # fmt: skip
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.filterwarnings("ignore:overflow")
def test_arithmetic_that_is_the_same(f, backend):
    assert_array_equal(fwdad.jit(f, backend=backend)(U), f(U))


def test_a_loop_that_carries_it():
    def f(x, n):
        b = x[1]
        for k in range(n):
            if k > 1:
                b = 0
        return b - 1

    refused(f, U, 3)

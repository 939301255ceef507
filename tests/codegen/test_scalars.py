"""Functions of numbers in compiled programs, against Python and NumPy."""

import itertools
import math
import warnings

import numpy as np
import pytest

import fwdad

numba = pytest.importorskip("numba")

from fwdad.codegen.llvm.pipeline import ProgramCompiler  # noqa: E402
from fwdad.codegen.runtime import arithmetic  # noqa: E402

njit = numba.njit(pipeline_class=ProgramCompiler, error_model="python")

INTS = [0, 1, -1, 2, -2, 3, 7, -7, 10, 2**31, -(2**31) - 3, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -3.0, 1e-300, 1e200, -1e200, 1e308,
          math.inf, -math.inf, math.nan]  # fmt: skip


def outcome(f, *args):
    """What is returned, with its sign, or the kind of exception and what it says."""
    try:
        y = f(*args)
    except (ArithmeticError, ValueError) as error:
        return type(error), str(error)
    return ("nan",) if math.isnan(y) else (y, math.copysign(1, y))


def same(compiled, plain, *args, text=True):
    found, wanted = outcome(compiled, *args), outcome(plain, *args)
    if isinstance(wanted[0], type) and not text:
        found, wanted = found[0], wanted[0]
    assert found == wanted, args


def fits(f):
    """Python's ints, of which those of 64 bits are compiled."""

    def inside(a, b):
        y = f(a, b)
        if not -(2**63) <= y < 2**63:
            message = "an int of compiled code exceeds 64 bits"
            raise OverflowError(message)
        return y

    return inside


def numpy_ints(f):
    def inside(a, b):
        with np.errstate(all="ignore"):
            return int(f(np.int64(a), np.int64(b)))

    return inside


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("int_floor_divide", numpy_ints(np.floor_divide)),
        ("int_remainder", numpy_ints(np.remainder)),
        ("python_int_divide", fits(lambda a, b: a // b)),
        ("python_int_remainder", fits(lambda a, b: a % b)),
        ("larger", max),
        ("smaller", min),
    ],
)
def test_ints(name, plain):
    f = getattr(arithmetic, name)
    compiled = njit(lambda a, b: f(a, b))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for a, b in itertools.product(INTS, repeat=2):
            same(compiled, plain, a, b, text=False)


def test_ints_of_other_kinds():
    f, g = arithmetic.int_remainder, arithmetic.int_floor_divide
    compiled = njit(lambda a, b: (f(a, b), g(a, b)))
    for a, b in [(np.int8(-7), np.int32(3)), (np.int16(7), True), (np.int8(-128), np.int8(-1))]:
        assert compiled(a, b) == (int(a) % int(b), int(a) // int(b))


def power(a, b):
    """Python's, where it is no complex number."""
    y = a**b
    if isinstance(y, complex):
        message = "a fractional power of a negative number is complex"
        raise ValueError(message)  # noqa: TRY004 (what compiled code raises)
    return y


@pytest.mark.parametrize(("name", "plain"), [("float_power", power), ("math_power", math.pow)])
def test_powers(name, plain):
    f = getattr(arithmetic, name)
    compiled = njit(lambda a, b: f(a, b))
    for a, b in itertools.product(FLOATS, repeat=2):
        same(compiled, plain, a, b, text=False)


ONE_ARGUMENT = ["sqrt", "log", "log1p", "asin", "atanh", "cos", "exp", "cosh", "sinh"]


def test_functions_that_raise():
    in_domain, in_range = arithmetic.in_domain, arithmetic.in_range
    for name in ONE_ARGUMENT:
        f = getattr(math, name)
        wrapped = in_range if name in ("exp", "cosh", "sinh") else in_domain
        compiled = njit(lambda x, f=f, wrapped=wrapped: wrapped(f(x), x))
        for x in [*FLOATS, -2.0, 1000.0]:
            same(compiled, f, x)


def test_floats_as_ints():
    to_int = arithmetic.to_int
    compiled = njit(lambda x: to_int(x))
    for x in [0.0, -0.0, 0.9, -0.9, 2.5, -3.7, 1e15, -9.1e18, 9.1e18]:
        assert compiled(x) == int(x)
    assert compiled(np.float32(2.75)) == 2
    for x, kind in [(math.nan, ValueError), (math.inf, OverflowError), (-1e19, OverflowError)]:
        with pytest.raises(kind):
            compiled(x)


def test_room():
    room_for = arithmetic.room_for
    compiled = njit(lambda n, most: room_for(n, most))
    assert [compiled(x, 100.0) for x in (0.0, 99.0, 100.0, 1e30, math.inf)] == [
        0,
        99,
        100,
        100,
        100,
    ]


@pytest.mark.parametrize("f", [
    lambda a, b: a % b[0], lambda a, b: a * (a[1] // b[1]), lambda a, b: np.array(divmod(a[0], b)),
    lambda a, b: np.array([x % y for x, y in zip(a, b, strict=True)]) * b,
    lambda a, b: a * (a[0] % 2),
])  # fmt: skip
def test_remainders_of_single_precision(f):
    a = np.array([1.3, -2.2, 0.0, np.inf, np.nan], np.float32)
    b = np.array([0.4, -0.7, 1.0, 1.0, 2.0], np.float32)
    made = fwdad.jit(f)
    with np.errstate(all="ignore"):
        wanted = f(a, b)
    found = made(a, b)
    assert found.dtype == wanted.dtype == np.float32
    np.testing.assert_array_equal(found, wanted)
    assert "NumPy" not in fwdad.explain(made)


def test_halves_are_left_to_numpy(caplog):
    """Numba has none: that is no mistake of ours, which would be reported."""
    y, pullback = fwdad.vjp(fwdad.jit(lambda x, a: x * np.sqrt(a)), np.ones(2), args=(True,))
    np.testing.assert_array_equal(pullback(y), np.ones(2))
    assert not caplog.records
    made = fwdad.jit(lambda x: np.exp(x) * 2)
    x = np.ones(3, np.float16)
    np.testing.assert_array_equal(made(x), np.exp(x) * 2)
    assert "values of dtype float16" in fwdad.explain(made)

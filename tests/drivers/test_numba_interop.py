"""Functions under ``jit`` that functions under ``numba.njit`` call."""

import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

numba = pytest.importorskip("numba")

TypingError = numba.core.errors.TypingError
X = np.array([1.5, 0.4])


class Pair(NamedTuple):
    a: float
    b: object


def circle(x):
    return np.array([x[0] ** 2 + x[1] - 3.0, x[0] * x[1] - 1.0])


def test_newton_by_a_jacobian_inside_compiled_code():
    F, J = fwdad.jit(circle), fwdad.jit(fwdad.jacfwd(circle))
    J(X)  # x's length is the number of lanes, and no type tells it

    @numba.njit
    def newton(x):
        for _ in range(20):
            x = x - np.linalg.solve(J(x), F(x))
        return x, J(x)

    root, slope = newton(X)
    assert_allclose(circle(root), 0, atol=1e-14)
    assert_allclose(slope, [[2 * root[0], 1], [root[1], root[0]]], rtol=1e-15)
    assert fwdad.cache_info(J).traces == 1
    with pytest.raises(TypeError, match="no tape for arguments of these lengths"):
        newton(np.ones(3))


def test_an_array_whose_length_must_be_known_needs_a_call_from_python():
    J = fwdad.jit(fwdad.jacfwd(circle))

    @numba.njit
    def slope(x):
        return J(x)

    with pytest.raises(TypingError, match="Call it once from Python, with such arguments"):
        slope(X)


def test_lengths_choose_among_the_tapes():
    J = fwdad.jit(fwdad.jacfwd(lambda x: x * x))
    for n in (1, 2, 3, 0):
        J(np.arange(n) + 1.0)

    @numba.njit
    def slope(x):
        return J(x)

    for n in (3, 2, 1, 0):
        x = np.arange(n) + 0.5
        assert_array_equal(slope(x), np.diag(2 * x))
        assert_array_equal(slope(np.repeat(x, 2)[::2]), np.diag(2 * x))  # another layout
    with pytest.raises(TypeError, match="from Python"):
        slope(np.ones(4))


def test_equal_lengths_choose_among_the_tapes():
    f = fwdad.jit(lambda x, y: x[1:] * y[:-1])
    f(np.ones(4), np.ones(4))

    @numba.njit
    def caller(x, y):
        return f(x, y)

    for n, m in ((3, 3), (5, 2), (2, 5)):
        x, y = np.arange(n) + 0.5, np.arange(m) - 3.0
        assert_array_equal(caller(x, y), x[1:] * y[:-1])


def test_types_are_enough_for_numbers_tuples_and_directions():
    value_and_slope = fwdad.jit(
        lambda p, w: fwdad.value_and_jacobian(lambda q: (q[0] * q[1], w * q[0]), p)
    )
    push = fwdad.jit(lambda x, v: fwdad.jvp(lambda z: np.sum(z**3), x, v))
    slope = fwdad.jit(lambda a, w=1.0: fwdad.derivative(lambda z: np.sin(w * z), a))

    @numba.njit
    def run(a, x, v):
        return value_and_slope((a, 3.0), 5), push(x, v), slope(a, w=2.0), slope(a)

    pair, pushed, with_w, without = run(2.0, np.array([1.0, 2.0]), np.array([10.0, 100.0]))
    assert pair == ((6.0, 10.0), ((3.0, 2.0), (5.0, 0.0)))
    assert pushed == (9.0, 30.0 + 1200.0)
    assert_allclose((with_w, without), (2 * np.cos(4.0), np.cos(2.0)), rtol=1e-15)
    assert slope(2.0, w=2.0) == with_w  # the same tape serves Python
    assert fwdad.cache_info(slope) == (2, 1)


def test_results_and_arguments_of_every_kind():
    @fwdad.jit
    def f(p, mode, c, k):
        if mode is None:
            return p.a
        y = p.b * c
        return Pair(np.float32(k), (y, y.sum())), None, mode

    @numba.njit
    def run(p, c, k):
        return f(p, "long", c, k), f(p, None, c, k)

    p = Pair(1.5, np.arange(6.0).reshape(2, 3).T)
    (pair, none, mode), short = run(p, 2j, np.int32(7))
    assert isinstance(pair, Pair)
    assert pair.a == 7.0
    assert_array_equal(pair.b[0], p.b * 2j)
    assert (none, mode, short, pair.b[1]) == (None, "long", 1.5, 30j)


def test_a_function_that_is_an_argument():
    F, J = fwdad.jit(circle), fwdad.jit(fwdad.jacfwd(circle))
    J(X)

    @numba.njit
    def apply(f, x):
        return f(x)

    assert_array_equal(apply(F, X), circle(X))
    assert_array_equal(apply(J, X), J(X))


SCALE = 2.0
TABLE = np.array([1.0, 2.0])


def test_what_is_captured_is_a_constant_of_compiled_code(monkeypatch):
    f = fwdad.jit(lambda x: SCALE * x + TABLE)

    @numba.njit
    def run(x):
        return f(x)

    assert_array_equal(run(X), 2 * X + TABLE)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert_array_equal(f(X), 3 * X + TABLE)
    assert_array_equal(run(X), 2 * X + TABLE)

    @numba.njit
    def run_again(x):
        return f(x)

    assert_array_equal(run_again(X), 3 * X + TABLE)


def test_values_that_a_tape_assumes_are_tested():
    f = fwdad.jit(lambda x, axis: np.sum(x, axis=axis))
    x = np.arange(6.0).reshape(2, 3)
    f(x, 0)
    f(x, 1)

    @numba.njit
    def run(x, axis):
        return f(x, axis)

    assert_array_equal(run(x, 0), x.sum(0))
    assert_array_equal(run(x, 1), x.sum(1))
    with pytest.raises(TypeError, match="these lengths or values"):
        run(x, 2)


def test_arguments_that_are_written():
    @fwdad.jit
    def scale(a, b):
        a *= 2.0
        a += b

    @numba.njit
    def run(a, b):
        scale(a, b)

    a = np.arange(4.0)
    run(a[:2], a[2:])
    assert_array_equal(a, [2.0, 5.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="share memory"):
        run(a[:3][::-1], a[1:])


def test_exceptions_of_the_tape_leave_compiled_code():
    @fwdad.jit
    def f(x, k):
        if x[k] < 0:
            raise ValueError("negative")
        return 1.0 / k + x[k]

    @numba.njit
    def run(x, k):
        return f(x, k)

    assert run(X, 1) == 1.4
    for x, k, error in ((-X, 1, ValueError), (X, 0, ZeroDivisionError), (X, 5, IndexError)):
        with pytest.raises(error):
            run(x, k)


def rejected(f, *args):
    """What Numba says when a compiled function calls f."""

    @numba.njit
    def run(*given):
        return f(*given)

    with pytest.raises(TypingError) as raised:
        run(*args)
    return str(raised.value)


def opaque(x):
    return x + len(str(x))


@fwdad.frule(opaque)
def opaque_frule(primals, tangents):
    return opaque(*primals), tangents[0]


def test_what_cannot_be_called_from_compiled_code_says_why():
    text = rejected(fwdad.jit(lambda x: x, backend="numpy"), 1.0)
    assert "was made for NumPy" in text
    assert "returns a list" in rejected(fwdad.jit(lambda x: [x]), 1.0)
    text = rejected(fwdad.jit(lambda x: x), numba.typed.List([1.0]))
    assert "an argument of type ListType[float64]" in text
    text = rejected(fwdad.jit(lambda x: opaque(x) + 1.0), X)
    assert "Declare it with fwdad.pure(f)" in text
    assert "test_numba_interop.py" in text  # the user's line
    work = np.zeros(2)

    def fill(x):
        work[:] = x
        return x

    assert "writes into an array from outside" in rejected(fwdad.jit(fill), X)
    assert "may be None" in rejected(fwdad.jit(lambda x: x if x > 0 else None), 1.0)


def test_a_caller_that_numba_would_cache_is_not_cached(tmp_path):
    (tmp_path / "caller.py").write_text(
        "import warnings\n"
        "import numba, fwdad\n"
        "f = fwdad.jit(lambda x: x * x)\n"
        "@numba.njit(cache=True)\n"
        "def run(x):\n"
        "    return f(x)\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    assert run(3.0) == 9.0\n"
        "assert 'dynamic globals' in str(found[0].message)\n"
    )
    subprocess.run([sys.executable, "caller.py"], cwd=tmp_path, check=True, timeout=120)
    assert not list(tmp_path.rglob("*.nbc"))


def test_functions_of_numba_inside_a_program_are_not_taken_for_others(tmp_path):
    """Both call one helper of Numba's; that of a tape has lost the arguments that it does not read.

    In a process of its own, which a mistake here ends by a segmentation fault.
    """
    (tmp_path / "caller.py").write_text(
        "import numba, numpy as np, fwdad\n"
        "A, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])\n"
        "fit = fwdad.jit(lambda A, b: np.linalg.lstsq(A, b, rcond=None)[0])\n"
        "assert np.allclose(fit(A, b), [0.2, 0.6])\n"
        "@numba.njit\n"
        "def solved(A, b):\n"
        "    return np.linalg.solve(A, b)\n"
        "assert np.allclose(solved(A, b), [0.2, 0.6])\n"
    )
    subprocess.run([sys.executable, "caller.py"], cwd=tmp_path, check=True, timeout=120)


def test_importing_the_library_does_not_import_numba():
    code = "import sys, fwdad; fwdad.jit(abs); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

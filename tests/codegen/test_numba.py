"""The Numba source against the NumPy source and against the function itself."""

import inspect
import math
import runpy
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.codegen.call_entry import compile_program
from fwdad.codegen.numba_support import HELPERS
from fwdad.frontend.trace import trace
from tests.codegen.numba_programs import CASES, A, M, V

pytest.importorskip("numba")

from fwdad.codegen.runtime import arithmetic
from tests.tiers import every


def run(f, *example, backend="numba"):
    """A function that runs f's program; it must not fall back on NumPy."""
    tape = trace(f, *example)
    made = compile_program(tape.program, backend)

    def call(*args):
        captured = [c.fetch() for c in tape.captures]
        with np.errstate(all="ignore"):
            y = tape.rebuild(list(made.call(*args, *captured)))
        assert made.backend == backend, made.left
        return y

    return call


def copies(args):
    return [
        a.copy(order="K") if isinstance(a, np.ndarray) and a.flags.writeable else a for a in args
    ]


def leaves(y):
    return [x for item in y for x in leaves(item)] if isinstance(y, (tuple, list)) else [y]


def assert_same(found, wanted):
    found, wanted = leaves(found), leaves(wanted)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert type(a) is type(b)
        if isinstance(b, (np.ndarray, np.generic)):
            assert a.dtype == b.dtype
        dtype = np.asarray(b).dtype
        eps = np.finfo(dtype).eps if dtype.kind in "fc" else 0
        assert_allclose(a, b, rtol=64 * eps, atol=16 * eps)
        assert_array_equal(np.signbit(np.real(a)) & (np.real(b) == 0),
                           np.signbit(np.real(b)) & (np.real(b) == 0))  # fmt: skip


@pytest.mark.slow_cases("along_an_axis", "joined")
@pytest.mark.parametrize("k", every(4, range(len(CASES))), ids=[f.__name__ for f, _ in CASES])
def test_program(k):
    f, arguments = CASES[k]
    compiled = run(f, *arguments[0])
    plain = run(f, *arguments[0], backend="numpy")
    for args in arguments:
        with np.errstate(all="ignore"):
            wanted = f(*copies(args))
        assert_same(plain(*copies(args)), wanted)
        assert_same(compiled(*copies(args)), wanted)


def indexed(x, i):
    return x[i]


def stored(x, i):
    x[i] = 1.0
    return x


def indexed_rows(m, i, j):
    return m[i, j]


def fancy(x, ix):
    return x[ix]


def reciprocal(x):
    return 1 / x


def remainder(a, b):
    return a % b


def floor_divided(a, b):
    return a // b


def root(x):
    return math.sqrt(x)


def logarithm(x):
    return math.log(x)


def exponential(x):
    return math.exp(x)


def power(x, y):
    return x**y


def solved(m, v):
    return np.linalg.solve(m, v)


def asserted(x):
    assert x > 0, "x must be positive"
    return x


class OwnError(Exception):
    pass


def raised(x):
    if x < 0:
        raise OwnError("negative", x)
    return x


def summed(x, y):
    return x + y


def product(m, v):
    return m @ v


def assigned(x, y):
    x[:] = y
    return x


def largest(x):
    return x.max()


def whole(x):
    return int(x)


def masked(x, m):
    return x[m]


ERRORS = [
    (indexed, (A, 0), (A, 4), IndexError),
    (indexed, (A, 0), (A, -5), IndexError),
    (indexed, (A, 0), (A, 10**15), IndexError),
    (indexed, (A, 0), (np.zeros(0), 0), IndexError),
    (indexed_rows, (M, 0, 0), (M, 0, 3), IndexError),
    (indexed_rows, (M, 0, 0), (M, -4, 0), IndexError),
    (stored, (A, 0), (A, 4), IndexError),
    (stored, (A, 0), (A, -5), IndexError),
    (fancy, (A, np.array([0, 1])), (A, np.array([0, 4])), IndexError),
    (fancy, (A, np.array([0, 1])), (A, np.array([0, -5])), IndexError),
    (masked, (A, A > 0), (A, np.ones(3, bool)), IndexError),
    (reciprocal, (2.0,), (0.0,), ZeroDivisionError),
    (reciprocal, (2,), (0,), ZeroDivisionError),
    (reciprocal, (2.0j,), (0j,), ZeroDivisionError),
    (remainder, (2.0, 3.0), (2.0, 0.0), ZeroDivisionError),
    (remainder, (2, 3), (2, 0), ZeroDivisionError),
    (floor_divided, (2, 3), (2, 0), ZeroDivisionError),
    (floor_divided, (2.0, 3.0), (2.0, 0.0), ZeroDivisionError),
    (root, (2.0,), (-1.0,), ValueError),
    (logarithm, (2.0,), (0.0,), ValueError),
    (logarithm, (2.0,), (-1.0,), ValueError),
    (exponential, (2.0,), (1e4,), OverflowError),
    (power, (2.0, 2.0), (0.0, -1.0), ZeroDivisionError),
    (power, (2.0, 2.0), (1e200, 2.0), OverflowError),
    (solved, (M, V), (np.zeros((3, 3)), V), np.linalg.LinAlgError),
    (asserted, (2.0,), (-1.0,), AssertionError),
    (raised, (2.0,), (-1.0,), OwnError),
    (summed, (A, A), (A, np.ones(3)), ValueError),
    (product, (M, V), (M, np.ones(4)), ValueError),
    (assigned, (A, A), (A, np.ones(3)), ValueError),
    (largest, (A,), (np.zeros(0),), ValueError),
    (whole, (2.0,), (math.nan,), ValueError),
    (whole, (2.0,), (math.inf,), OverflowError),
]


@pytest.mark.parametrize(
    ("f", "example", "args", "exception"),
    ERRORS,
    ids=[f"{f.__name__}-{k}" for k, (f, *_) in enumerate(ERRORS)],
)
def test_exceptions(f, example, args, exception):
    compiled = run(f, *copies(example))
    compiled(*copies(example))
    with np.errstate(all="ignore"), pytest.raises(exception):
        f(*copies(args))
    with pytest.raises(exception) as caught:
        compiled(*copies(args))
    if f is raised:
        assert caught.value.args == ("negative", -1.0)
    assert_same(compiled(*copies(example)), f(*copies(example)))


def test_ints_do_not_wrap():
    def f(a, n):
        for _ in range(n):
            a = a * 3 + 1
        return a

    compiled = run(f, 1, 2)
    assert compiled(1, 30) == f(1, 30)
    assert compiled(1, 60) == f(1, 60)  # more than 64 bits: NumPy's source, Python's ints
    assert compiled(2**62, 1) == f(2**62, 1)
    assert compiled(2**70, 1) == f(2**70, 1)


def test_results_that_leave_the_type():
    compiled = run(power, 2.0, 2.0)
    assert compiled(-8.0, 1 / 3) == power(-8.0, 1 / 3)  # complex
    ints = run(power, 2, 2)
    assert ints(2, -1) == 0.5


def test_arguments_that_share_memory():
    def f(x, y):
        x[1:] = y[:-1]
        return x

    a, b = A.copy(), A.copy()
    assert_array_equal(run(f, A.copy(), A.copy())(a, a), f(b, b))


def test_writes_are_seen():
    def f(x):
        x[0] += 1.0
        x[1:] = 0.0

    a = A.copy()
    run(f, A.copy())(a)
    assert_array_equal(a, [A[0] + 1, 0, 0, 0])
    assert_array_equal(run(lambda x: x[1:], A)(a).base is not None, True)


@pytest.mark.parametrize("first", [True, False])
def test_read_only_memory_is_not_written(first):
    a = A.copy()
    a.flags.writeable = False
    made = compile_program(trace(stored, A.copy(), 0).program)
    if not first:
        assert_array_equal(made.call(A.copy(), 0)[0], [1.0, *A[1:]])
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            made.call(a, 0)
    assert_array_equal(a, A)
    assert made.left
    assert_array_equal(made.call(A.copy(), 0)[0], [1.0, *A[1:]])
    with pytest.raises(IndexError):
        made.call(A.copy(), 9)


def test_what_cannot_be_compiled_is_named():
    def f(x):
        y = x * 2
        return np.fft.hfft(y)

    tape = trace(f, A)
    made = compile_program(tape.program)
    assert made.backend == "numpy"
    (reason,) = made.left
    assert "fft" in str(reason)
    assert reason.location.line == f.__code__.co_firstlineno + 2
    assert_array_equal(tape.rebuild(list(made.call(A))), f(A))


def test_a_variable_may_have_any_name():
    def f(x, k):
        arg = x / k  # Numba's own names of arguments begin with "arg."
        ret = arg * arg
        return np.sum(ret) + k

    assert run(f, V, 3.0)(V, 3.0) == f(V, 3.0)


def test_other_layouts_compile_again():
    compiled = run(summed, A, A)
    for x, y in ((A, A[::-1]), (np.repeat(A, 2)[::2], A), (A[:2], A[2:])):
        assert_array_equal(compiled(x, y), x + y)
    m = compile_program(trace(summed, M, M).program)
    for x, y in ((M, M), (M.T, M), (M, M[::-1]), (np.asfortranarray(M), M.T)):
        assert_array_equal(m.call(x, y)[0], x + y)
    assert len(m.kernel.signatures) == 4


def test_tracebacks_show_lines():
    tape = trace(asserted, 1.0)
    made = compile_program(tape.program)
    with pytest.raises(AssertionError) as caught:
        made.call(-1.0)
    shown = "".join(str(entry) for entry in caught.traceback)
    assert "raise AssertionError" in shown


def test_source_names_lines():
    made = compile_program(trace(asserted, 1.0).program)
    assert f"test_numba.py:{asserted.__code__.co_firstlineno + 1}" in made.source.text


def test_helpers_are_listed():
    assert set(arithmetic.__all__) == {h for h in HELPERS if HELPERS[h] == "arithmetic"}


def test_many_loops(tmp_path):
    """Numba looks for a name's definition block by block, one call deeper for each."""
    loops = "".join(f"    for _ in range(n):\n        y = y - {k}.5\n" for k in range(40))
    start = "def f(x, n):\n    a = x\n    for _ in range(n):\n        a = a * 0.5\n    y = x\n"
    path = tmp_path / "many.py"
    path.write_text(f"{start}{loops}    return a + y\n", encoding="utf-8")
    f = runpy.run_path(str(path))["f"]
    compiled = run(f, 7.25, 3)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 120)  # as many more loops would find it
    try:
        assert compiled(7.25, 3) == f(7.25, 3)
        assert sys.getrecursionlimit() < limit
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.every(3)
@pytest.mark.parametrize("name", ["growing", "scaled", "vector_read", "check_shape", "np", "len"])
def test_functions_named_like_helpers(name):
    def f(x):
        y = x.copy()
        for k in range(3):
            y[k] = y[k] * y[k - 1] + np.sum(x[1:])
        return y.sum() * len(y)

    f.__name__ = f.__qualname__ = name
    x = np.arange(1.0, 4.0)
    gradient = fwdad.jit(fwdad.grad(f), backend="numba")  # raises where Numba cannot compile it
    assert_allclose(gradient(x), fwdad.jacobian(f, x, mode="forward"), rtol=1e-13)

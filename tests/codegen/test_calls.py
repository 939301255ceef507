"""Programs that call programs, compiled: recursion, with its derivatives."""

import logging
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.call_entry import compile_program
from fwdad.frontend.trace import trace
from tests.codegen.cached_programs import counted

X = np.array([0.3, 1.1, -0.7, 2.0, 0.9, -1.4, 0.2])


def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


def sorted_in_place(x, low, high):
    """Quicksort."""
    if low >= high:
        return 0
    pivot, place = x[high], low
    for k in range(low, high):
        if x[k] < pivot:
            x[k], x[place] = x[place], x[k]
            place += 1
    x[high], x[place] = x[place], x[high]
    sorted_in_place(x, low, place - 1)
    sorted_in_place(x, place + 1, high)
    return 0


def weighted_order(x):
    y = x * np.exp(x)
    sorted_in_place(y, 0, len(y) - 1)
    return y * np.arange(1.0, len(y) + 1)


def merged(x):
    """A sum by halves, with the halves as arrays."""
    n = len(x)
    if n < 2:
        return np.sin(x)
    half = n // 2
    left, right = merged(x[:half]), merged(x[half:])
    return np.concatenate((right * 2.0, left + right[0]))


def clenshaw(c, x, k):
    """Both Clenshaw's coefficients at k."""
    if k >= len(c):
        return 0.0, 0.0
    first, second = clenshaw(c, x, k + 1)
    return c[k] + 2.0 * x * first - second, first


def chebyshev(c, x):
    b, _ = clenshaw(c, x, 1)
    return c[0] + x * b - clenshaw(c, x, 2)[0]


def is_even(n, x):
    if n == 0:
        return x
    return 1.5 * is_odd(n - 1, x * x)


def is_odd(n, x):
    if n == 0:
        return -x
    return math.sin(is_even(n - 1, x))


CASES = [
    (fibonacci, (12,)), (weighted_order, (X,)), (merged, (X,)), (merged, (X[::2],)),
    (chebyshev, (X, 0.3)), (is_even, (3, 0.7)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_recursion_is_compiled(case):
    f, args = case
    g = fwdad.jit(f)
    assert_allclose(g(*args), f(*args), rtol=1e-14)
    assert fwdad.explain(g).endswith("run by Numba")


@pytest.mark.parametrize(
    ("f", "args", "argnums"),
    [(weighted_order, (X,), 0), (merged, (X,), 0), (chebyshev, (X, 0.3), (0, 1)),
     (is_even, (3, 0.7), 1)],
    ids=["weighted_order", "merged", "chebyshev", "is_even"],
)  # fmt: skip
def test_derivatives_of_recursion_are_compiled(f, args, argnums):
    g = fwdad.jit(fwdad.jacfwd(f, argnums=argnums))
    found, wanted = g(*args), fwdad.jacfwd(f, argnums=argnums)(*args)
    pairs = zip(found, wanted, strict=True) if isinstance(argnums, tuple) else [(found, wanted)]
    for a, b in pairs:
        assert_allclose(a, b, rtol=1e-13, atol=1e-14)
    assert fwdad.explain(g).endswith("run by Numba")


def test_chebyshev_is_differentiated_as_a_polynomial():
    c = np.polynomial.Chebyshev(X)
    slope = fwdad.jit(fwdad.jacfwd(chebyshev, argnums=1))(X, 0.3)
    assert_allclose(slope, c.deriv()(0.3), rtol=1e-13)


def test_memory_that_cannot_be_written_is_passed_on():
    x = X.copy()
    x.flags.writeable = False
    g = fwdad.jit(chebyshev)
    assert_allclose(g(x, 0.3), chebyshev(x, 0.3), rtol=1e-14)
    assert fwdad.explain(g).endswith("run by Numba")


def test_recursion_without_an_end_raises_as_python_does():
    def endless(n, x):
        if n < -1:
            return x
        return endless(n + 1, x) + 1.0

    g = fwdad.jit(endless)
    assert g(-2, 1.0) == 1.0
    with pytest.raises(RecursionError):
        g(0, 1.0)
    assert g(-3, 2.0) == 2.0


def test_exception_inside_a_call():
    def taken(x, k):
        if x[k] < 0.0:
            return x[k]
        return taken(x, k + 1) * 2.0

    g = fwdad.jit(taken)
    assert g(X, 0) == taken(X, 0)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        g(np.abs(X), 0)


def test_called_programs_are_found_on_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("FWDAD_CACHE_DIR", str(tmp_path))
    count = counted()
    tape = trace(fwdad.jacfwd(is_even, argnums=1), 3, 0.7)
    answers = []
    for _ in range(2):
        made = compile_program(tape.program)
        answers.append(tape.rebuild(list(made.call(3, 0.7))))
    logging.getLogger("fwdad.cache").setLevel(logging.NOTSET)
    assert count["saved"] == count["loaded"] == 1
    assert_array_equal(answers[0], answers[1])

"""`stop_gradient` on tapes: what it returns is a constant, in all modes."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]
X = np.array([0.5, 1.5, 2.5])


def of_an_array(x):
    return (x * x * fwdad.stop_gradient(x)).sum()


def of_numbers(x):
    return sum(v * fwdad.stop_gradient(v * v) for v in (x[0], x[1], x[2]))


def of_a_dict(x):
    kept = fwdad.stop_gradient({"a": x, "b": [2 * x[1], 1.0]})
    return (x * kept["a"]).sum() * kept["b"][0] * kept["b"][1]


def in_a_loop(x):
    total = 0.0
    for k in range(len(x)):
        total = total + x[k] * fwdad.stop_gradient(total + x[k])
    return total


def loop_by_hand(x):
    """Its derivative: the running totals are constants, but each carries on what came before."""
    total, bar = 0.0, []
    for v in x:
        bar.append(total + v)
        total = total + v * (total + v)
    return np.array(bar)


CASES = [
    (of_an_array, lambda x: 2 * x * x),
    (of_numbers, lambda x: x * x),
    (of_a_dict, lambda x: x * 2 * x[1]),
    (in_a_loop, loop_by_hand),
]


@pytest.mark.slow_cases(
    "of_numbers-<lambda>-numba", "of_a_dict-<lambda>-numba", "in_a_loop-loop_by_hand-numba"
)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("f", "expected"), CASES)
def test_what_is_stopped_is_a_constant(f, expected, backend):
    assert_allclose(fwdad.grad(f)(X), expected(X), rtol=1e-14)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend=backend)(X), expected(X), rtol=1e-14)
    for chunk in (1, 2, 3):
        jacobian = fwdad.jit(fwdad.jacfwd(f, chunk=chunk), backend=backend)
        assert_allclose(jacobian(X), expected(X), rtol=1e-14)
    assert_allclose(fwdad.vjp(f, X)[1](1.0), expected(X), rtol=1e-14)


def test_second_derivatives():
    found = fwdad.hessian(of_an_array, X)
    assert_array_equal(found, np.diag(2 * X))
    assert_array_equal(fwdad.jit(lambda x: fwdad.hessian(of_an_array, x))(X), found)

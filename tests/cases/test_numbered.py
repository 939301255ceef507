"""The numbered cases in every mode: forward in chunks, backwards, and compiled both ways."""

import copy
import importlib.util
import operator

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.cases.numbered import NUMBERED

NO_NUMBA = pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="no Numba")


def checked(case, found, x):
    """What was found is the gradient, and the argument is as it was."""
    assert np.shape(found) == np.shape(case.x)
    assert np.asarray(found).dtype in (np.asarray(case.x).dtype, np.float64)
    assert_allclose(found, case.gradient, rtol=case.rtol, atol=1e-15)
    np.testing.assert_array_equal(x, case.x)


@pytest.fixture(autouse=True)
def quiet():
    """Some divide by zero, or take the logarithm of it, on purpose."""
    with np.errstate(all="ignore"):
        yield


FORWARD = {f"chunk {n}": lambda f, n=n: fwdad.jacfwd(f, chunk=n) for n in (1, 2, 3)}
REVERSE = {
    "grad": fwdad.grad,
    "vjp": lambda f: lambda x: fwdad.vjp(f, x)[1](1.0),
    "jacrev": fwdad.jacrev,
}
TRACED = {
    "jacfwd on a tape": lambda f: fwdad.jit(fwdad.jacfwd(f, chunk=2), backend="numpy"),
    "grad on a tape": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy"),
}


@pytest.mark.parametrize(
    "way", {**FORWARD, **REVERSE, **TRACED}.items(), ids=operator.itemgetter(0)
)
@pytest.mark.parametrize("case", NUMBERED, ids=str)
def test_gradient(case, way):
    x = copy.deepcopy(case.x)
    checked(case, way[1](case.function)(x), x)


LONG = {"inverse_of_a_view", "first_of_equals", "determinant", "hessian_at_zero", "through_fft"}
TOGETHER = [case for case in NUMBERED if case.function.__name__ not in LONG]


def derived(f, way):
    """One derivative, to be compiled."""
    return fwdad.grad(f) if way == "reverse" else fwdad.jacfwd(f, chunk=2)


@pytest.mark.slow_cases("forward")
@NO_NUMBA
@pytest.mark.parametrize("way", ["forward", "reverse"])
def test_compiled(way):
    """Most of them as one function: compiling it takes the time."""
    functions = tuple(case.function for case in TOGETHER)

    def gradients(arguments):
        return [derived(f, way)(x) for f, x in zip(functions, arguments, strict=True)]

    jitted = fwdad.jit(gradients)
    arguments = tuple(copy.deepcopy(case.x) for case in TOGETHER)
    for case, found, x in zip(TOGETHER, jitted(arguments), arguments, strict=True):
        checked(case, found, x)
    assert "by NumPy" not in fwdad.explain(jitted)


@NO_NUMBA
@pytest.mark.slow
@pytest.mark.parametrize("way", ["forward", "reverse"])
@pytest.mark.parametrize(
    "case", [case for case in NUMBERED if case.function.__name__ in LONG], ids=str
)
def test_compiled_alone(case, way):
    x = copy.deepcopy(case.x)
    checked(case, fwdad.jit(derived(case.function, way))(x), x)

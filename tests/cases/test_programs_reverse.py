"""Whole programs backwards, by `grad` and `jit` as users call them: worlds, sources, SciPy."""

import copy
import gc
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.cases.check import call_on_copy
from tests.cases.test_programs import (
    CELL,
    MODEL,
    RATES,
    SOURCELESS,
    Pair,
    end_state,
    end_state_jacobian,  # noqa: F401 - a fixture
    run_cell,
    simulate,
)
from tests.cases.test_world import (
    WORLDS,
    after_a_plain_call,
    assert_same,
    clean_globals,  # noqa: F401
    fresh,
)
from tests.differences import central_differences
from tests.tiers import every

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_world_is_as_a_plain_call_leaves_it(make):
    make = fresh(make)
    expected = central_differences(lambda x: call_on_copy(make()[0], x), X)
    for chunk in (2, None):
        plain, after = after_a_plain_call(make)
        f, state = make()
        jacobian = fwdad.jacrev(f, chunk=chunk)(X.copy())
        assert_allclose(jacobian, expected, rtol=1e-8, atol=1e-8)
        assert_same(state(), after)
    w = np.linspace(0.3, 1.7, plain.size).reshape(plain.shape)
    f, state = make()
    found = fwdad.grad(lambda x: np.sum(w * f(x)))(X.copy())
    assert_allclose(found, np.tensordot(w, expected, w.ndim), rtol=1e-8, atol=1e-8)
    assert_same(state(), after)
    f, state = make()
    before = copy.deepcopy(state())
    try:
        value = fwdad.jit(f, backend="numpy")(X.copy())
    except UntraceableError:
        assert_same(state(), before)  # a tape cannot reach the world, and says so
    else:
        assert_array_equal(value, plain)


def test_an_object_of_arrays_as_an_argument():
    gradient = fwdad.grad(simulate)(MODEL)
    jitted = fwdad.jit(fwdad.grad(simulate), backend="numpy")(MODEL)
    growth = 1 + 0.1 * 0.8
    for found in (gradient, jitted):
        assert_allclose(found.rates, [2.0 * 3 * 0.1 * growth**2] * 2, rtol=1e-14)
        assert found.offset == pytest.approx(growth**3, rel=1e-14)
        assert found.steps is fwdad.NoTangent


def test_containers_go_in():
    def f(parameters):
        pair, (scale, *_) = parameters["pair"], parameters["more"]
        return np.sum(pair.left * scale) * pair.right**2

    x = {"pair": Pair(np.array([1.0, 2.0, 3.0]), 0.5), "more": (4.0, 7)}
    for found in (fwdad.grad(f)(x), fwdad.jit(fwdad.grad(f), backend="numpy")(x)):
        assert isinstance(found["pair"], Pair)
        assert_array_equal(found["pair"].left, [1.0, 1.0, 1.0])
        assert found["pair"].right == 24.0
        assert found["more"][0] == 1.5
        assert found["more"][1] is fwdad.NoTangent


@pytest.mark.parametrize(("method", "rtol"), [("RK45", 1e-9), ("BDF", 1e-6)])
def test_solve_ivp(method, rtol, end_state_jacobian):  # noqa: F811
    f = lambda rates: end_state(rates, method, rtol, rtol / 100)  # noqa: E731
    jacobian = fwdad.jacobian(f, RATES, mode="reverse")
    within = 1e-6 if method == "RK45" else 10 * rtol
    scale = np.max(np.abs(end_state_jacobian))
    assert_allclose(jacobian, end_state_jacobian, rtol=within, atol=within * scale)


def test_functions_of_a_notebook_cell():
    namespace = run_cell(CELL, "<ipython-input-9-0123456789ab>")
    x = np.array([0.3, 0.5, 0.7])
    expected = np.diag(2.0 * np.cos(x))
    expected[:, 0] -= np.sin(x[0])
    for way in (fwdad.jacrev, lambda f: fwdad.jit(fwdad.jacfwd(f), backend="numpy")):
        assert_allclose(way(namespace["cell"])(x), expected, rtol=1e-15)
        assert_array_equal(way(namespace["pair"][0])(x), 2 * np.eye(3))
        assert_array_equal(way(namespace["pair"][1])(x), np.diag(2 * x))
    namespace["scale"] = 5.0
    found = fwdad.jacrev(namespace["cell"])(x)
    assert_allclose(np.diag(found)[1:], 5.0 * np.cos(x[1:]), rtol=1e-15)


@pytest.mark.parametrize("name", ["rosenbrock", "nested", "power", "quadratic"])
def test_functions_without_source(name):
    """Recorded; a tape says that it cannot."""
    namespace = {"np": np}
    exec(SOURCELESS, namespace)
    f, x = namespace[name], np.array([0.3, 0.9])
    assert_allclose(fwdad.jacrev(f)(x), central_differences(f, x), rtol=1e-8, atol=1e-10)
    with pytest.raises(UntraceableError, match="source"):
        fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x)


@pytest.mark.parametrize(
    "fresh_one",
    every(2, [lambda k: lambda x: np.sum(x**2) * k, lambda k: lambda x, k=k: np.sum(x**2) * k]),
    ids=["cell", "default"],
)
def test_fresh_lambdas_keep_memory_flat(fresh_one):
    """After a few that are traced, others of the same code are recorded, and nothing is kept."""
    x = np.linspace(0.1, 1.0, 5)

    def used(numbers):
        for k in numbers:
            assert_array_equal(fwdad.grad(fresh_one(k))(x), 2 * x * k)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    used(range(50))
    tracemalloc.start()
    try:
        before = used(range(100, 200))
        assert used(range(200, 1200)) - before < 100_000
    finally:
        tracemalloc.stop()

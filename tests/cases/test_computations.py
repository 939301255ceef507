"""Computations as scientists write them: one compiled object at points that go different ways."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.cases import computations as c
from tests.differences import central_differences, difference_along

RNG = np.random.default_rng(20)
CASES = {
    c.kalman_smoother: [(np.log([0.3, 0.5]), RNG.normal(size=n)) for n in (5, 7)],
    c.transfer: [
        (np.array([1.0, 0.3, k]), np.linspace(0.5, 3, n)) for n, k in [(3, 4.0), (5, 2.0)]
    ],
    c.pivoted_solve: [(RNG.normal(size=(n, n)), RNG.normal(size=n)) for n in (4, 5)],
    c.bracketed_root: [(np.array([1.3, 0.4]),), (np.array([2.6, 9.0]),)],
    c.first_crossings: [(np.array([2.0, 0.7]), RNG.normal(size=n)) for n in (3, 4)],
    c.simpson: [(np.array([0.5, 3.0]),), (np.array([1.0, 8.0]),)],
    c.warped: [(np.array([0.1, 0.3, s]), RNG.normal(size=(n, 5))) for n, s in [(4, 0.2), (6, -1)]],
    c.lower_envelope: [(np.array([3.0, 0.2, 2.0, 5.0, 0.4, 0.9]),), (RNG.uniform(0, 6, 9),)],
    c.ranked_pages: [(RNG.uniform(0.1, 1, (n, n)),) for n in (3, 4)],
}


def check_all(f, points, backend, wraps):
    """Jacobians by one object of each kind at every point, and arguments that stay as they are."""
    made = [fwdad.jit(wrap(f), backend=backend) for wrap in wraps]
    for args in points:
        given = copy.deepcopy(args)
        expected = central_differences(lambda x, args=args: f(x, *args[1:]), args[0])
        for derivative in (*made, *(wrap(f) for wrap in wraps)):
            assert_allclose(derivative(*given), expected, rtol=1e-6, atol=1e-7)
        for before, after in zip(args, given, strict=True):
            np.testing.assert_array_equal(before, after)


LONG = (c.kalman_smoother, c.simpson, c.first_crossings, c.pivoted_solve)


@pytest.mark.slow_cases("ranked_pages")
@pytest.mark.parametrize(
    "f",
    [pytest.param(f, marks=[pytest.mark.slow] if f in LONG else []) for f in CASES],
    ids=lambda f: f.__name__,
)
def test_on_tapes(f):
    check_all(f, CASES[f], "numpy", [fwdad.jacfwd, fwdad.jacrev])


@pytest.mark.slow_cases("simpson")
@pytest.mark.parametrize("f", LONG, ids=lambda f: f.__name__)
def test_gradients_are_those_of_a_tape(f):
    """None is refused, and none fails by a mistake that the record makes good."""
    x, *rest = CASES[f][0]
    expected = central_differences(lambda x: f(x, *rest), x)
    assert_allclose(fwdad.jacrev(f)(x, *rest), expected, rtol=1e-6, atol=1e-7)
    assert "is recorded" not in str(fwdad.explain(fwdad.jacrev(f), x, *rest))


@pytest.mark.slow
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_compiled(f):
    check_all(f, CASES[f], "auto", [fwdad.jacfwd, fwdad.jacrev])


@pytest.mark.every(2, first=1)
@pytest.mark.parametrize("f", CASES, ids=lambda f: f.__name__)
def test_lanes(f, rng):
    """Directions and cotangents in chunks of 1, 2 and 3."""
    x, *rest = CASES[f][1]
    directions = rng.normal(size=(3, *x.shape))
    y, pullback = fwdad.vjp(f, x, args=tuple(rest))
    bars = rng.normal(size=(3, *np.shape(y)))
    products = np.reshape(pullback(bars), (3, -1)) @ directions.reshape(3, -1).T
    assert_allclose(pullback(bars[1]), pullback(bars)[1], rtol=1e-12, atol=1e-12)
    for chunk in (1, 2, 3):
        y_dot = fwdad.jvp(f, x, directions, args=tuple(rest), chunk=chunk)[1]
        forward = bars.reshape(3, -1) @ np.reshape(y_dot, (3, -1)).T
        assert_allclose(forward, products, rtol=1e-10, atol=1e-10)


def test_objects_under_a_jitted_function():
    """What is compiled is run as it is where objects carry the derivatives."""
    layers = [c.Layer(0.1, 0.5), c.Layer(0.2, 0.04, "insulation"), c.Layer(0.05, 1.1)]
    for f in (c.heat_loss, fwdad.jit(c.heat_loss)):
        for derivative in (fwdad.grad(f), fwdad.jacfwd(f)):
            found = derivative(layers, 20.0, -5.0)
            for k, layer in enumerate(layers):
                for name in ("thickness", "conductivity"):

                    def loss(factor, k=k, name=name):
                        moved = copy.deepcopy(layers)
                        setattr(moved[k], name, getattr(moved[k], name) * factor)
                        return c.heat_loss(moved, 20.0, -5.0)

                    slope = difference_along(loss, 1.0) / getattr(layer, name)
                    assert_allclose(getattr(found[k], name), slope, rtol=1e-8)
        y, pullback = fwdad.vjp(f, layers, args=(20.0, -5.0))
        assert_allclose(y, c.heat_loss(layers, 20.0, -5.0))
        assert_allclose(pullback(2.0)[1].thickness, 2 * found[1].thickness)

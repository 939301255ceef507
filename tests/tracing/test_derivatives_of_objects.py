"""Traced derivatives with respect to objects of the user's, and of functions that answer them."""

from dataclasses import dataclass

import numpy as np

import fwdad


@dataclass
class Body:
    x: np.ndarray
    mass: float
    name: str = "moon"


BODY = Body(np.array([0.1, 0.2]), 2.0)


def energy(b, c):
    return np.sum(np.sin(b.x)) * b.mass * c


def moved(b, c):
    return Body(b.x * c, b.mass + c)


def test_gradient():
    gradient, dc = fwdad.jit(fwdad.grad(energy, argnums=(0, 1)), backend="numpy")(BODY, 3.0)
    np.testing.assert_allclose(gradient.x, 6.0 * np.cos(BODY.x), rtol=1e-14)
    np.testing.assert_allclose(gradient.mass, 3.0 * np.sum(np.sin(BODY.x)), rtol=1e-14)
    np.testing.assert_allclose(dc, 2.0 * np.sum(np.sin(BODY.x)), rtol=1e-14)
    assert gradient.name == "moon"
    alone = fwdad.jit(fwdad.grad(energy), backend="numpy")(BODY, 3.0)
    assert np.array_equal(alone.x, gradient.x)


def test_value_and_tangent_of_a_function_that_answers_one():
    def pushed(c):
        return fwdad.jvp(lambda c: moved(BODY, c), c, 1.0)

    y, y_dot = fwdad.jit(pushed, backend="numpy")(3.0)
    np.testing.assert_allclose(y.x, 3.0 * BODY.x, rtol=1e-15)
    np.testing.assert_allclose(y_dot.x, BODY.x, rtol=1e-15)
    assert (y.mass, y_dot.mass) == (5.0, 1.0)

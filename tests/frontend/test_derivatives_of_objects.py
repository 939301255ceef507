"""Traced derivatives with respect to objects of the user's, and of functions that return them."""

from dataclasses import dataclass

import numpy as np
import pytest

import fwdad
from fwdad import NoTangent


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
    assert gradient.name is NoTangent
    alone = fwdad.jit(fwdad.grad(energy), backend="numpy")(BODY, 3.0)
    assert np.array_equal(alone.x, gradient.x)


def test_value_and_tangent_of_a_function_that_returns_one():
    def pushed(c):
        return fwdad.jvp(lambda c: moved(BODY, c), c, 1.0)

    y, y_dot = fwdad.jit(pushed, backend="numpy")(3.0)
    np.testing.assert_allclose(y.x, 3.0 * BODY.x, rtol=1e-15)
    np.testing.assert_allclose(y_dot.x, BODY.x, rtol=1e-15)
    assert (y.mass, y_dot.mass) == (5.0, 1.0)


class Squared:
    """Keeps the square of what is stored, by the field's own name."""

    def __set_name__(self, _owner, name):
        self.name = name

    def __get__(self, o, _cls=None):
        return 1.5 if o is None else o.__dict__[self.name]

    def __set__(self, o, value):
        o.__dict__[self.name] = value * value


class Doubled(Squared):
    """Keeps twice what is stored, by another name."""

    def __get__(self, o, _cls=None):
        return 1.5 if o is None else getattr(o, f"_{self.name}")

    def __set__(self, o, value):
        object.__setattr__(o, f"_{self.name}", value * 2.0)


@dataclass
class Plain:
    squared: float = Squared()
    doubled: float = Doubled()


@dataclass(frozen=True)
class Frozen:
    squared: float = Squared()
    doubled: float = Doubled()


@dataclass
class Stored:
    squared: float
    doubled: float

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value**2 if name == "squared" else value * 2.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("cls", [Plain, Frozen, Stored])
def test_fields_of_a_dataclass_are_stored_as_its_class_says(cls, mode):
    def f(x):
        made = cls(x[0], doubled=x[1])
        return made.squared * made.doubled

    x = np.array([3.0, 5.0])
    expected = [2.0 * 3.0 * 2.0 * 5.0, 9.0 * 2.0]
    assert f(x) == 90.0
    np.testing.assert_allclose(fwdad.jacobian(f, x, mode=mode), expected, rtol=1e-14)
    compiled = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode=mode), backend="numpy")
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-14)
    assert fwdad.jit(f, backend="numpy")(x) == 90.0

"""Classes of the user's: flattened, or with a tangent class of their own."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import DuplicateRuleError, SeedError, UnsupportedTypeError
from fwdad.tangents import registrations
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.kinds import (
    CompositeTangent,
    OwnTangent,
)
from fwdad.tangents.registrations import REGISTERED
from fwdad.tangents.registry import register_tangent_type, tangent_type
from fwdad.tangents.vectors import (
    OWN,
    add_tangents,
    inner_product,
    scale_tangent,
    zero_tangent,
)
from tests.tangents.classes import Unknown


@pytest.fixture
def registered():
    """Forget what a test registers."""
    before = set(REGISTERED) | set(OWN)
    yield
    for table in (REGISTERED, OWN):
        for cls in set(table) - before:
            del table[cls]
    registrations._find_registration.cache_clear()


# -- classes of the user's: flattened


class Beam:
    def __init__(self, length, load, name):
        if not isinstance(name, str):
            raise TypeError(name)
        self.length, self.load, self.name = length, load, name


def register_beam():
    register_tangent_type(
        Beam,
        flatten=lambda beam: ((beam.length, beam.load), beam.name),
        unflatten=lambda name, children: Beam(*children, name),
    )


@pytest.mark.usefixtures("registered")
def test_a_registered_class_is_differentiated():
    register_beam()
    beam = Beam(2.0, np.array([1.0, 3.0]), "left")
    assert type(tangent_type(Beam, 2)) is CompositeTangent
    assert tangent_type(Beam, 2).holds(beam, zero_tangent(beam, 2))

    def bend(beam):
        return beam.length**3 * np.sum(beam.load**2)

    gradient = fwdad.grad(bend)(beam)
    assert type(gradient) is Beam
    assert_allclose(gradient.length, 3 * 4 * 10.0)
    assert_allclose(gradient.load, 8 * 2 * beam.load)
    assert gradient.name == "left"
    y, y_dot = fwdad.jvp(
        lambda beam: Beam(beam.length * 2, beam.load[::-1], "right"),
        beam,
        Beam(1.0, np.array([0.0, 5.0]), "direction"),
    )
    assert (y.length, y.name, y_dot.length) == (4.0, "right", 2.0)
    assert_array_equal(y_dot.load, [5.0, 0.0])


@pytest.mark.usefixtures("registered")
def test_a_seed_of_another_class_is_named():
    register_beam()
    with pytest.raises(SeedError, match="tuple"):
        fwdad.jvp(lambda beam: beam.length, Beam(2.0, 1.0, "left"), (1.0, 1.0))


@pytest.mark.usefixtures("registered")
def test_subclasses_are_not_taken_for_their_base():
    register_beam()

    class Strut(Beam):
        pass

    with pytest.raises(UnsupportedTypeError, match="register_tangent_type"):
        tangent_type(Strut, 2)
    with pytest.raises(UnsupportedTypeError):
        fwdad.jvp(lambda beam: beam.length, Strut(2.0, 1.0, "left"))


@pytest.mark.usefixtures("registered")
def test_registered_twice():
    register_beam()
    with pytest.raises(DuplicateRuleError, match="override=True"):
        register_beam()
    before = tangent_type(Beam, 2)
    register_tangent_type(
        Beam,
        flatten=lambda beam: ((beam.length,), beam),
        unflatten=lambda beam, children: Beam(*children, beam.load, beam.name),
        override=True,
    )
    assert tangent_type(Beam, 2) is not before
    gradient = fwdad.grad(lambda beam: beam.length * beam.load)(Beam(2.0, 5.0, "left"))
    assert (gradient.length, gradient.load) == (5.0, 5.0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"flatten": len},
        {"unflatten": len},
        {"tangent": float},
        {"tangent": float, "zero": len},
        {"flatten": len, "unflatten": len, "tangent": float},
        {"flatten": len, "unflatten": len, "zero": len},
        {"tangent": 3.0, "zero": len, "inner": len},
        {"flatten": 1, "unflatten": 2},
    ],
    ids=str,
)
def test_half_a_registration(options):
    with pytest.raises(UnsupportedTypeError, match="all of one group"):
        register_tangent_type(Unknown, **options)


def test_only_classes_are_registered():
    with pytest.raises(UnsupportedTypeError, match="takes a class"):
        register_tangent_type(Unknown(), flatten=len, unflatten=len)


# -- classes of the user's: a tangent class of its own


class Angle:
    """A point of the circle, kept as a unit vector."""

    def __init__(self, cos, sin):
        self.cos, self.sin = cos, sin


@dataclass(frozen=True)
class Turn:
    """A tangent of the circle: one number, whatever the point."""

    rate: float

    def __add__(self, other):
        return Turn(self.rate + other.rate)

    def __mul__(self, factor):
        return Turn(self.rate * factor)


def register_angle():
    register_tangent_type(
        Angle,
        tangent=Turn,
        zero=lambda _angle: Turn(0.0),
        inner=lambda t, u: t.rate * u.rate,
    )


@pytest.mark.usefixtures("registered")
def test_a_tangent_class_of_its_own():
    register_angle()
    x = [Angle(1.0, 0.0), 2.0]
    assert type(tangent_type(Angle, 2)) is OwnTangent
    zero = zero_tangent(x, 3)
    assert list(zero[0].lanes) == [Turn(0.0)] * 3
    turn = Chunk(np.array([Turn(1.0), Turn(2.0), Turn(3.0)], object))
    x_dot = [turn, Chunk(np.ones(3))]
    assert tangent_type(list, 3).holds(x, x_dot)
    assert tangent_type(Angle, 3).holds(x[0], turn)
    assert not tangent_type(Angle, 3).holds(x[0], Chunk(np.ones(3)))
    assert not tangent_type(Angle, 2).holds(x[0], turn)
    total = add_tangents(zero, scale_tangent(2.0, x_dot))
    assert list(total[0].lanes) == [Turn(2.0), Turn(4.0), Turn(6.0)]
    assert_array_equal(inner_product(x_dot, total), [2 + 2, 8 + 2, 18 + 2])
    assert inner_product([Turn(3.0), 1.0], [Turn(2.0), 1.0]) == 7.0


@pytest.mark.usefixtures("registered")
def test_nothing_is_known_of_a_tangent_class_beyond_its_operations(rng):
    register_angle()
    with pytest.raises(UnsupportedTypeError, match="no basis"):
        tangent_type(Angle, 2).basis(Angle(1.0, 0.0))
    with pytest.raises(UnsupportedTypeError, match="no basis"):
        tangent_type(Angle, 2).random(Angle(1.0, 0.0), rng)


def test_a_tangent_class_needs_its_operators():
    class Lame:
        def __add__(self, other):
            return self

    with pytest.raises(UnsupportedTypeError, match="Lame has no __mul__"):
        register_tangent_type(Unknown, tangent=Lame, zero=len, inner=len)

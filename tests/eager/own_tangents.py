"""Classes with a tangent class of their own, and their rules."""

import math
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import fwdad
from fwdad.rules.core.registry import RULES
from fwdad.tangents import registrations
from fwdad.tangents.laws.listing import dense
from fwdad.tangents.zero import Zero

# -- the circle: a point is a unit vector, a tangent one number


class Angle:
    """A point of the circle, kept as a unit vector."""

    turns = 2 * math.pi

    def __init__(self, cos, sin):
        self.cos, self.sin = cos, sin

    def turned(self, by):
        return Angle(
            self.cos * math.cos(by) - self.sin * math.sin(by),
            self.sin * math.cos(by) + self.cos * math.sin(by),
        )

    def height(self):
        return self.sin

    def width(self):
        return self.cos

    def twice_height(self):
        return 2 * self.height()

    @property
    def up(self):
        return 3 * self.height()

    @staticmethod
    def of(t):
        return Angle(math.cos(t), math.sin(t))

    @classmethod
    def full(cls):
        return cls.turns

    def __lt__(self, other):
        return self.sin < other.sin

    def __eq__(self, other):
        return (self.cos, self.sin) == (other.cos, other.sin)

    def __hash__(self):
        return hash((self.cos, self.sin))


@dataclass(frozen=True)
class Turn:
    """A tangent of the circle."""

    rate: float

    def __add__(self, other):
        return Turn(self.rate + other.rate)

    def __mul__(self, factor):
        return Turn(self.rate * factor)


def rates(angle_dot):
    """The plain lanes of a chunk of turns."""
    return fwdad.Chunk(np.array([turn.rate for turn in angle_dot.lanes]))


def turns(t_dot):
    """A chunk of turns of plain lanes."""
    lanes = np.empty(t_dot.n, object)
    for k in range(t_dot.n):
        lanes[k] = Turn(t_dot.lanes[k])
    return fwdad.Chunk(lanes)


# -- rotations: a value is a unit quaternion, a tangent the angular velocity in the body's frame


class Rotation:
    def __init__(self, w, v):
        self.w, self.v = w, v

    @staticmethod
    def about(r):
        """The rotation by the length of r about r."""
        angle = math.sqrt(r @ r)
        return Rotation(math.cos(angle / 2), 0.5 * np.sinc(angle / (2 * math.pi)) * r)

    def __mul__(self, other):
        return Rotation(
            self.w * other.w - self.v @ other.v,
            self.w * other.v + other.w * self.v + np.cross(self.v, other.v),
        )

    def __matmul__(self, x):
        return x + 2 * np.cross(self.v, np.cross(self.v, x) + self.w * x)

    def __call__(self, x):
        return self @ x

    def matrix(self):
        return np.stack([self @ e for e in np.eye(3)], axis=1)


@dataclass(frozen=True)
class Spin:
    w: np.ndarray

    def __add__(self, other):
        return Spin(self.w + other.w)

    def __mul__(self, factor):
        return Spin(self.w * factor)


def spins(lanes):
    made = np.empty(len(lanes), object)
    made[:] = [Spin(w) for w in lanes]
    return fwdad.Chunk(made)


def velocities(r_dot):
    return np.stack([spin.w for spin in r_dot.lanes])


def moved(r, w):
    """The rotation a little further, as the tangent class means it."""
    return r * Rotation.about(w)


# -- a class whose attributes have the names that the builder's own have


class Affine:
    def __init__(self, p, t):
        self.p, self.t, self.tag = p, t, "affine"

    def image(self, x):
        return self.p * x + self.t


@dataclass(frozen=True)
class AffineDot:
    p: float
    t: float

    def __add__(self, other):
        return AffineDot(self.p + other.p, self.t + other.t)

    def __mul__(self, factor):
        return AffineDot(self.p * factor, self.t * factor)


def register_rules():
    @fwdad.frule(Angle.height)
    def height_frule(primals, tangents):
        (angle,), (angle_dot,) = primals, tangents
        return angle.height(), angle.width() * rates(angle_dot)

    @fwdad.frule(Angle.width)
    def width_frule(primals, tangents):
        (angle,), (angle_dot,) = primals, tangents
        return angle.width(), -angle.height() * rates(angle_dot)

    @fwdad.frule(Angle.of)
    def of_frule(primals, tangents):
        (t,), (t_dot,) = primals, tangents
        return Angle.of(t), turns(t_dot)

    @fwdad.frule(Angle.turned)
    def turned_frule(primals, tangents):
        (angle, by), (angle_dot, by_dot) = primals, tangents
        y_dot = angle_dot
        if not isinstance(by_dot, Zero):
            y_dot = turns(by_dot) + y_dot
        return angle.turned(by), y_dot

    @fwdad.frule(Rotation.about)
    def about_frule(primals, tangents):
        (r,), (r_dot,) = primals, tangents
        angle = math.sqrt(r @ r)
        k = np.cross(np.eye(3), r)  # k @ x is the cross product of r and x
        right = (  # the right Jacobian of the exponential map of rotations
            np.eye(3)
            - (1 - math.cos(angle)) / angle**2 * k
            + (angle - math.sin(angle)) / angle**3 * k @ k
        )
        return Rotation.about(r), spins(r_dot.lanes @ right.T)

    @fwdad.frule(Rotation.__mul__)
    def mul_frule(primals, tangents):
        (a, b), (a_dot, b_dot) = primals, tangents
        y_dot = b_dot
        if not isinstance(a_dot, Zero):
            y_dot = spins(velocities(a_dot) @ b.matrix()) + dense(b_dot, b, a_dot.n)
        return a * b, y_dot

    @fwdad.frule(Rotation.__matmul__)
    def matmul_frule(primals, tangents):
        (r, x), (r_dot, x_dot) = primals, tangents
        matrix = r.matrix()
        y_dot = fwdad.tangents.zero.ZERO
        if not isinstance(r_dot, Zero):
            y_dot = fwdad.Chunk(np.cross(velocities(r_dot), x) @ matrix.T)
        return r @ x, y_dot + matrix @ x_dot

    @fwdad.frule(Affine.image)
    def image_frule(primals, tangents):
        (f, x), (f_dot, x_dot) = primals, tangents
        y_dot = fwdad.Chunk(np.array([d.p * x + d.t for d in f_dot.lanes]))
        return f.image(x), y_dot + f.p * x_dot


@contextmanager
def registered():
    """The classes are known, and their rules, as long as this lasts."""
    before = dict(RULES)
    fwdad.register_tangent_type(
        Angle, tangent=Turn, zero=lambda _: Turn(0.0), inner=lambda t, u: t.rate * u.rate
    )
    fwdad.register_tangent_type(
        Rotation, tangent=Spin, zero=lambda _: Spin(np.zeros(3)), inner=lambda t, u: t.w @ u.w
    )
    fwdad.register_tangent_type(
        Affine,
        tangent=AffineDot,
        zero=lambda _: AffineDot(0.0, 0.0),
        inner=lambda t, u: t.p * u.p + t.t * u.t,
    )
    register_rules()
    try:
        yield
    finally:
        for f in set(RULES) - set(before):
            del RULES[f]
        for cls in (Angle, Rotation, Affine):
            del registrations.OWN[cls]

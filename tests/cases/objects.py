"""Programs of classes: data, operators, inheritance, protocols."""

import abc
import contextlib
import enum
import itertools
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from tests.cases.check import programs

OBJECTS, program = programs()

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


class Point(NamedTuple):
    x: float
    y: float = 1.0

    def norm(self):
        return np.hypot(self.x, self.y)


@dataclass
class Body:
    position: np.ndarray
    velocity: np.ndarray
    mass: float = 1.0
    trail: list = field(default_factory=list)

    def __post_init__(self):
        self.momentum = self.mass * self.velocity

    @property
    def energy(self):
        return 0.5 * self.mass * np.sum(self.velocity**2)

    def kick(self, force, dt):
        self.velocity = self.velocity + dt * force / self.mass
        self.position += dt * self.velocity
        self.trail.append(self.position.copy())


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    def __mul__(self, other):
        products = [
            self.low * other.low,
            self.low * other.high,
            self.high * other.low,
            self.high * other.high,
        ]
        return Interval(min(products), max(products))

    def __rmul__(self, factor):
        return Interval(factor * self.low, factor * self.high)

    def __contains__(self, value):
        return self.low <= value <= self.high

    def __neg__(self):
        return Interval(-self.high, -self.low)


@program(X, products=True)
def namedtuples_and_dataclasses(x):
    p = Point(x[0])._replace(y=x[1] * x[1])
    body = Body(x[:2] * 1.0, x[2:4] * 1.0, mass=x[4])
    for _ in range(3):
        body.kick(-body.position, 0.1)
    other = replace(body, mass=2.0)
    q = -(x[0] * (Interval(x[1], x[2]) * Interval(x[3], x[4])))
    inside = 1.0 if x[2] in Interval(x[3], 3.0) else 0.0
    scalars = [p.norm(), body.energy, other.energy, q.low, q.high * inside]
    return np.concatenate((scalars, body.trail[1], other.momentum, body.position))


class Polynomial:
    __slots__ = ("__degree", "coefficients")
    evaluations = 0

    def __init__(self, coefficients):
        self.coefficients = list(coefficients)
        self.__degree = len(self.coefficients) - 1

    def __call__(self, t):
        Polynomial.evaluations = 0
        value = 0.0
        for c in reversed(self.coefficients):
            value = value * t + c
        return value

    def __getitem__(self, i):
        return self.coefficients[i]

    def __setitem__(self, i, c):
        self.coefficients[i] = c

    def __len__(self):
        return self.__degree + 1

    def __iter__(self):
        return iter(self.coefficients)

    def __add__(self, other):
        if isinstance(other, float):
            other = Polynomial([other])
        return Polynomial(a + b for a, b in itertools.zip_longest(self, other, fillvalue=0.0))

    __radd__ = __add__

    def __matmul__(self, other):
        return Polynomial(np.convolve(self.coefficients, other.coefficients))

    @property
    def leading(self):
        return self.coefficients[-1]

    @leading.setter
    def leading(self, c):
        self.coefficients[-1] = c

    @classmethod
    def from_roots(cls, roots):
        p = cls([1.0])
        for root in roots:
            p = p @ cls([-root, 1.0])
        return p

    @staticmethod
    def clean(v):
        return v * 1.0

    def derivative(self):
        return Polynomial(i * c for i, c in enumerate(self.coefficients) if i)


@program(X, products=True)
def classes_with_operators(x):
    p = Polynomial(x)
    p[0] = p[1] * x[2]
    p.leading = p.leading**2
    q = (p + x[1]) @ Polynomial.from_roots(x[:2])
    q += 3.0
    return np.array([p(0.5), q(x[0]), len(q) * q.derivative()(x[3]), Polynomial.clean(q[2]), *p])


class Layer(abc.ABC):
    def __init__(self, width):
        self.width = width

    @abc.abstractmethod
    def apply(self, v): ...

    def __call__(self, v):
        return self.apply(v) / self.width


class Dense(Layer):
    def __init__(self, weights):
        super().__init__(len(weights))
        self.weights = weights

    def apply(self, v):
        return np.tanh(self.weights @ v)


class Residual(Dense):
    def apply(self, v):
        return v + super().apply(v)

    def __getattr__(self, name):
        if name == "gain":
            return self.weights[0, 0]
        raise AttributeError(name)


@program(np.array([[0.7, -1.3, 2.1], [0.4, 1.6, -0.9], [1.1, 0.3, -2.2]]), products=True)
def inheritance(x):
    layers = [Dense(x), Residual(x.T), Residual(x @ x)]
    v = np.array([1.0, 0.5, x[0, 0]])
    for layer in layers:
        v = layer(v)
    return v * layers[1].gain * getattr(layers[2], "missing", 2.0)


class Switch:
    """A descriptor, a context manager and an iterator in one."""

    def __set_name__(self, owner, name):
        self.slot = "_" + name

    def __get__(self, instance, owner=None):
        return getattr(instance, self.slot) * 2.0

    def __set__(self, instance, value):
        setattr(instance, self.slot, value * 3.0)


class Damper:
    rate = Switch()

    def __init__(self, rate):
        self.rate = rate
        self.entered = 0.0

    def __enter__(self):
        self.entered = self.rate
        return self

    def __exit__(self, kind, error, traceback):
        self.entered = self.entered * 2.0
        return kind is ArithmeticError

    def __iter__(self):
        for i in range(3):
            yield self.rate**i


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2


@program(X)
def protocols(x):
    damper = Damper(x[0])
    with damper as d, contextlib.ExitStack() as stack:
        stack.enter_context(Damper(x[1]))
        total = d.rate * x[2]
        raise ArithmeticError
    total = total + damper.entered

    @contextlib.contextmanager
    def scaled(factor):
        damper.rate = factor
        yield damper.rate
        damper.rate = 1.0

    with scaled(x[3]) as rate:
        total = total * rate
    speeds = {Mode.FAST: x[4], Mode.SLOW: x[0]}
    return np.array(
        [total, *damper, speeds[Mode.FAST] * speeds[Mode.SLOW], vars(damper)["entered"]]
    )

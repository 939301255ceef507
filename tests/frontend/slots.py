"""Programs on objects of classes with ``__slots__``, whole or in part."""

import abc
import copy
import dataclasses
from dataclasses import dataclass, field

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
REGISTERED = []


class Point:
    __slots__ = ("__hidden", "x", "y")
    scale = 2.0

    def __init__(self, x, y):
        self.x, self.y = x, y
        self.__hidden = x * y

    def __add__(self, other):
        return type(self)(self.x + other.x, self.y + other.y)

    def __eq__(self, other):
        return isinstance(other, Point) and self.x == other.x

    __hash__ = None

    @property
    def hidden(self):
        return self.__hidden * self.scale

    @hidden.setter
    def hidden(self, value):
        self.__hidden = value

    def norm(self):
        return np.sqrt(self.x**2 + self.y**2)

    def __init_subclass__(cls, **options):
        REGISTERED.append(cls)


class Solid(Point):
    """Slots of its own and those of its base."""

    __slots__ = ("z",)

    def __init__(self, x, y, z):
        super().__init__(x, y)
        self.z = z

    def norm(self):
        return super().norm() + abs(self.z)


class Loose(Point):
    """A ``__dict__`` beside the slots of its base."""

    def __init__(self, x, y, mass):
        super().__init__(x, y)
        self.mass = mass


class Shape(abc.ABC):
    __slots__ = ("size",)

    @abc.abstractmethod
    def area(self): ...


class Square(Shape):
    __slots__ = ()

    def area(self):
        return self.size**2


class Singular:
    __slots__ = ("a",)

    def __new__(cls, a):
        made = super().__new__(cls)
        made.a = 2.0 * a
        return made


@dataclass(slots=True)
class Body:
    x: float
    v: float = 0.0
    trail: list = field(default_factory=list)

    def drift(self, dt):
        self.x += dt * self.v
        self.trail.append(self.x)


@dataclass(slots=True, frozen=True, order=True)
class Pair:
    a: float
    b: float = 2.0

    def swapped(self):
        return Pair(self.b, self.a)


@program((1.5, 2.5), (0.25, -3.0))
def attributes(*p):
    o = Point(p[0], p[1])
    o.x *= 2.0
    o.hidden = o.hidden + o.norm()
    return o.hidden, o.x, (o + o).y, hasattr(o, "z"), getattr(o, "z", 5.0)


@program((1.5, 2.5), (0.25, -3.0))
def types(*p):
    o = Solid(p[0], p[1], 3.0)
    q = Loose(p[0], p[1], 3.0)
    same = type(o) is Solid, o.__class__ is Solid, type(q) is Loose, isinstance(o, Point)
    names = type(o).__name__, type(o).__mro__, o.__slots__
    return same, names, isinstance(q, Solid), issubclass(type(q), Point), o.norm() + q.mass


@program((2.0,), (-3.0,))
def answered(x):
    o = Solid(x, 2 * x, 3 * x)
    return [o, Loose(x, o.y, 1.0), o], Body(x, 1.0, [x]), Pair(x).swapped()


@program((2.0,), (-3.0,))
def no_other_attributes(x):
    found = []
    o, q = Solid(x, x, x), Loose(x, x, x)
    q.other = x
    for name in ("other", "scale", "norm", "__dict__"):
        try:
            setattr(o, name, x)
        except AttributeError:
            found.append(name)
    try:
        vars(o)
    except TypeError:
        found.append("vars")
    try:
        found.append(o.__dict__)
    except AttributeError:
        found.append("__dict__")
    return found, q.other


@program((2.0,), (-3.0,), (0.5,))
def one_of_two(x):
    if x > 1:
        o = Point(x, 1.0)
    else:
        o = Point(2.0, x)
        o.x = x * x
    if x < 0:
        o.y = x
    return o.x * o.y, o.hidden, o


@program((3,), (0,), (1,), (7,))
def in_a_loop(n):
    o = Body(1.0, 0.5)
    p = Point(0.0, 1.0)
    for k in range(n):
        p = p + Point(k, 0.5)
        o.v = o.v * 1.5
        o.x += o.v
    return o, p.x * p.y


@program((3.0,), (-1.0,))
def unset_on_one_side(x):
    o = Square()
    if x > 0:
        o.size = x
    return o.area()


@program((3.0,), (-1.0,))
def deleted(x):
    o = Point(x, 1.0)
    del o.x
    try:
        return o.x
    except AttributeError:
        o.x = x * 2
    return o.x


@program((3.0,), (-1.0,))
def frozen_ones(x):
    p = Pair(x)
    try:
        p.a = 2.0
    except dataclasses.FrozenInstanceError:
        q = dataclasses.replace(p, b=x * x)
    return q, p == Pair(x), p < q, dataclasses.astuple(q), hash(Pair(1.0)) == hash(Pair(1.0))


@program((3.0,), (-1.0,))
def frozen_by_a_value(x):
    p = Pair(x) if x > 0 else Pair(2.0, x)
    return p.a * p.b, p


@program((3.0,), (-1.0,))
def own_new(x):
    return Singular(x).a, Singular(1.0)


@program((3.0,), (-1.0,))
def abstract(x):
    try:
        return Shape()
    except TypeError:
        o = Square()
        o.size = x
        return o.area()


@program((3.0,), (-1.0,))
def copies(x):
    o = Body(x, 2.0, [x])
    p, q = copy.copy(o), copy.deepcopy(o)
    o.trail.append(1.0)
    p.x = x * x
    r = copy.deepcopy(Pair(x, x))
    return o, p, q, r, type(p) is Body


@program((3.0, 2.0), (-1.0, 0.5))
def matched(*p):
    match Pair(p[0]):
        case Solid():
            return 0.0
        case Pair(a, b=2.0):
            return a * p[1]


@program((Solid(1.0, 2.0, 3.0), V), (Solid(-1.0, 0.5, 2.5), W))
def given(o, a):
    o.z = o.x * a[0]
    o.hidden = 3.0
    return o.hidden + o.norm(), o


@program((Loose(1.0, 2.0, 3.0), 2.0), (Loose(-1.0, 0.5, 2.5), 3.0))
def given_with_both(o, x):
    o.x = o.mass * x
    o.made = x
    del o.y
    return o.mass * o.x


@program((Body(1.0, 2.0, [3.0]), 2), (Body(-1.0, 0.5, [4.0]), 3))
def given_and_drifting(o, n):
    o.drift(n)
    o.trail[0] *= o.x
    return o.x


def made_inside(x):
    """For derivatives."""
    o = Solid(x[0], x[1], 2.0)
    b = Body(x[2])
    for k in range(3):
        o.x = o.x * x[1] + b.x
        b.v = o.norm()
        b.x += 0.1 * x[k]
        if o.x > 1:
            p = Pair(o.x, o.z)
        else:
            p = Pair(b.v).swapped()
        o.z = p.a * p.b
        o.hidden = o.hidden + p.a
    b.drift(x[1])
    return o.hidden * b.trail[0] + o.z


@dataclass(slots=True)
class State:
    position: np.ndarray
    mass: float

    def moved(self, dt):
        return State(self.position + dt * self.mass, self.mass * 1.5)


def of_an_object(s):
    t = s.moved(0.25)
    s.position[0] = t.mass
    m = s.mass * t.position[1]
    return np.sum(s.position * t.position) * m

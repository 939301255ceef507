"""Programs on objects of classes."""

from dataclasses import dataclass, field, replace

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])


@dataclass
class Body:
    x: float
    v: float = 0.0
    trail: list = field(default_factory=list)

    def kick(self, a):
        self.v += a

    def drift(self, dt):
        self.x += dt * self.v

    @property
    def energy(self):
        return 0.5 * self.v**2 + self.x


@dataclass(frozen=True)
class Parameters:
    k: float
    n: int = 2

    def force(self, x):
        return -self.k * x**self.n


class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, s):
        return Vector(self.x * s, self.y * s)

    __rmul__ = __mul__

    def __neg__(self):
        return Vector(-self.x, -self.y)

    def __eq__(self, other):
        return isinstance(other, Vector) and self.x == other.x and self.y == other.y

    __hash__ = None

    def __getitem__(self, k):
        return (self.x, self.y)[k]

    def __len__(self):
        return 2

    def __bool__(self):
        return self.x != 0


class Shape:
    scale = 2.0

    def __init__(self, size):
        self.size = size

    def area(self):
        return self.scale * self.size

    @classmethod
    def unit(cls):
        return cls(1.0)

    @staticmethod
    def double(x):
        return 2 * x


class Disc(Shape):
    scale = 3.0

    def __init__(self, size, hole):
        super().__init__(size)
        self.hole = hole

    def area(self):
        return super().area() - self.hole

    def __call__(self, x):
        return self.area() * x


class Simulation:
    def __init__(self, n):
        self.u = np.zeros(n)
        self.count = 0
        self.last = None

    def step(self, dt):
        self.u[1:-1] += dt * (self.u[2:] - self.u[:-2])
        self.count += 1
        self.last = self.u[0]


class WithSetter:
    def __init__(self, x):
        self._x = x

    @property
    def x(self):
        return self._x

    @x.setter
    def x(self, value):
        self._x = 2 * value


@program((Body(1.0, 2.0), 0.5), (Body(-3.0, 1.0), 0.1))
def dataclass_argument_is_read(b, dt):
    return b.x + dt * b.v, b.energy


@program((Body(1.0, 2.0), 0.5), (Body(-3.0, 1.0), 0.1))
def dataclass_argument_is_changed(b, dt):
    b.kick(dt)
    b.drift(dt)
    return b.energy


@program((Body(1.0, 2.0), 5), (Body(-3.0, 1.0), 0))
def dataclass_argument_is_changed_in_a_loop(b, n):
    for _ in range(n):
        b.kick(-b.x)
        b.drift(0.1)


@program((Body(1.0, 2.0), 5.0), (Body(-3.0, 1.0), -1.0))
def dataclass_argument_gets_an_attribute(b, x):
    b.extra = x * b.x
    b.trail.append(x)


@program((Body(1.0, 2.0), 5.0), (Body(-3.0, 1.0), -1.0))
def dataclass_argument_is_returned(b, x):
    b.x = x
    return b


@program((Body(1.0, 2.0), 5.0), (Body(-3.0, 1.0), -1.0))
def attribute_is_bound_on_one_side(b, x):
    if x > 0:
        b.v = x
    return b.v


@program((1.0, 2.0, 4), (2.0, 0.0, 0))
def local_dataclass(x, v, n):
    b = Body(x, v)
    for _ in range(n):
        b.kick(-0.1 * b.x)
        b.drift(0.1)
    return b.x, b.energy


@program((1.0, 2.0), (2.0, 0.0))
def local_dataclass_is_returned(x, v):
    b = Body(x, v=v)
    b.trail.append(x)
    return b


@program((Parameters(2.0, 3), 1.5), (Parameters(0.5, 1), -1.5))
def frozen_dataclass(p, x):
    return p.force(x), replace(p, k=x).force(2.0)


@program((1.5, 4), (0.5, 0))
def frozen_dataclass_is_carried(x, n):
    p = Parameters(x)
    for _ in range(n):
        p = Parameters(p.k * 1.1, p.n)
    return p.k, p


@program((1.0, 2.0), (0.0, -1.0))
def operators_of_a_class(x, y):
    a, b = Vector(x, y), Vector(y, 1.0)
    c = a + b * 2 + 3 * (-a)
    return c.x, c.y, c[0], len(c), a == b, 1.0 if a else 2.0


@program((1.0, 2.0, 3), (0.0, -1.0, 0))
def object_is_carried(x, y, n):
    p, v = Vector(x, y), Vector(1.0, 0.5)
    for _ in range(n):
        p = p + v * 0.1
        v = v * 0.9
    return p.x, p.y, v.x


@program((Vector(1.0, 2.0), Vector(3.0, 4.0)), (Vector(-1.0, 2.0), Vector(0.0, 4.0)))
def objects_as_arguments(a, b):
    c = a + b
    return c.x * c.y, c


@program((2.0, 0.5), (1.0, 0.25))
def inheritance_and_super(s, h):
    d = Disc(s, h)
    return d.area(), d(2.0), Shape(s).area(), Shape.double(s), Disc.double(h), Shape.unit().area()


@program((V, 3), (W, 1), (W, 0))
def simulation_object(u, n):
    sim = Simulation(len(u))
    sim.u[:] = u
    for _ in range(n):
        sim.step(0.1)
    return sim.u, sim.count


def _simulation(u):
    sim = Simulation(len(u))
    sim.u[:] = u
    return sim


@program((_simulation(V), 0.1), (_simulation(W), 0.2))
def simulation_argument(sim, dt):
    sim.step(dt)
    return sim.u.sum()


@program((_simulation(V), 3), (_simulation(W), 5))
def simulation_argument_in_a_loop(sim, n):
    for _ in range(n):
        sim.step(0.1)
    return sim.u.sum()


@program((1.0,), (2.0,))
def setter_of_a_property(x):
    w = WithSetter(x)
    w.x = x + 1
    w.x += 1
    return w.x


@program((Body(1.0),), (Body(2.0),))
def getattr_setattr_hasattr(b):
    setattr(b, "v", getattr(b, "x") * 3)
    return getattr(b, "nothing", 5.0), hasattr(b, "x"), isinstance(b, Body), type(b) is Body


@program((Body(1.0, 2.0), Body(5.0, 0.0)), (Body(0.0, 2.0), Body(1.0, 1.0)))
def two_objects_are_swapped(a, b):
    a, b = b, a
    a.x = 100.0
    return b.x


@program((1.0, 3), (2.0, 0))
def objects_in_a_list(x, n):
    bodies = [Body(x, 1.0), Body(-x, 0.5)]
    for _ in range(n):
        for b in bodies:
            b.drift(0.1)
            b.kick(-b.x)
    return [b.x for b in bodies], bodies[0].energy


@program(([Body(1.0), Body(2.0)], 3), ([Body(-1.0), Body(0.0)], 1))
def list_of_objects_argument_is_changed(bodies, n):
    for _ in range(n):
        for b in bodies:
            b.kick(0.5)
            b.drift(0.1)
    return sum(b.x for b in bodies)

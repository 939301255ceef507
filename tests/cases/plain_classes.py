"""Plain classes as users write them, each with a function of an instance.

``make(v)`` builds an instance of the numbers v by its own constructor, ``numbers(o)`` reads them
back from it, or from a gradient of it.
"""

import functools
import types
from collections import namedtuple
from dataclasses import dataclass

import numpy as np

import fwdad


class Rod:
    """Numbers and an array, beside fields without a derivative."""

    material = "steel"
    factor = 2.0

    def __init__(self, length, places, name="rod", count=3, profile=np.sin):
        self.length, self.places = length, places
        self.name, self.count, self.profile, self.nothing = name, count, profile, None

    def bend(self):
        return self.factor * self.length**2 * np.sum(self.profile(self.places)) + self.count


class Slotted:
    __slots__ = ("__hidden", "a", "b", "unset")

    def __init__(self, a, b):
        self.a, self.b, self.__hidden = a, b, a * 1.0

    def hidden(self):
        return self.__hidden


class Base:
    __slots__ = ("w",)

    def __init__(self, w):
        self.w = w


class Derived(Base):
    """A slot of the base, a ``__dict__`` of its own, a property and a cached property."""

    def __init__(self, w, scale):
        super().__init__(w)
        self.scale = scale

    @property
    def doubled(self):
        return 2.0 * self.w

    @doubled.setter
    def doubled(self, value):
        self.w = value / 2.0

    @functools.cached_property
    def square(self):
        return self.w**2

    def __call__(self, x):
        return self.doubled * self.square * self.scale + x


class Checked:
    """Invariants, comparison and hash of its own, and attributes that cannot be assigned."""

    def __init__(self, a, b):
        if not a > 0:
            raise ValueError("a must be positive")
        object.__setattr__(self, "a", a)
        object.__setattr__(self, "b", b)

    def __setattr__(self, name, value):
        raise AttributeError(f"{name} is read only")

    def __eq__(self, other):
        raise RuntimeError("never compared")

    def __hash__(self):
        raise RuntimeError("never hashed")


class Delegating:
    """Fields that are found by ``__getattr__``, in a dict."""

    def __init__(self, **values):
        self.__dict__["_values"] = values

    def __getattr__(self, name):
        try:
            return self.__dict__["_values"][name]
        except KeyError:
            raise AttributeError(name) from None


class Mutable:
    """It changes when it is used, as a struct that is updated in place."""

    def __init__(self, value, work):
        self.value, self.work, self.steps = value, work, 0

    def step(self):
        self.value = self.value * self.work[0] + self.work[1]
        self.work[1] *= self.value
        self.steps += 1


class Node:
    """A part of a tree that knows its parent."""

    def __init__(self, value, *children):
        self.value, self.children, self.parent = value, list(children), None
        for child in children:
            child.parent = self

    def total(self):
        up = self.parent.value if self.parent is not None else 1.0
        return self.value**2 * up + sum(child.total() for child in self.children)


class OwnNew:
    def __new__(cls, a):
        made = object.__new__(cls)
        made.a = a
        return made


class Bound:
    """A field that is a method of the object itself."""

    def __init__(self, a, power):
        self.a = a
        self.run = self.square if power == 2 else self.cube

    def square(self):
        return self.a**2

    def cube(self):
        return self.a**3


@fwdad.constant_fields("grid", "table")
class Marked:
    def __init__(self, a, grid, table):
        self.a, self.grid, self.table = a, grid, table


@fwdad.constant_fields("grid")
@dataclass
class MarkedData:
    a: np.ndarray
    grid: np.ndarray


@dataclass
class Computed:
    """A dataclass with an attribute that is no field of it."""

    a: float

    def __post_init__(self):
        self.half = self.a / 2.0


class Pair(namedtuple("Pair", "a b")):  # noqa: PYI024  (the old spelling is a case)
    """A constructor that takes one argument for two fields."""

    __slots__ = ()

    def __new__(cls, a):
        return super().__new__(cls, a, 2.0 * a)


GRID = np.array([1.0, 2.0])


def _shared(v):
    rod = Rod(v[0], v[1:3].copy())
    return {"left": rod, "both": [rod, rod]}


def _mutated(m):
    for _ in range(3):
        m.step()
    return m.value + m.work[1] * m.steps


CASES = {
    "numbers and an array": (
        lambda v: Rod(v[0], v[1:4].copy()),
        lambda rod: [rod.length, *rod.places],
        lambda rod: rod.bend(),
        4,
    ),
    "slots": (
        lambda v: Slotted(v[0], v[1]),
        lambda o: [o.a + o.hidden(), o.b],  # the constructor moves both
        lambda o: o.a * o.b**2 * o.hidden(),
        2,
    ),
    "slots of a base": (
        lambda v: Derived(v[0], v[1:3].copy()),
        lambda o: [o.w, *o.scale],
        lambda o: np.sum(o(np.array([1.0, 2.0]))),
        3,
    ),
    "invariants": (
        lambda v: Checked(abs(v[0]), v[1]),
        lambda o: [o.a, o.b],
        lambda o: np.exp(o.a) * o.b,
        2,
    ),
    "getattr": (
        lambda v: Delegating(a=v[0], b=v[1:3].copy()),
        lambda o: [o.a, *o.b],
        lambda o: o.a**2 * np.prod(o.b),
        3,
    ),
    "changed in place": (
        lambda v: Mutable(v[0], v[1:3].copy()),
        lambda o: [o.value, *o.work],
        _mutated,
        3,
    ),
    "a tree with a way back": (
        lambda v: Node(v[0], Node(v[1]), Node(v[2], Node(v[3]))),
        lambda n: [
            n.value, n.children[0].value, n.children[1].value, n.children[1].children[0].value
        ],
        lambda n: n.total(),
        4,
    ),
    "new of its own": (
        lambda v: OwnNew(v[0]), lambda o: [o.a], lambda o: o.a**3, 1,
    ),
    "a method of itself": (
        lambda v: Bound(v[0], 3), lambda o: [o.a], lambda o: o.run() + o.square(), 1,
    ),
    "constant fields": (
        lambda v: Marked(v[:2].copy(), GRID.copy(), {"k": 3.0}),
        lambda o: list(o.a),
        lambda o: np.sum(o.a**2 * o.grid) * o.table["k"],
        2,
    ),
    "constant fields of a dataclass": (
        lambda v: MarkedData(v[:2].copy(), GRID.copy()),
        lambda o: list(o.a),
        lambda o: np.sum(o.a**2 * o.grid),
        2,
    ),
    "beside the fields of a dataclass": (
        lambda v: Computed(v[0]),
        lambda o: [o.a + 0.5 * o.half],
        lambda o: o.a**2 * o.half,
        1,
    ),
    "a namespace": (
        lambda v: types.SimpleNamespace(a=v[0], b=v[1:3].copy(), name="n"),
        lambda o: [o.a, *o.b],
        lambda o: o.a * np.sum(np.cos(o.b)),
        3,
    ),
    "a named tuple": (
        lambda v: Pair(v[0]), lambda p: [p.a + 2.0 * p.b], lambda p: p.a**2 * p.b, 1,
    ),
    "shared objects": (
        _shared,
        lambda x: [x["left"].length, *x["left"].places],
        lambda x: x["left"].bend() * x["both"][0].length + x["both"][1].bend(),
        3,
    ),
}  # fmt: skip
"""name -> make, numbers, f, how many numbers."""

NUMBERS = np.array([0.7, 1.3, -0.4, 0.9])

"""Composites: every container that Python has, flattened into leaves and put together again."""

import copy
import dataclasses
import functools
import os
import pickle
import time
from collections import Counter, OrderedDict, defaultdict, namedtuple
from dataclasses import InitVar, dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import OptimizeResult

import fwdad
from fwdad.errors import SeedError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import flatten, lanes_of, unflatten, unzip
from fwdad.tangents.matching import map_tree, match
from fwdad.tangents.zero import ZERO, NoTangent
from tests.tangents.classes import Slots


class Point(NamedTuple):
    x: float
    y: float = 2.0

    def norm(self):
        return (self.x**2 + self.y**2) ** 0.5


Plain = namedtuple("Plain", ["a", "b"])  # noqa: PYI024  (the old spelling is a case)


class Checked(Plain):
    """A constructor that a tangent would not pass, and an attribute beside the fields."""

    def __new__(cls, a, b):
        if a < 0:
            raise ValueError(a)
        made = super().__new__(cls, a, b)
        made.unit = "m"
        return made


class Vector(tuple):  # noqa: SLOT001  (users forget them)
    """A tuple subclass that takes its elements one by one."""

    def __new__(cls, *items):
        return super().__new__(cls, items)


class Stack(list):
    def __init__(self, limit, items=()):
        super().__init__(items)
        self.limit = limit

    def append(self, item):
        if len(self) == self.limit:
            raise OverflowError
        super().append(item)

    def clear(self):
        raise RuntimeError("a stack is never cleared")


class Settings(dict):
    def __init__(self, owner):
        super().__init__()
        self.owner = owner

    def __setitem__(self, key, value):
        if not isinstance(value, float):
            raise TypeError(value)
        super().__setitem__(key, value)


@dataclass
class Mutable:
    a: float
    b: np.ndarray
    tag: str = "t"


@dataclass(frozen=True, slots=True)
class Frozen:
    a: float
    b: list = field(default_factory=list)
    count: int = 3


@dataclass
class WithInit:
    a: float
    scale: InitVar[float]
    constant: ClassVar[float] = 5.0
    total: float = field(init=False)
    made: list = field(default_factory=lambda: ["fresh"], compare=False)

    def __post_init__(self, scale):
        if scale < 0:
            raise ValueError(scale)
        self.total = self.a * scale
        self.beside = "kept"


@dataclass
class Cached:
    radius: float
    name: str = "disc"

    @functools.cached_property
    def area(self):
        return 3.0 * self.radius**2


class Private:
    __slots__ = ("__hidden",)


@dataclass
class Mangled(Private):
    a: float

    def __post_init__(self):
        self._Private__hidden = "seen"


@dataclass
class DataError(ArithmeticError):
    a: float


def settings():
    made = Settings("me")
    made["a"] = 1.0
    return made


ARRAY = np.arange(3.0)


VALUES = {
    "float": (1.5, 1),
    "complex": (1.5j, 1),
    "float32": (np.float32(2), 1),
    "array": (ARRAY, 1),
    "0-d array": (np.array(2.0), 1),
    "empty array": (np.zeros((0, 3)), 1),
    "int": (3, 0),
    "bool": (True, 0),
    "int array": (np.arange(3), 0),
    "bool array": (np.ones(3, bool), 0),
    "string array": (np.array(["a"]), 0),
    "dates": (np.array(["2020-01-01"], "M8[D]"), 0),
    "None": (None, 0),
    "function": (len, 0),
    "empty tuple": ((), 0),
    "empty list": ([], 0),
    "empty dict": ({}, 0),
    "nested empties": ([(), {}, [[]]], 0),
    "tuple": ((1.0, 2, "a"), 1),
    "nested": ([1.0, (ARRAY, {"a": 2.0, "b": [3]})], 3),
    "NamedTuple": (Point(1.0), 2),
    "namedtuple": (Plain(ARRAY, 2), 1),
    "checked namedtuple": (Checked(1.0, 2), 1),
    "tuple subclass": (Vector(1.0, 2.0, "a"), 2),
    "list subclass": (Stack(2, [1.0, 2.0]), 2),
    "OrderedDict": (OrderedDict(b=1.0, a=2.0), 2),
    "defaultdict": (defaultdict(list, {"a": [1.0]}), 1),
    "Counter": (Counter("aab"), 0),
    "dict subclass": (settings(), 1),
    "keys of all kinds": ({1: 1.0, "1": 2.0, (1, 2): 3.0, None: 4.0}, 4),
    "OptimizeResult": (OptimizeResult(x=ARRAY, success=True, fun=1.0), 2),
    "mutable dataclass": (Mutable(1.0, ARRAY), 2),
    "frozen dataclass with slots": (Frozen(1.0, [2.0]), 2),
    "dataclass with slots": (Slots(1.0, {"a": 2.0}), 2),
    "dataclass with InitVar": (WithInit(2.0, 3.0), 2),
    "dataclass with a mangled slot": (Mangled(2.0), 1),
    "dataclass that is an exception": (DataError(1.0), 1),
    "struct_time": (time.gmtime(0), 0),
    "stat_result": (os.stat_result((1.0, *range(9))), 1),
}


def same(a, b):
    """Whether two values are equal in type, structure, elements and attributes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a) and attributes(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b)) and attributes(a, b)
    return (a == b and attributes(a, b)) if not dataclasses.is_dataclass(a) else attributes(a, b)


def attributes(a, b):
    names = {name for cls in type(a).__mro__ for name in cls.__dict__.get("__slots__", ())}
    names = {n if not n.startswith("__") else f"_Private{n}" for n in names} - {
        "_Private__weakref__"
    }
    held = {**getattr(a, "__dict__", {}), **{n: getattr(a, n) for n in names if hasattr(a, n)}}
    return all(same(value, getattr(b, name)) for name, value in held.items())


@pytest.mark.parametrize("name", VALUES)
def test_apart_and_together(name):
    x, count = VALUES[name]
    leaves, structure = flatten(x, strict=True)
    assert len(leaves) == count
    made = unflatten(structure, leaves)
    assert same(made, x)
    if count and not isinstance(x, (float, complex, np.generic, np.ndarray)):
        assert made is not x


@pytest.mark.parametrize("name", [name for name, (_, count) in VALUES.items() if count])
def test_any_leaf_fits_in_its_place(name):
    """Duals, chunks and tangents are put in the places of numbers, past every constructor."""
    x, count = VALUES[name]
    marks = [object() for _ in range(count)]
    _, structure = flatten(x)
    made = unflatten(structure, marks, lambda _: NoTangent)
    found, _ = flatten(made, leaf=lambda v: type(v) is object)
    assert found == marks


@pytest.mark.parametrize("name", [name for name, (_, count) in VALUES.items() if count])
def test_seeds_of_the_same_structure_fit(name):
    x, count = VALUES[name]
    leaves, structure = flatten(x)
    assert all(a is b for a, b in zip(match(structure, x), leaves, strict=True))
    assert match(structure, ZERO) == [ZERO] * count


def test_the_structure_does_not_see_later_changes():
    """What a call wrote is undone when it ends; its value must not be undone with it."""
    x = [Mutable(1.0, ARRAY), defaultdict(list, a=[2.0]), Stack(3, [1.0]), WithInit(1.0, 2.0)]
    expected = copy.deepcopy(x)
    leaves, structure = flatten(x)
    x[0].__dict__.clear()
    x[1].clear()
    list.clear(x[2])
    x[3].__dict__.clear()
    x.clear()
    assert same(unflatten(structure, leaves), expected)


def test_a_class_keeps_its_ways():
    x = {"d": defaultdict(list, a=1.0), "o": OrderedDict(b=1.0), "s": Stack(1, [1.0])}
    leaves, structure = flatten(x)
    made = unflatten(structure, leaves)
    assert made["d"]["missing"] == []
    made["o"].move_to_end("b")
    with pytest.raises(OverflowError):
        made["s"].append(2.0)
    assert made["s"].limit == 1


def test_a_cached_property_is_computed_anew():
    """Kept from before, it would lose the derivative in silence."""
    disc = Cached(2.0)
    assert disc.area == 12.0
    y, y_dot = fwdad.jvp(lambda disc: disc.area, disc, Cached(1.0))
    assert (y, y_dot) == (12.0, 12.0)
    assert disc.__dict__["area"] == 12.0


def test_fields_without_a_value_are_left_out():
    made = WithInit.__new__(WithInit)
    made.a = 1.0
    leaves, structure = flatten(made)
    assert leaves == [1.0]
    assert not hasattr(unflatten(structure, leaves), "total")


# -- sharing and cycles


def test_a_shared_array_is_one_leaf():
    a = np.ones(2)
    leaves, structure = flatten((a, [a, 1.0], {"k": a}))
    assert len(leaves) == 2
    made = unflatten(structure, [np.zeros(2), 5.0])
    assert made[0] is made[1][0] is made[2]["k"]


def test_two_views_of_one_array_are_two_leaves():
    a = np.ones(4)
    assert len(flatten((a[:2], a[:2]))[0]) == 2


def test_a_shared_container_is_one():
    shared = [1.0]
    leaves, structure = flatten((shared, shared))
    assert leaves == [1.0]
    made = unflatten(structure, [2.0])
    assert made[0] is made[1]
    # equal containers that are not the same stay two
    assert len(flatten(([1.0], [1.0]))[0]) == 2


@pytest.mark.parametrize(
    "seed",
    [
        lambda a, b: ([a, a], [b, a]),
        lambda a, b: ([a, b], [a, a]),
    ],
)
def test_unequal_seeds_of_a_shared_list_raise(seed):
    """CASES, forward 4: also where the arrays are shared by way of their list."""
    a, b = np.ones(2), np.zeros(2)
    shared = [a, b]
    with pytest.raises(SeedError, match="two different seeds"):
        fwdad.jvp(lambda x: x[0][0] + x[1][1], (shared, shared), seed(a, b))


def test_equal_seeds_of_a_shared_list_are_one():
    a = np.array([1.0, 3.0])
    shared = [a]
    y, y_dot = fwdad.jvp(
        lambda x: x[0][0] * x[1][0], (shared, shared), ([np.ones(2)], [np.ones(2)])
    )
    assert_array_equal(y, a**2)
    assert_array_equal(y_dot, 2 * a)  # one tangent, counted by both factors
    jacobian = fwdad.jacobian(lambda x: x[0][0] * x[1][0], (shared, shared))
    assert jacobian[0][0] is jacobian[1][0]
    assert_array_equal(jacobian[0][0], np.diag(2 * a))


def test_cycles():
    x = [1.0]
    x.append(x)
    x.append({"self": x, "b": ARRAY})
    x[2]["inner"] = x[2]
    leaves, structure = flatten(x)
    assert len(leaves) == 2
    made = unflatten(structure, [5.0, ARRAY])
    assert made[1] is made
    assert made[2]["self"] is made
    assert made[2]["inner"] is made[2]
    assert match(structure, x)[0] == 1.0
    y, y_dot = fwdad.jvp(lambda x: x[1][1][0] * x[2]["b"], x, x)
    assert_array_equal(y_dot, 2 * y)


def test_a_cycle_through_a_dataclass():
    node = Slots(2.0)
    node.other = [node]
    leaves, structure = flatten(node)
    made = unflatten(structure, leaves)
    assert made.other[0] is made
    assert fwdad.grad(lambda n: n.other[0].a ** 2)(node).a == 4.0


def test_a_cycle_is_not_matched_by_what_ends():
    x = [1.0]
    x.append(x)
    with pytest.raises(SeedError, match=r"x\[1\]"):
        fwdad.jvp(lambda x: x[0], x, [1.0, 2.0])


# -- through the API


@pytest.mark.parametrize("width", [1, 2, 3, None])
def test_jacobian_of_and_with_respect_to_containers(width):
    x = {"p": Point(1.0, 3.0), "m": Mutable(2.0, np.array([1.0, 5.0])), "n": 7}

    def f(x):
        return OrderedDict(
            total=x["p"].norm() * x["m"].a, vector=Plain(x["m"].b * x["p"].x, x["n"])
        )

    y, J = fwdad.value_and_jacobian(f, x, chunk=width)
    norm = 10**0.5
    assert type(y) is OrderedDict
    assert y["vector"].b == 7
    total = J["total"]
    np.testing.assert_allclose([*total["p"], total["m"].a], [2 / norm, 6 / norm, norm])
    assert_array_equal(total["m"].b, [0.0, 0.0])
    assert total["n"] is NoTangent
    assert total["m"].tag is NoTangent
    assert type(J["vector"]) is Plain
    assert_array_equal(J["vector"].a["m"].b, np.eye(2))
    assert_array_equal(J["vector"].a["p"].x, [1.0, 5.0])
    assert J["vector"].b is NoTangent


@pytest.mark.parametrize("y", [(), [], {}, [(), {}]], ids=str)
def test_an_empty_result(y):
    value, tangent = fwdad.jvp(lambda _: copy.deepcopy(y), 1.0, 1.0)
    assert value == tangent == y


@pytest.mark.parametrize("x", [(), [], {}, [(), {}], [1, "a"], {"a": None}], ids=str)
def test_nothing_to_differentiate(x):
    with pytest.raises(UnsupportedTypeError, match=r"holds nothing|no tangent space"):
        fwdad.jvp(lambda _: 1.0, x)


def test_structures_are_compared():
    x = {"a": 1.0, "b": (2.0, 3.0)}
    bad = [
        ({"a": 1.0}, "keys|parts"),
        ({"a": 1.0, "c": (2.0, 3.0)}, "keys"),
        ({"a": 1.0, "b": (2.0,)}, r"x\['b'\]"),
        ({"a": 1.0, "b": [2.0, 3.0]}, r"x\['b'\].*tuple"),
        ((1.0, 2.0), "dict"),
        (1.0, "dict"),
    ]
    for seed, message in bad:
        with pytest.raises(SeedError, match=message):
            fwdad.jvp(lambda x: x["a"], x, seed)
    _, y_dot = fwdad.jvp(lambda x: x["a"] + x["b"][1], x, {"b": (0.0, 1.0), "a": 5.0})
    assert y_dot == 6.0  # keys, not positions


# -- trees of tangents


def test_map_tree_and_unzip():
    x = {"a": 1.0, "b": [np.ones(2), 3]}
    t = {"a": Chunk(np.ones(2)), "b": [Chunk(np.ones((2, 2))), NoTangent]}
    seen = []
    made = map_tree(lambda leaf, tangent: seen.append(tangent) or leaf * 2, x, t)
    assert [type(s) for s in seen] == [Chunk, Chunk]
    assert made["a"] == 2.0
    assert made["b"][1] == 3
    assert map_tree(lambda *_: None, x, ZERO) is x
    assert map_tree(lambda *_: None, 3, NoTangent) == 3
    primal, tangent = unzip(lambda leaf: (leaf, "t"), x)
    assert tangent == {"a": "t", "b": ["t", NoTangent]}
    assert primal["b"][1] == 3


def test_lanes_of_a_tree():
    chunk = Chunk(np.ones((4, 2)))
    assert lanes_of(chunk) == 4
    assert lanes_of((ZERO, {"a": [NoTangent, chunk]})) == 4
    assert lanes_of((Slots(ZERO, chunk), ZERO)) == 4
    assert lanes_of((ZERO, NoTangent, 1.0)) is None


def test_errors_are_pickled():
    with pytest.raises(UnsupportedTypeError) as caught:
        flatten(np.ma.ones(2), strict=True)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


class Fit(tuple):  # noqa: SLOT001  (it has an attribute)
    """What is held is seen through a property of the same name."""

    def __new__(cls, items, error):
        made = super().__new__(cls, items)
        made.__dict__["error"] = error
        return made

    error = property(lambda self: self.__dict__["error"])


def test_a_tuple_with_an_attribute():
    x = Fit([2.0, 3.0], 0.5)
    slope = fwdad.grad(lambda fit: fit[0] * fit[1] * fit.error)(x)
    assert type(slope) is Fit
    assert tuple(slope) == (1.5, 1.0)
    y = fwdad.jvp(lambda a: Fit([a, 2 * a], 0.5), 1.0, 3.0)
    assert [tuple(part) for part in y] == [(1.0, 2.0), (3.0, 6.0)]
    for call in (fwdad.derivative, fwdad.jacobian):
        with pytest.raises(UnsupportedTypeError, match="attribute 'error' carries a derivative"):
            call(lambda a: Fit([a, 2 * a], a**2), 1.0)

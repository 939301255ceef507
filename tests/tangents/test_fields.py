"""Which classes are plain, and which of their fields are differentiated."""

import abc
import argparse
import collections
import contextlib
import ctypes
import decimal
import enum
import functools
import logging
import random
import threading
import types
import typing
from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.stats
from scipy.sparse.linalg import LinearOperator

import fwdad
from fwdad import NoTangent
from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.fields import constants_of, fields_of, is_plain, why_not_plain
from tests.cases.plain_classes import Checked, Delegating, Derived, Rod, Slotted


class Color(enum.Enum):
    RED = 1.5


class Thread(threading.Thread):
    def __init__(self, a):
        super().__init__()
        self.a = a


class Structure(ctypes.Structure):
    _fields_ = (("a", ctypes.c_double),)


class Handle:
    def __init__(self, a):
        self.a = a

    def __del__(self):
        self.a = None


class Operator(LinearOperator):
    def __init__(self, a):
        super().__init__(float, (2, 2))
        self.a = a

    def _matvec(self, x):
        return self.a * x


class Generator(random.Random):
    pass


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    pass


class Abstract(abc.ABC):
    @abc.abstractmethod
    def run(self): ...


class Concrete(Abstract):
    def run(self):
        return 1.0


T = typing.TypeVar("T")


class Generic(typing.Generic[T]):
    pass


class Manager(contextlib.AbstractContextManager):
    def __exit__(self, *_):
        pass


class Dict(collections.UserDict):
    pass


class Indexable:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


PLAIN = [Rod, Slotted, Derived, Checked, Delegating, WithMeta, Concrete, Generic, Manager, Dict,
         types.SimpleNamespace]  # fmt: skip
NOT = {
    Thread: "threading.Thread",
    Handle: "__del__",
    Operator: "LinearOperator",
    Structure: "_ctypes.Structure",
    Generator: "random.Random",
}
CONSTANT = [
    int, str, list, dict, type, Meta, Color, ValueError, np.ndarray, np.ma.MaskedArray, Indexable,
    decimal.Decimal, threading.Thread, logging.Logger, argparse.Namespace, types.FunctionType,
    functools.partial, np.polynomial.Polynomial, scipy.stats.rv_continuous, fwdad.Chunk,
]  # fmt: skip


@pytest.mark.parametrize("cls", PLAIN, ids=lambda c: c.__name__)
def test_plain(cls):
    assert is_plain(cls)
    assert fwdad.tangent_type(cls, 2).primal is cls


@pytest.mark.parametrize("cls", NOT, ids=lambda c: c.__name__)
def test_not_plain(cls):
    assert NOT[cls] in why_not_plain(cls)
    with pytest.raises(UnsupportedTypeError, match="register_tangent_type"):
        fwdad.tangent_type(cls, 2)


@pytest.mark.parametrize("cls", CONSTANT, ids=lambda c: c.__name__)
def test_constant(cls):
    assert why_not_plain(cls) == ""


@pytest.mark.parametrize("make", [Thread, Handle, Operator])
def test_numbers_that_would_be_constants_are_refused(make):
    x = make(2.0)
    with pytest.raises(UnsupportedTypeError, match=r"x\['h'\] is an? \w+, .*would be constants"):
        fwdad.grad(lambda x: x["b"] * x["h"].a)({"h": x, "b": 3.0})
    # what is not differentiated may be anything
    assert fwdad.grad(lambda b, x: b * x.a)(3.0, x) == 2.0


def test_objects_without_numbers_are_constants():
    x = Thread("a")
    assert fwdad.grad(lambda x: x["b"] ** 2)({"h": x, "b": 3.0})["h"] is NoTangent
    assert fwdad.grad(lambda x: x[0] * x[1].value)([3.0, Color.RED]) == [1.5, NoTangent]


def test_a_subclass_of_a_registered_class_is_refused():
    class Base:
        pass

    class Other(Base):
        pass

    assert is_plain(Other)
    fwdad.register_tangent_type(Base, flatten=lambda x: ((), None), unflatten=lambda d, c: Base())
    assert "registered" in why_not_plain(Other)


def test_fields():
    o = Derived(2.0, 3.0)
    assert o.square == 4.0
    assert fields_of(o) == {"w": 2.0, "scale": 3.0}  # a cached property is none
    assert list(fields_of(Slotted(1.0, 2.0))) == ["_Slotted__hidden", "a", "b"]
    calls = []

    class Loud:
        def __getattribute__(self, name):
            if name == "__class__":
                return Loud
            calls.append(name)
            raise RuntimeError(name)

        def __setattr__(self, name, value):
            raise RuntimeError(name)

    loud = Loud()
    object.__setattr__(loud, "a", 1.0)
    assert fields_of(loud) == {"a": 1.0}
    made = fwdad.zero_tangent(loud, 2)
    assert object.__getattribute__(made, "a").shape == ()
    assert calls == []


@dataclass
class Defaults:
    b: float
    a: float = field(init=False, default=3.0)
    shared: typing.ClassVar[float] = 5.0


def test_fields_of_a_dataclass_come_as_declared():
    x = Defaults(1.0)
    x.beside = 2.0
    assert list(fields_of(x).items()) == [("b", 1.0), ("a", 3.0), ("beside", 2.0)]


# -- constant fields


def test_constants_are_inherited_and_added():
    @fwdad.constant_fields("a")
    class First:
        pass

    @fwdad.constant_fields("b", "__c")
    class Second(First):
        pass

    assert constants_of(First) == {"a"}
    assert constants_of(Second) == {"a", "b", "_Second__c"}
    assert constants_of(Rod) == frozenset()


@pytest.mark.parametrize("slots", [False, True])
@pytest.mark.parametrize("order", ["above", "below"])
def test_with_a_dataclass(order, slots):
    class Plain:
        a: float
        mesh: np.ndarray

    mark, make = fwdad.constant_fields("mesh"), dataclass(slots=slots)
    cls = mark(make(Plain)) if order == "above" else make(mark(Plain))
    for g in (fwdad.grad(_product), fwdad.jit(fwdad.grad(_product), backend="numpy")):
        slope = g(cls(2.0, np.array([3.0, 4.0])))
        assert slope.a == 28.0
        assert slope.mesh is NoTangent


def _product(x):
    return x.a**2 * np.sum(x.mesh)


def test_a_seed_may_have_anything_in_a_constant_field():
    @fwdad.constant_fields("mesh")
    class Body:
        def __init__(self, a, mesh):
            self.a, self.mesh = a, mesh

    x = Body(2.0, np.ones(2))
    for v in (Body(1.0, None), Body(1.0, np.ones(2)), fwdad.grad(_product)(x)):
        slope = fwdad.jvp(_product, x, v)[1]
        assert slope == 8.0 * v.a
        assert fwdad.jit(fwdad.jvp, backend="numpy")(_product, x, v)[1] == slope


def test_a_constant_field_may_lead_back():
    @fwdad.constant_fields("helper")
    class Owner:
        def __init__(self, a):
            self.a = a
            self.helper = lambda: self.a

    assert fwdad.grad(lambda o: o.a * o.helper())(Owner(3.0)).a == 3.0


@pytest.mark.parametrize(
    ("names", "decorated", "message"),
    [
        ((), Rod, "names of fields"),
        ((3,), Rod, "names of fields"),
        ((Rod,), Rod, "names of fields"),
        (("a",), len, "decorates a class"),
        (("c",), Defaults, "has no field 'c': its fields are a, b"),
        (("c",), Slotted, "has no field 'c'"),
        (("real",), float, "written in C|has no field"),
    ],
)
def test_wrong_marks(names, decorated, message):
    with pytest.raises(UnsupportedTypeError, match=message):
        fwdad.constant_fields(*names)(decorated)

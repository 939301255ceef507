"""Attributes, asked and set by `o.name`, by the slots of `object` and `property`, and by classes.

The arrays are plain ones that were written: only code that is lifted finds their derivatives.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.cases.check import check_jacobian, programs, with_widths
from tests.differences import central_differences

PROGRAMS, program = programs()

X = np.array([0.3, 0.5])


def written(x):
    a = np.zeros(2)
    a[:] = x
    return a


class Wave:
    def __init__(self, x):
        self.w = written(x)
        self.kept = None

    @property
    def exp(self):
        return np.exp(self.w)

    @property
    def lazy(self):
        if self.kept is None:
            self.kept = np.exp(self.w)
        return self.kept

    @property
    def put(self):
        return self._put

    @put.setter
    def put(self, value):
        self._put = np.array(value, dtype=complex)

    @put.deleter
    def put(self):
        self.w = np.exp(self.w)


class Asked(Wave):
    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        return value * 2 if name == "exp" else value


class Doubling(Wave):
    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2 if name == "put" else value)


class Deleting(Wave):
    def __delattr__(self, name):
        super().__delattr__(name)
        self.w = np.sin(self.w)


class Fallback(Wave):
    @property
    def broken(self):
        raise AttributeError("broken")

    def __getattr__(self, name):
        return np.exp(object.__getattribute__(self, "w"))


class Moved:
    def __get__(self, o, owner=None):
        return np.exp(o.w)

    def __set__(self, o, value):
        o.w = np.sin(value)

    def __delete__(self, o):
        o.w = np.cos(o.w)


class Holder(Wave):
    moved = Moved()


@program(X)
def own_getattribute_before_a_property(x):
    return Asked(x).exp


@program(X)
def property_through_getattribute(x):
    o = Wave(x)
    return o.__getattribute__("exp") + object.__getattribute__(o, "exp")


@program(X)
def property_through_its_slots(x):
    o = Wave(x)
    Wave.put.__set__(o, written(x))
    return Wave.put.fget(o).real + Wave.exp.__get__(o) + property.__get__(Wave.exp, o, Wave)


@program(X)
def setter_through_setattr_of_the_object(x):
    o = Wave(x)
    o.__setattr__("put", written(x) ** 2)
    return o.put.real


@program(X)
def setter_through_setattr_of_object(x):
    o = Wave(x)
    object.__setattr__(o, "put", written(x))
    return o.put.real


@program(X)
def own_setattr_before_a_setter(x):
    o = Doubling(x)
    o.put = written(x)
    first = o.put.real
    setattr(o, "put", written(first))  # noqa: B010
    return first * o.put.real


@program(X)
def deleters(x):
    total = 0.0
    for delete in (
        lambda o: o.__delattr__("put"),
        lambda o: object.__delattr__(o, "put"),
        lambda o: Wave.put.__delete__(o),
        lambda o: delattr(o, "put"),
    ):
        o = Wave(x)
        delete(o)
        total = total + o.w**2
    return total


@program(X)
def own_delattr_before_a_deleter(x):
    o = Deleting(x)
    del o.put
    return o.w


@program(X)
def hasattr_computes_what_is_kept(x):
    o = Wave(x)
    return o.lazy if hasattr(o, "lazy") else x


@program(X)
def getattr_after_a_broken_property(x):
    return Fallback(x).broken * (2.0 if hasattr(Fallback(x), "absent") else 1.0)


@program(X)
def descriptor_through_slots_of_object(x):
    o = Holder(x)
    o.__setattr__("moved", written(x))
    del o.moved
    return object.__getattribute__(o, "moved")


@program(X)
def functions_through_call(x):
    def f(a):
        return np.exp(a)

    return f.__call__(written(x)) + type(f).__call__(f, written(x)) + Wave(x).same.__call__(x)


Wave.same = lambda self, x: x * self.w


@pytest.mark.parametrize(("program", "chunk"), with_widths(PROGRAMS))
def test_program(program, chunk):
    check_jacobian(program, chunk)


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_reverse_mode(program):
    found = fwdad.jacobian(program.function, X, mode="reverse")
    assert_allclose(found, central_differences(program.function, X), rtol=1e-8)


def test_what_object_sets_is_put_back():
    o = Wave(X)

    def f(x):
        o.__setattr__("w", x * 2)
        return o.w * 3

    assert_allclose(fwdad.jacobian(f, X), 6 * np.eye(2))
    assert_allclose(o.w, X * 2)
    assert type(o.w) is np.ndarray

"""Attributes and operators that a class of the user's defines in Python, on tapes."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UnsupportedTypeError, UntraceableError
from tests.differences import central_differences

X = np.array([0.7, -1.3, 2.1])


class Copying:
    """What it returns is a copy: an update in place acts by the store behind it only."""

    def __init__(self, u):
        self._u = u
        self.count = 0

    @property
    def u(self):
        return self._u * 1.0

    @u.setter
    def u(self, v):
        self._u = v * 3.0
        self.count += 1

    @property
    def fixed(self):
        return self._u

    def __getitem__(self, k):
        return self._u[k] * 1.0

    def __setitem__(self, k, v):
        self._u[k] = v * 2.0


def updated_property(x):
    o = Copying(x * 1.0)
    o.u *= 2.0
    o.u += x[0]
    return o._u * o.count


def updated_item(x):
    o = Copying(x * 1.0)
    o[1:] *= x[0]
    o[0] -= 1.0
    return o._u


def updated_in_a_loop(x):
    o = Copying(x * 1.0)
    for i in range(3):
        o.u *= x[i]
        o[i:] += o.u[i:]
    return o._u


def copies_are_copies(x):
    o = Copying(x * 1.0)
    o.u[0] = 5.0
    o[:][0] = 5.0
    o._u[1] *= x[2]
    return o._u


class Adding:
    def __init__(self, a):
        self.a = a

    def __iadd__(self, o):
        self.a = self.a + 2 * o
        return self

    def __add__(self, o):
        return Adding(self.a + o)

    def __imul__(self, o):
        return Adding(self.a * o * 3)

    def __isub__(self, o):
        self.a -= o
        return Adding(self.a * 2)

    def __ipow__(self, o):
        return NotImplemented

    def __pow__(self, o):
        return Adding(self.a**o)

    def __divmod__(self, o):
        return self.a, o

    def __round__(self, digits=0):
        return self.a * (4 + digits)


def operators_in_place(x):
    v = Adding(x * 1.0)
    u = v
    v += x[0]
    v *= x[1]
    v -= x[2]
    v **= 2
    return u.a + v.a


def operators_in_a_loop(x):
    v = Adding(x * 1.0)
    held = {"v": v}
    for k in range(3):
        v += x[k]
    held["v"] += x[1]
    return v.a


def divided_and_rounded(x):
    v = Adding(x * 1.0)
    return divmod(v, 2.0)[0] * divmod(v, x[0])[1] + round(v) + round(v, 1)


class Doubling:
    """Attributes are set through `__setattr__`."""

    def __init__(self, a):
        object.__setattr__(self, "n", 2.0)
        self.a = a

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)


class DoublingAgain(Doubling):
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 3)


def set_by_the_class(x):
    o, p = Doubling(x * 1.0), DoublingAgain(x * 1.0)
    o.b = x[0]
    o.a *= x[1]
    p.a += x[2]
    return o.a * o.b * o.n + p.a


class Watching:
    def __init__(self, a):
        self.a = a
        self.held = {"q": a * 3}

    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        return found * 2 if name == "a" else found

    none = None

    def __getattr__(self, name):
        return self.held[name] * 2


def found_by_the_class(x):
    o = Watching(x * 1.0)
    return o.a * x[0] + o.q + (x if o.none is None else 0.0)


class Scaled:
    """A descriptor."""

    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, o, owner=None):
        return getattr(o, self.name) * 2

    def __set__(self, o, value):
        setattr(o, self.name, value * 3)


class Once:
    def __get__(self, o, owner=None):
        return o.a * 5


class Described:
    a = Scaled()
    b = Once()

    def __init__(self, a):
        self.a = a

    @functools.cached_property
    def c(self):
        return self.a * 2


def descriptors(x):
    o = Described(x * 1.0)
    o.a += x[0]
    y = o.b * o.c
    o.b = x  # of its own, from now on
    o.a = o.a * 2  # what was computed once stays
    return y + o.b * o.c + o.a


class Defaults:
    scale = 3.0
    weights = np.array([1.0, 2.0, 3.0])
    table = {"a": 2.0}  # noqa: RUF012


def defaults_of_a_class(x):
    """What the class holds is still what it was, after the object has one of its own."""
    o = Defaults()
    y = x * o.scale
    o.scale = 5.0
    y = y * o.scale
    o.scale *= x[0]
    y = y * o.scale * Defaults.scale
    o.weights = o.weights * x
    o.table = dict(o.table, a=x[0])
    return y * o.weights * Defaults.weights * o.table["a"] * Defaults.table["a"]


class Weighted(list):
    def __getitem__(self, k):
        return list.__getitem__(self, k) * 2

    def append(self, v):
        list.append(self, v * 3)


def overridden_by_a_list(x):
    held = Weighted([x[0], x[1]])
    held.append(x[2])
    return x * held[0] * held[2] + list.__getitem__(held, 1)


FUNCTIONS = [
    updated_property, updated_item, updated_in_a_loop, copies_are_copies, operators_in_place,
    operators_in_a_loop, divided_and_rounded, set_by_the_class, descriptors,
    overridden_by_a_list,
    defaults_of_a_class,
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_against_python(f):
    reference = central_differences(f, X)
    tolerance = {"rtol": 1e-8, "atol": 1e-8 * np.max(np.abs(reference))}
    jitted = fwdad.jit(f, backend="numpy")
    for x in (X, X + 0.5, X):
        assert_array_equal(jitted(x.copy()), f(x.copy()))
    assert fwdad.cache_info(jitted).traces == 1
    assert_allclose(fwdad.jit(fwdad.jacfwd(f, chunk=2), backend="numpy")(X), reference, **tolerance)
    for found in (fwdad.jacobian(f, X, mode=mode) for mode in ("forward", "reverse")):
        assert_allclose(found, reference, **tolerance)


def test_what_the_class_holds_may_change(monkeypatch):
    jitted = fwdad.jit(defaults_of_a_class, backend="numpy")
    before = jitted(X)
    monkeypatch.setattr(Defaults, "scale", 4.0)
    assert_array_equal(jitted(X), defaults_of_a_class(X))
    assert not np.array_equal(jitted(X), before)


def test_a_property_without_a_setter():
    def f(x):
        o = Copying(x * 1.0)
        o.fixed = x
        return o._u

    for g in (f, fwdad.jit(f, backend="numpy"), fwdad.jacrev(f)):
        with pytest.raises(AttributeError, match="no setter"):
            g(X)


class Doubled(type):
    def __call__(cls, *args):
        made = type.__call__(cls, *args)
        made.a = made.a * 2
        return made


class Made(metaclass=Doubled):
    def __init__(self, a):
        self.a = a


def test_a_metaclass_that_is_called():
    f = fwdad.jit(lambda x: Made(x).a, backend="numpy")
    assert_array_equal(f(X), 2 * X)
    assert_array_equal(fwdad.jacrev(f)(X), 2 * np.eye(3))


def test_a_class_that_looks_its_attributes_up():
    reference = central_differences(found_by_the_class, X)
    for mode in ("forward", "reverse"):
        found = fwdad.jacobian(found_by_the_class, X, mode=mode)
        assert_allclose(found, reference, rtol=1e-8, atol=1e-8)


class Ball:
    """Something that is met, or not."""

    def __init__(self, centre):
        self.centre = centre


def nearest(x):
    met = None
    for ball in [Ball(x[0]), Ball(x[1])]:
        if ball.centre > 0 and (met is None or ball.centre < met.centre):
            met = ball
    return 0.0 if met is None else met.centre**2


def test_an_object_that_a_value_chooses_is_refused_by_one_tape(caplog):
    """Of several, or of none: said in words, and no failure of ours."""
    with pytest.raises(fwdad.errors.UntraceableError, match="which Ball it is") as refused:
        fwdad.trace(nearest, X)
    assert "met.centre" in refused.value.text
    fast = fwdad.jit(fwdad.grad(nearest))
    for x in (X, -X, X[::-1], X):  # `grad` alone records it as it runs
        wanted = central_differences(nearest, x)
        assert_allclose(fwdad.grad(nearest)(x), wanted, atol=1e-8)
        assert_allclose(fast(x), wanted, atol=1e-8)
    assert not caplog.records


@pytest.mark.parametrize("x", [1.5, 3])
def test_python_numbers_have_no_items(x):
    with pytest.raises(TypeError, match="object is not subscriptable"):
        fwdad.jit(lambda y: y[0], backend="numpy")(x)


class Asking:
    """What it lacks it looks for in what it holds, which it may not hold yet."""

    __slots__ = ("held",)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.held, name)


def test_an_object_is_not_asked_for_what_a_message_says():
    def f(x):
        return np.add(x, Asking())

    with pytest.raises(
        fwdad.errors.UntraceableError, match="an Asking is used as a value"
    ) as refused:
        fwdad.jit(f)(np.ones(2))
    assert "return np.add(x, Asking())" in str(refused.value)


def test_what_a_list_from_outside_holds_is_refused_where_it_is_read():
    table = [1.0, {"a": bytearray(b"b")}]

    def f(x):
        factor = table[0]
        return x * factor

    with pytest.raises(
        fwdad.errors.UntraceableError, match=r"in `table`, .* a bytearray "
    ) as refused:
        fwdad.jit(f)(np.ones(2))
    assert refused.value.text.strip() == "factor = table[0]"


class Record(dict):
    pass


class Series(list):
    pass


def of_empty_dict(x):
    made = Record()
    made.square = x * x
    return made


def of_dict(x):
    made = Record(once=x)
    made.square = x * x
    return made


def of_list(x):
    made = Series([x])
    made.square = x * x
    return made


class Pair(tuple):  # noqa: SLOT001  (its attributes are the point)
    pass


def of_tuple(x):
    made = Pair([x])
    made.square = x * x
    return made


@pytest.mark.parametrize("f", [of_empty_dict, of_dict, of_list, of_tuple], ids=lambda f: f.__name__)
def test_attributes_beside_items_are_not_lost(f):
    """Of a list or a dict of one's own class, which tangents and traced results do not have."""
    with pytest.raises(UntraceableError, match=r"cannot be (returned|traced)"):
        fwdad.jit(f)(3.0)
    with pytest.raises(UnsupportedTypeError, match="'square' carries a derivative"):
        fwdad.jvp(f, 3.0, 1.0)
    _, tangent, aux = fwdad.jvp(lambda x: (x * x, f(x)), 3.0, 1.0, has_aux=True)
    assert tangent == 6
    assert aux.square == 9

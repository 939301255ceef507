"""Objects from outside, by themselves and in containers: what they are, and what is read of them."""

import abc
import collections
import copy
import dataclasses
import types
import typing
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.tangents import namespaces
from tests.frontend.packages_of_text import package_of

X = np.array([3.0, 2.0])


class Mode:
    def __init__(self, scale=1.0):
        self.scale = scale


mode, other = Mode(2.0), Mode(5.0)
modes, table = [mode], {"mode": mode}
nested = {"inner": [mode, {"deep": mode}]}
inner = nested["inner"]
half = 0.5
numbers = types.SimpleNamespace(limit=np.inf, one=half, same=half, another=float("0.5"))
mixed = [collections.OrderedDict(a=7.0), 0.3, collections.defaultdict(float, b=2.0), 5.0]

PROGRAMS = {
    "in a list": lambda x: x if mode in modes else 2 * x,
    "not in it": lambda x: x if other in modes else 2 * x,
    "of a dict": lambda x: x if table["mode"] is mode else 2 * x,
    "equal dicts": lambda x: x if table == {"mode": mode} else 2 * x,
    "its place": lambda x: x * (1 + modes.index(mode)),
    "what is inside": lambda x: x if nested["inner"][1]["deep"] is inner[0] else 2 * x,
    "a list inside": lambda x: x if nested["inner"] is inner else 2 * x,
    "what it holds": lambda x: x * modes[0].scale + nested["inner"][0].scale * mode.scale,
    "a constant": lambda x: x if numbers.limit is np.inf else 2 * x,
    "one number": lambda x: x if numbers.one is numbers.same else 2 * x,
    "two numbers": lambda x: x if numbers.one is numbers.another else 2 * x,
    "subclasses": lambda x: mixed[1] * x + mixed[3] * mixed[0]["a"] + mixed[2]["b"],
}


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs(f):
    expected = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X))
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X), expected)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), expected)


def test_what_changes(monkeypatch):
    """Other objects, other numbers in them, and other objects at a place."""
    f = fwdad.jit(lambda x: x * modes[0].scale if mode in modes else -x, backend="numpy")
    assert_allclose(f(X), 2 * X)
    monkeypatch.setattr(mode, "scale", 4.0)
    assert_allclose(f(X), 4 * X)
    modes[0] = other
    try:
        assert_allclose(f(X), -X)
    finally:
        modes[0] = mode
    g = fwdad.jit(lambda x: x if numbers.one is numbers.same else 2 * x, backend="numpy")
    assert_allclose(g(X), X)
    monkeypatch.setattr(numbers, "same", float("0.5"))
    assert_allclose(g(X), 2 * X)


def test_arguments_that_may_be_one_object():
    f = fwdad.jit(lambda x, y: x if x is y else 2 * x, backend="numpy")
    with pytest.raises(fwdad.errors.UntraceableError, match="use `==`"):
        f(1.5, 1.5)


def test_a_dead_proxy():
    """What it stands for is gone; an object that has one is read all the same."""
    owner, holder = Mode(), Mode(3.0)
    holder.owner = weakref.proxy(owner)
    del owner
    held = [holder]
    f = fwdad.jit(lambda x: x * held[0].scale, backend="numpy")
    assert_allclose(f(X), 3 * X)
    with pytest.raises(fwdad.errors.UntraceableError, match="cannot be inspected"):
        fwdad.jit(lambda x: x if holder.owner is not None else -x, backend="numpy")(X)


SWITCHED = """\
class State: pass
state = State()
def switches():
    if not hasattr(state, "found"): state.found = {"skip": False}
    return state.found
def switch(skip):
    id(skip)
    switches()["skip"] = skip
def switched(x):
    before = switches()["skip"]
    switch(True)
    y = x * 2.0
    switch(before)
    return y * 10.0 if switches()["skip"] else y
"""


def test_a_switch_of_a_package(monkeypatch):
    """What it writes at once would be seen by the rest: the world stays as it was."""
    package = package_of(SWITCHED, "switched", monkeypatch)

    def f(x):
        return package.switched(x)

    assert_allclose(f(X), 2 * X)
    try:
        assert_allclose(fwdad.jit(f, backend="numpy")(X), 2 * X)
    except fwdad.errors.UntraceableError:
        pass
    assert package.switches() == {"skip": False}
    assert_allclose(f(X), 2 * X)


@dataclasses.dataclass
class Settings:
    order: int = 1
    rate: float = 2.0


class Ordered:
    def __init__(self, a):
        self.a = a

    def __eq__(self, o):
        return self.a == o.a

    def __hash__(self):
        return hash(self.a)

    def __gt__(self, o):
        return self.a > o.a


class Base:
    pass


class Derived(Base):
    pass


class Abstract(abc.ABC):
    pass


@typing.runtime_checkable
class Goes(typing.Protocol):
    def go(self): ...


settings, same = Settings(), Settings()
one, two = Ordered(1.0), Ordered(1.0)
chosen, listed = [two], {Ordered(1.0): 5.0}
based, registered, going = Base(), Base(), Base()

CHANGES = {
    "copy": (lambda x: x * copy.copy(settings).rate, lambda: setattr(settings, "rate", 3.0)),
    "deepcopy": (
        lambda x: x * copy.deepcopy([settings])[0].rate, lambda: setattr(settings, "rate", 4.0),
    ),
    "dataclasses": (
        lambda x: x if settings.order == 1 and same == Settings() else -x,
        lambda: setattr(same, "order", 2),
    ),
    "in": (lambda x: x if one in chosen else -x, lambda: setattr(one, "a", 2.0)),
    "lists": (lambda x: x if [one] == [two] else -x, lambda: setattr(two, "a", 2.0)),
    "keys": (lambda x: x if one in listed else -x, lambda: setattr(one, "a", 1.0)),
    "max": (lambda x: x if max(two, one) is two else -x, lambda: setattr(one, "a", 3.0)),
    "class": (
        lambda x: x if isinstance(based, Derived) else -x,
        lambda: setattr(based, "__class__", Derived),
    ),
    "register": (
        lambda x: x if isinstance(registered, Abstract) else -x, lambda: Abstract.register(Base),
    ),
    "protocol": (lambda x: x if isinstance(going, Goes) else -x, lambda: setattr(going, "go", abs)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_compared_changes(name):
    """By methods that C code calls, and by what a class is."""
    f, change = CHANGES[name]
    derivatives = [fwdad.jacrev(f), fwdad.jit(fwdad.jacfwd(f), backend="numpy")]
    value = fwdad.jit(f, backend="numpy")
    for _ in range(2):
        assert_allclose(value(X), f(X))
        for g in derivatives:
            assert_allclose(g(X), fwdad.jacobian(f, X, mode="forward"))
        change()


Named = collections.namedtuple("Named", "p q")


@pytest.mark.parametrize("f", [
    lambda x, b: x * b.p["w"] * b.q, lambda x, b: (x * 2.0, b.p["w"])[1] * x,
])  # fmt: skip
def test_fields_of_named_tuples(f):
    b = Named({"w": np.array([1.0, 2.0])}, 3.0)
    assert_allclose(fwdad.jit(f, backend="numpy")(X, b), f(X, b))
    expected = fwdad.jacobian(f, X, args=(b,), mode="forward")
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X, b), expected)
    assert_allclose(fwdad.jacobian(f, X, args=(b,), mode="reverse"), expected)


def test_a_cell_that_is_emptied():
    def made():
        c = 2.0

        def f(x):
            return c * x

        def drop():
            nonlocal c
            del c

        return f, drop

    for wrap in (fwdad.jacrev, lambda f: fwdad.jit(f, backend="numpy")):
        f, drop = made()
        g = wrap(f)
        g(X)
        drop()
        with pytest.raises(NameError, match="'c'"):
            g(X)


def test_a_metaclass_that_decides_otherwise(monkeypatch):
    class Meta(type):
        def __instancecheck__(cls, o):
            return True

    class Any(metaclass=Meta):
        pass

    f = fwdad.jit(lambda x: x if isinstance(x, Any) else -x, backend="numpy")
    assert_allclose(f(X), X)
    monkeypatch.setattr(Meta, "__instancecheck__", lambda cls, o: False)
    assert_allclose(f(X), -X)


def test_weak_proxies_that_are_dead_are_not_asked():
    class Held:
        pass

    target = Held()
    box = types.SimpleNamespace(proxy=[weakref.proxy(target)], scale=2.0)
    del target
    f = fwdad.jit(lambda x: x * box.scale, backend="numpy")
    assert_allclose(f(X), 2.0 * X)
    assert namespaces.referents(box.proxy) == []

"""What classes, generic functions and objects that C code reads become after the first call."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([3.0, 2.0, 1.0])
FACTORS = {"n1": 2.0, "n2": 5.0}


class Counted:
    def __init__(self, k=1):
        self.k = k

    def __index__(self):
        return self.k

    def __str__(self):
        return f"n{self.k}"

    def __format__(self, spec):
        return f"n{self.k}{spec}"


class Fixed:
    """A descriptor that an attribute of the object shadows."""

    def __init__(self, value):
        self.value = value

    def __get__(self, o, cls):
        return self.value


def add_method(name, f):
    def change(o):
        setattr(type(o), name, f)

    return change


def plain_class():
    class Plain:
        factor = Fixed(3.0)

    return Plain()


def generic():
    @functools.singledispatch
    def scale(o, x):
        return x

    class Base:
        pass

    class Derived(Base):
        pass

    scale.known = Base, Derived()
    return scale


def counted_twice(k, x):
    total = 0.0 * x
    for j in range(k):
        total = total + x * (j + 1)
    return total


def executed():
    """A class whose module has no name."""
    names = {}
    exec("class Executed:\n    factor = 2.0\n", names)
    return names["Executed"]()


CASES = {
    "truth": (plain_class, lambda o, x: x if o else 2 * x, add_method("__bool__", lambda s: False)),
    "length": (plain_class, lambda o, x: x if o else 2 * x, add_method("__len__", lambda s: 0)),
    "equality": (
        lambda: (plain_class(), plain_class()),
        lambda o, x: x if o[0] == o[1] else 2 * x,
        lambda o: setattr(type(o[0]), "__eq__", lambda s, t: True),
    ),
    "callable": (
        plain_class, lambda o, x: x if callable(o) else 2 * x, add_method("__call__", lambda s: 0)
    ),
    "shadowed": (plain_class, lambda o, x: o.factor * x, lambda o: vars(o).update(factor=7.0)),
    "descriptor": (
        plain_class, lambda o, x: o.factor * x, lambda o: setattr(type(o), "factor", Fixed(8.0))
    ),
    "executed": (executed, lambda o, x: o.factor * x, lambda o: setattr(type(o), "factor", 7.0)),
    "registered": (
        generic,
        lambda o, x: o(o.known[1], x),
        lambda o: o.register(o.known[0], lambda _, x: 10 * x),
    ),
    "range": (Counted, counted_twice, lambda o: vars(o).update(k=3)),
    "format": (Counted, lambda o, x: x * FACTORS[f"{o}"], lambda o: vars(o).update(k=2)),
    "percent": (Counted, lambda o, x: x * FACTORS["%s" % o], lambda o: vars(o).update(k=2)),
    "text": (Counted, lambda o, x: x * FACTORS[str(o)], lambda o: vars(o).update(k=2)),
    "conversion": (Counted, lambda o, x: x * FACTORS[f"{o!s}"], lambda o: vars(o).update(k=2)),
    "number": (Counted, lambda o, x: x * int(o), lambda o: vars(o).update(k=2)),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", CASES)
def test_what_changes_after_the_first_call(name, backend):
    make, program, change = CASES[name]
    o = make()

    def f(x):
        return program(o, x)

    value = fwdad.jit(f, backend=backend)
    derivatives = [fwdad.jacrev(f), fwdad.jit(fwdad.jacfwd(f), backend=backend)]
    seen = []
    for _ in range(2):
        seen.append(f(X))
        assert_allclose(value(X), seen[-1])
        for g in derivatives:
            assert_allclose(g(X), fwdad.jacobian(f, X, mode="forward"))
        change(o)
    assert not np.array_equal(*seen)

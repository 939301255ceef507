"""Names, attributes and keys that only some paths have set: those of a loop's first iteration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad


class Box:
    pass


def asked_in_an_expression(x):
    c = Box()
    for k in range(12):
        c.v = (c.v if hasattr(c, "v") else 1.0) * x[0] + x[1]
    return c.v


def asked_in_a_branch(x):
    c = Box()
    for k in range(12):
        if hasattr(c, "v"):
            c.v = c.v * x[0]
        else:
            c.v = x[1]
    return c.v


def with_a_default(x):
    c = Box()
    for k in range(12):
        c.v = getattr(c, "v", 1.0) * x[0] + x[1]
    return c.v


def key_of_a_dict(x):
    d = {}
    for k in range(12):
        d["v"] = (d["v"] if "v" in d else 1.0) * x[0] + x[1]
    return d["v"]


def set_on_one_path(x):
    c = Box()
    if x[0] > 0.5:
        c.v = x[1]
    return c.v if hasattr(c, "v") else x[0]


def caught(x):
    c = Box()
    for k in range(12):
        try:
            c.v = c.v * x[0]
        except AttributeError:
            c.v = x[1]
    return c.v


def name_that_is_caught(x):
    for k in range(12):
        try:
            v = v * x[0]
        except NameError:
            v = x[1]
    return v


def asked_of_vars(x):
    c = Box()
    for k in range(12):
        if "v" not in vars(c):
            c.v = x[0]
        c.v = c.v * x[1]
    return c.v


def sum_by_key(x):
    d = {}
    for k in range(3, 20):
        d["s"] = d.get("s", 0.0) + x[0] * k
    return d["s"]


def walk_down(x):
    d = {}
    for k in range(19, 3, -1):
        if "a" in d:
            d["a"] = np.sin(d["a"]) + k
        else:
            d["a"] = x[0] * k
        if d["a"] > 25:
            break
    return d["a"]


def several_keys(x):
    d = {}
    for i, t in enumerate(x):
        d["m"] = t if "m" not in d else max(d["m"], t)
        d[i % 2] = d.get(i % 2, 1.0) * t
    return d["m"] + d[0] * d[1]


def counted(x):
    d = {}
    for t in list(x) * 4:
        d["n"] = d.get("n", 0) + 1
        d["s"] = d.get("s", x * 0) + x * t / d["n"]
    return d["s"].sum()


def missing_key_that_is_caught(x):
    d = {}
    for k in range(20):
        try:
            d["q"] = d["q"] * 0.9 + x[0]
        except KeyError:
            d["q"] = x[1] * k + 1
    return d["q"]


SET = [
    asked_in_an_expression,
    asked_in_a_branch,
    with_a_default,
    key_of_a_dict,
    set_on_one_path,
    caught,
    name_that_is_caught,
    asked_of_vars,
]
KEYS = [sum_by_key, walk_down, several_keys, counted, missing_key_that_is_caught]


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
@pytest.mark.parametrize("f", [*SET, *KEYS])
def test_values_and_slopes(f):
    v, h = np.array([0.3, -0.2, 0.5]), 1e-6
    value, slopes = fwdad.jit(f), [fwdad.jit(d(f)) for d in (fwdad.grad, fwdad.jacfwd)]
    for x in (np.array([0.8, 0.4, 1.2]), np.array([0.42, 0.21, 0.6])):
        expected = (f(x + h * v) - f(x - h * v)) / (2 * h)
        assert_allclose(value(x), f(x), rtol=1e-13)
        for slope in (*slopes, fwdad.grad(f)):
            assert_allclose(slope(x) @ v, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("f", [sum_by_key, walk_down, missing_key_that_is_caught])
def test_only_the_first_iteration_stands_apart(f):
    """Whose key is new: 16 to 20 of them would be many operations."""
    tape = fwdad.trace(f, np.array([0.8, 0.4, 1.2]))
    assert tape.count() < 16


class Result(dict):
    """A dict whose items are its attributes, as SciPy's results are."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(name) from error

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__


def test_an_item_that_is_deleted_as_an_attribute():
    def f(x):
        result = Result(x=x, slope=x[0] * 2.0)
        result.value = x[1] * 3.0
        del result.x
        return result.slope * result["value"] + len(result) + hasattr(result, "x")

    x = np.array([0.8, 0.4])
    assert fwdad.jit(f)(x) == f(x)
    assert_allclose(fwdad.jit(fwdad.grad(f))(x), [6.0 * 0.4, 6.0 * 0.8])

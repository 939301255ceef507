"""Calls with structures and objects among their arguments that take shortcuts."""

from collections import OrderedDict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.evaluation.by_tape import MISS, never

A, B = np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.25, 2.0])


@dataclass
class Model:
    weights: np.ndarray
    bias: float

    @property
    def total(self):
        return np.sum(self.weights) + self.bias


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a):
        self.a = a


Pair = namedtuple("Pair", "a b")


def known(f, *args, **kwargs):
    """The value of a call that takes a shortcut, compared with that of the function itself."""
    fast = fwdad.jit(f, backend="numpy")
    for _ in range(3):
        found = fast(*args, **kwargs)
    assert fast._latest is not never
    assert fast._latest(args, kwargs) is not MISS
    assert_allclose(found, fast.__wrapped__(*args, **kwargs), rtol=1e-14)
    return fast


def misses(fast, *args, **kwargs):
    """A call that the latest shortcut is not for, and whose value is right all the same."""
    assert fast._latest(args, kwargs) is MISS
    for _ in range(3):
        assert_allclose(fast(*args, **kwargs), fast.__wrapped__(*args, **kwargs), rtol=1e-14)


def of_dict(p):
    return np.sum(p["a"] * list(p.values())[-1]) + len(p)


def test_a_dict():
    fast = known(of_dict, {"a": A, "b": B})
    for other in (
        {"a": A, "c": B},
        {"b": B, "a": A},
        {"a": A},
        {"a": A, "b": B, "c": B},
        {"a": A, "b": 2.0},
        {"a": A, "b": B.astype(np.float32)},
        {"a": A, "b": B[:1]},
        {"a": A, "b": [1.0, 2.0, 3.0]},
        OrderedDict(a=A, b=B),
    ):
        fast({"a": A, "b": B})
        if isinstance(other, OrderedDict):
            assert fast._latest((other,), {}) is MISS
            continue
        misses(fast, other)
    assert fast._latest(((("a", A), ("b", B)),), {}) is MISS


def of_list(items, scale):
    return sum(np.sum(item) for item in items) * scale + np.sum(items[0])


def test_a_list():
    fast = known(of_list, [A, B], 2.0)
    for other in ([A], [A, B, A], (A, B), [A, 1.0]):
        fast([A, B], 2.0)
        misses(fast, other, 2.0)
    known(of_list, [A, [B][0], 3.0], 2)


def test_one_array_twice_is_another_kind_of_call():
    def of_identity(items):
        return np.sum(items[0]) + (10.0 if items[0] is items[1] else 0.0)

    fast = known(of_identity, [A, B])
    misses(fast, [A, A])
    fast = known(of_identity, [A, A])
    misses(fast, [A, B])


def test_one_list_twice_is_another_kind_of_call():
    def of_identity(p, q):
        return p[0] + (10.0 if p is q else 0.0)

    one, other = [1.0], [1.0]
    fast = known(of_identity, one, other)
    misses(fast, one, one)
    fast = known(of_identity, one, one)
    misses(fast, one, other)


def test_what_changes_its_arguments_is_no_shortcut_past_them():
    def appends(items, p):
        items.append(items[0] * p["x"])
        p["y"] = p["x"] + 1.0
        return p

    fast = fwdad.jit(appends, backend="numpy")
    for _ in range(4):
        items, p = [2.0], {"x": 3.0}
        assert fast(items, p) is p
        assert items == [2.0, 6.0]
        assert p == {"x": 3.0, "y": 4.0}


def of_model(model, x):
    return np.sum(np.tanh(model.weights * x)) + model.total


def test_an_object():
    fast = known(of_model, Model(A, 0.5), B)
    for change in ({"weights": A[:1]}, {"weights": 1.0}, {"bias": 1}, {"more": 1.0}):
        fast(Model(A, 0.5), B)
        other = Model(A, 0.5)
        vars(other).update(change)
        misses(fast, other, B)
    fast(Model(A, 0.5), B)

    class Shifted(Model):
        @property
        def total(self):
            return 100.0

    misses(fast, Shifted(A, 0.5), B)
    without = Model(A, 0.5)
    del without.bias
    with pytest.raises(AttributeError):
        fast(without, B)


def test_a_replaced_property_is_seen(monkeypatch):
    fast = known(of_model, Model(A, 0.5), B)
    monkeypatch.setattr(Model, "total", property(lambda _: 7.0))
    misses(fast, Model(A, 0.5), B)


def test_objects_whose_attributes_are_elsewhere_are_taken_apart_in_full():
    held = Slotted(A)
    fast = fwdad.jit(lambda o: np.sum(o.a), backend="numpy")
    for _ in range(3):
        assert fast(held) == 6.0
    fast = fwdad.jit(lambda p: np.sum(p.a) * p.b, backend="numpy")
    for b in (2.0, 3.0):
        assert fast(Pair(A, b)) == 6.0 * b


def test_names_and_static_values():
    def f(x, *, kind="one", other=None):
        return x * (1.0 if kind == "one" else 2.0) + (0.0 if other is None else 1.0)

    fast = known(f, A, kind="two", other=None)
    misses(fast, A, kind="one", other=None)
    misses(fast, A, kind="two")
    misses(fast, A, other=None, kind="two")
    misses(fast, A, kind="two", other=True)
    misses(fast, A)
    known(f, A, kind="".join(["t", "wo"]))


def test_a_value_that_is_assumed_is_compared():
    def f(x, n):
        return x.reshape(n, -1).sum(axis=0)

    fast = known(f, np.arange(6.0), 2)
    for n in (3, 6, 1, 2):
        assert_allclose(fast(np.arange(6.0), n), f(np.arange(6.0), n))


def test_results_are_new_containers():
    def f(p):
        return {"sum": p["a"] + p["b"], "parts": [p["a"] * 2, (p["b"] * 3, Model(p["a"] * 4, 1.0))]}

    fast = fwdad.jit(f, backend="numpy")
    given = {"a": A, "b": B}
    results = [fast(given) for _ in range(4)]
    for found in results:
        assert_allclose(found["sum"], A + B)
        assert_allclose(found["parts"][1][0], 3 * B)
        assert type(found["parts"][1][1]) is Model
        assert_allclose(found["parts"][1][1].weights, 4 * A)
    assert len({id(r) for r in results}) == len({id(r["parts"]) for r in results}) == 4


def test_one_container_in_two_places_of_a_result_stays_one():
    def f(x):
        inner = [x * 2]
        return inner, {"again": inner}

    fast = fwdad.jit(f, backend="numpy")
    for _ in range(4):
        inner, held = fast(A)
        assert held["again"] is inner
        assert_allclose(inner[0], 2 * A)


def test_long_and_deep_arguments_are_taken_apart_in_full():
    def f(items):
        return items[0] + items[-1]

    fast = fwdad.jit(f, backend="numpy")
    many = [float(k) for k in range(200)]
    for _ in range(3):
        assert fast(many) == 199.0
    circle = [1.0, 2.0]
    circle.append(circle)
    fast = fwdad.jit(lambda c: c[0] + c[2][1], backend="numpy")
    for _ in range(3):
        assert fast(circle) == 3.0

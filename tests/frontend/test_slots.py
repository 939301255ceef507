"""Derivatives through objects with ``__slots__``, and what a trace leaves of its stand-ins."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.slots import stand_in
from fwdad.tangents.objects import slots_of
from tests.differences import central_differences, difference_along
from tests.frontend import slots

X = np.array([0.5, -1.25, 2.0])


@pytest.mark.slow_cases("above-numba")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("x", [X, np.array([1.5, 0.6, 0.35])], ids=["below", "above"])
def test_made_inside(backend, x):
    if backend == "numba":
        pytest.importorskip("numba")
    f = slots.made_inside
    expected = central_differences(f, x)
    for call in (fwdad.grad, fwdad.jacfwd):
        assert_allclose(fwdad.jit(call(f), backend=backend)(x), expected, rtol=1e-7, atol=1e-8)
    for n in (1, 2, 3):
        columns = fwdad.jit(fwdad.jacfwd(f, chunk=n), backend=backend)(x)
        assert_allclose(columns, expected, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("call", [fwdad.grad, fwdad.jacfwd])
def test_of_an_object(call):
    def f(a, m):
        return slots.of_an_object(slots.State(a * 1.0, m))

    s = slots.State(X[:2].copy(), 0.75)
    for g in (call(slots.of_an_object), fwdad.jit(call(slots.of_an_object), backend="numpy")):
        found = g(s)
        assert type(found) is slots.State
        expected = central_differences(lambda a: f(a, 0.75), X[:2])
        assert_allclose(found.position, expected, rtol=1e-7)
        expected = difference_along(lambda m: f(X[:2], m), 0.75)
        assert_allclose(found.mass, expected, rtol=1e-7)
    assert (s.mass, list(s.position)) == (0.75, [0.5, -1.25])


def test_results_are_of_the_class_itself():
    f = fwdad.jit(slots.answered, backend="numpy")
    (o, loose, again), body, pair = f(2.0)
    assert o is again
    assert [type(x) for x in (o, loose, body, pair)] == [
        slots.Solid, slots.Loose, slots.Body, slots.Pair
    ]  # fmt: skip
    for x in (o, body, pair):
        assert not hasattr(x, "__dict__")
    assert vars(loose) == {"mass": 1.0}
    assert "__fwdad" not in repr(pair) + repr(body)


class OfThread(threading.local):
    """What is no slot is in a dict of the thread, not in the object's own ``__dict__``."""

    __slots__ = ("mass",)


def test_a_result_has_the_attributes_of_its_thread():
    def f(x):
        o = OfThread()
        o.mass, o.speed = x, x * x
        return o

    o = fwdad.jit(f, backend="numpy")(2.0)
    assert (type(o), o.mass, vars(o)) == (OfThread, 2.0, {"speed": 4.0})


def test_nobody_hears_of_stand_ins():
    assert slots.REGISTERED == [slots.Solid, slots.Loose]
    made = stand_in(slots.Solid)
    assert made is stand_in(slots.Solid)
    assert slots.REGISTERED == [slots.Solid, slots.Loose]
    assert slots_of(slots.Solid) == ("z", "_Point__hidden", "x", "y")

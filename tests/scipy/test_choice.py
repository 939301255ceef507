"""When a derivative is compiled, and what happens where it cannot be, or does not pay."""

import gc
import math
import sys
import weakref

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import rosen, rosen_der

import fwdad
from fwdad import scipy as door
from fwdad.codegen.numba_support import have_numba
from fwdad.scipy import choice
from fwdad.scipy.choice import Derivative
from fwdad.scipy.derivatives import Gradient, Jacobian, JacobianOperator

needs_numba = pytest.mark.skipif(not have_numba(), reason="Numba is not installed")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """What other tests have spent does not count."""
    monkeypatch.setattr(choice, "_SPENT", weakref.WeakKeyDictionary())
    monkeypatch.setattr(choice, "_COMPILED", {})
    with choice.assuming(compiling=1.0, importing=0.0):
        yield


class Clock:
    """A clock that a derivative moves on."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        monkeypatch.setattr(choice.time, "thread_time", lambda: self.now)


def valley(x):
    return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


X = np.array([-1.0, 2.0, 0.5])


class Slow(Gradient):
    """A gradient that takes half a second as it is, and another time compiled."""

    def __init__(self, f, clock, compiled):
        super().__init__(f)
        self.clock, self.compiled = clock, compiled

    def __call__(self, *args, **kwargs):
        self.clock.now += 0.5
        return super().__call__(*args, **kwargs)

    def to_compile(self):
        return super().to_compile()


def slow(monkeypatch, compiled, f=valley):
    clock = Clock(monkeypatch)
    made = choice.jit

    def jit(g):
        quick = made(g)

        def run(*args, **kwargs):
            clock.now += compiled
            return quick(*args, **kwargs)

        return run

    monkeypatch.setattr(choice, "jit", jit)
    return lambda: Derivative("jac", Slow(f, clock, compiled), "instead")


@needs_numba
def test_compiled_once_it_would_have_paid(monkeypatch):
    made = slow(monkeypatch, 1e-3)
    jac = made()
    said = []
    for _ in range(8):
        assert_allclose(jac(X), rosen_der(X), rtol=1e-13)
        said.append("compiled by Numba" in str(jac))
    assert said == [False] * 2 + [True] * 6  # a second is the price
    assert str(jac) == (
        "jac is the gradient, by reverse mode; 8 calls, compiled by Numba from call 3 on, because "
        "those before took 1 s"
    )
    again = made()  # in the next solve
    assert_allclose(again(X), rosen_der(X), rtol=1e-13)
    assert str(again) == (
        "jac is the gradient, by reverse mode; 1 call, compiled by Numba in an earlier solve"
    )


@needs_numba
def test_time_is_added_up_over_solves(monkeypatch):
    made = slow(monkeypatch, 1e-3)
    for k in range(3):
        jac = made()
        jac(X)
        assert ("compiled by Numba" in str(jac)) == (k == 2)
        took = "2 calls, over several solves, took 1 s"
        price = "it will be once its calls have taken 1 s of processor time"
        says = (
            f", not compiled ({price}; so far they took 500 ms)",
            f", not compiled (the next call compiles it; so far {took})",
            f", compiled by Numba from call 1 on, because {took}",
        )
        assert str(jac).endswith(f"; 1 call{says[k]}")


@needs_numba
def test_what_is_no_faster_is_given_up(monkeypatch):
    jac = slow(monkeypatch, 0.7)()
    for _ in range(8):
        assert_allclose(jac(X), rosen_der(X), rtol=1e-13)
    assert "not compiled, because compiled, a call took 700 ms, and 500 ms without" in str(jac)


@needs_numba
def test_what_cannot_be_traced_stays_as_it_is(monkeypatch):
    def untraced(x):
        class Kept:
            pass

        return valley(x)

    jac = slow(monkeypatch, 1e-3, untraced)()
    for _ in range(4):
        assert_allclose(jac(X), rosen_der(X), rtol=1e-13)
    assert "not compiled, because " in str(jac)
    assert "class" in str(jac)


def test_without_numba(monkeypatch):
    monkeypatch.setattr(choice, "have_numba", lambda: False)
    jac = slow(monkeypatch, 1e-3)()
    for _ in range(4):
        assert_allclose(jac(X), rosen_der(X), rtol=1e-13)
    assert "not compiled, because Numba is not installed" in str(jac)


@needs_numba
def test_what_is_under_jit_is_compiled_at_once():
    compiled = fwdad.jit(valley)
    jac = Derivative("jac", Gradient(compiled), "instead")
    for _ in range(3):
        assert_allclose(jac(X), rosen_der(X), rtol=1e-13)
    assert str(jac).endswith("compiled by Numba from call 2 on, because the function is under jit")
    found = door.minimize(compiled, X, method="trust-exact")
    assert_allclose(found.x, np.ones(3), rtol=1e-6)
    root = door.root(fwdad.jit(lambda x: np.array([x[0] ** 2 - 2, x[1] - x[0]])), [1, 1])
    assert_allclose(root.x, [np.sqrt(2)] * 2)


@needs_numba
def test_an_exception_of_the_function_is_its_own():
    """Where compiled code raises, the function is run as it is, and raises what it would."""
    f = lambda x: np.array([1.0, 2.0, 3.0])[: len(x)] * x  # noqa: E731
    jac = Derivative("jac", Jacobian(f), "instead")
    with choice.assuming(compiling=0.0):
        for _ in range(3):
            jac(X)
        assert "compiled by Numba" in str(jac)
        with pytest.raises(ValueError, match="broadcast"):
            jac(np.ones(5))


def test_importing_numba_is_part_of_the_price(monkeypatch):
    spent = choice.Spent()
    spent.seconds = 1.5
    with choice.assuming(importing=1.0):
        monkeypatch.setitem(sys.modules, "numba", np)
        assert spent.pays()
        monkeypatch.delitem(sys.modules, "numba")
        assert not spent.pays()
        spent.seconds = 2.0
        assert spent.pays()
    with choice.assuming(compiling=math.inf):
        assert not spent.pays()
    assert spent.pays()


def test_operators_are_not_compiled():
    jac = Derivative("jac", JacobianOperator(lambda x: x**2), "instead")
    assert_allclose(jac(X) @ X, 2 * X**2)
    assert str(jac).endswith("by NumPy (under fwdad.jit compiled); 1 call")
    jac = Derivative("jac", JacobianOperator(fwdad.jit(lambda x: x**2)), "instead")
    assert_allclose(jac(X) @ X, 2 * X**2)
    assert str(jac).endswith("as fwdad.jit runs it; 1 call")


def test_solves_inside_a_derivative_call_are_not_compiled():
    said = []

    def outer(a):
        jac = Derivative("jac", Gradient(lambda x: a * np.sum(x**2)), "instead")
        value = np.sum(jac(X))
        said.append(str(jac))
        return value

    assert_allclose(fwdad.jvp(outer, 2.0, 1.0)[1], 2 * np.sum(X))
    assert said[-1].endswith(
        "; 1 call, not compiled, because the solve is inside a derivative call"
    )


@needs_numba
def test_few_compiled_functions_are_kept(monkeypatch):
    monkeypatch.setattr(choice, "_COMPILED_KEPT", 2)
    fs = [lambda x, k=k: np.sum(x**2) + k for k in range(3)]
    with choice.assuming(compiling=0.0):
        for f in fs:
            for _ in range(2):  # also where a solve asks only once
                Derivative("jac", Gradient(f), "instead")(X)
    assert [key[1] for key in choice._COMPILED] == fs[1:]


@pytest.mark.usefixtures("young_heap")
def test_functions_are_not_kept():
    f = lambda x: np.sum(x**2)  # noqa: E731
    seen = weakref.ref(f)
    door.minimize(f, X)
    del f
    fwdad.drivers.tape_cache.TAPES.forget()
    gc.collect()
    assert seen() is None


def test_unhashable_functions():
    class Model:
        __hash__ = None

        def __call__(self, x):
            return rosen(x)

    found = door.minimize(Model(), X)
    assert_allclose(found.x, np.ones(3), rtol=1e-4)


@pytest.mark.parametrize(
    "x", [1, True, np.int64(1), np.array([1, 2]), np.array([True]), np.uint8(1)]
)
def test_ints_become_floats(x):
    assert np.asarray(choice._float(x)).dtype == float
    for kept in (1.0, np.float32(1), 1j, np.ones(2)):
        assert choice._float(kept) is kept

"""Derivatives under jit that are written into `out`, and calls with bound arguments."""

import gc
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.codegen.numba_support import have_numba
from fwdad.errors import OutError
from tests.differences import central_differences

BACKENDS = ["numpy", "numba"] if have_numba() else ["numpy"]
compiled = pytest.mark.skipif(not have_numba(), reason="Numba is not installed")
X = np.linspace(0.5, 1.5, 10)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def square(x):
    return x @ x


def looped(x):
    total = 0.0
    for i in range(len(x)):
        total = total * x[i] + x[i]
    return total


FUNCTIONS = [rosenbrock, square, looped]


def forms(f, backend):
    return [
        fwdad.jit(fwdad.grad(f), backend=backend),
        fwdad.grad(fwdad.jit(f, backend=backend)),
        fwdad.jit(fwdad.grad(f), backend=backend, static_shapes=True),
    ]


@pytest.mark.every(3, of="numba", first=2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_gradient(f, backend):
    """The first calls, by tapes and by shortcuts, are those of other lengths, too."""
    for gradient in forms(f, backend):
        for n in (10, 2, 1, 10, 40):
            x = np.linspace(0.5, 1.5, n)
            wanted = central_differences(f, x)
            for _ in range(4):
                out = np.full(n, np.nan)
                assert gradient(x, out=out) is out
                assert_allclose(out, wanted, rtol=1e-6, atol=1e-6)
                assert_array_equal(x, np.linspace(0.5, 1.5, n))
                x += 0.0


@pytest.mark.parametrize("backend", BACKENDS)
def test_value_and_gradient(backend):
    of = fwdad.jit(fwdad.value_and_grad(rosenbrock), backend=backend)
    out = np.empty(10)
    for _ in range(4):
        out[:] = np.nan
        value, gradient = of(X, out=out)
        assert gradient is out
        assert_allclose(value, rosenbrock(X))
        assert_allclose(out, fwdad.grad(rosenbrock)(X))
    of = fwdad.jit(fwdad.grad(lambda a, b: np.sum(a * b["c"]), (0, 1)), backend=backend)
    given = np.empty(3), {"c": np.empty(3)}
    for _ in range(3):
        found = of(np.ones(3), {"c": np.arange(3.0)}, out=given)
        assert found[0] is given[0]
        assert_array_equal(given[0], np.arange(3.0))
        assert_array_equal(given[1]["c"], np.ones(3))


BAD = {
    "shape": (lambda: np.empty(11), "shape"),
    "rank": (lambda: np.empty((10, 1)), "shape|axes"),
    "dtype": (lambda: np.empty(10, np.float32), "float32"),
    "list": (lambda: [0.0] * 10, "is a list|is a float"),
    "gaps": (lambda: np.empty(20)[::2], "has gaps"),
    "read-only": (lambda: np.broadcast_to(np.zeros(10), 10), "read-only"),
    "shared": (lambda: X, "shares memory"),
    "overlapping": (lambda: X[::-1], "shares memory|has gaps"),
}


@pytest.mark.every(9, of="numba", first=3)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", BAD)
def test_what_does_not_fit(kind, backend):
    """Before the first call and after, when calls take shortcuts; nothing is written."""
    make, match = BAD[kind]
    for gradient in forms(rosenbrock, backend):
        for k in range(3):
            for out in [np.empty(10)] * (4 * k):
                gradient(X, out=out)
            out, before = make(), np.array(make())
            if kind != "shared" and isinstance(out, np.ndarray) and out.flags.writeable:
                before = out.copy()
            with pytest.raises(OutError, match=match):
                gradient(X, out=out)
            assert_array_equal(np.array(out), before)
            assert_array_equal(X, np.linspace(0.5, 1.5, 10))


@pytest.mark.parametrize("backend", BACKENDS)
def test_overlaps_are_seen_at_each_call(backend):
    """Also of views that are new in each call."""
    gradient = fwdad.jit(fwdad.grad(square), backend=backend)
    memory = np.ones(100)
    for start in (50, 60, 10, 90):
        for _ in range(3):
            gradient(memory[:10], out=memory[start : start + 10])
            assert_array_equal(memory[start : start + 10], np.full(10, 2.0))
    for start in range(10):
        with pytest.raises(OutError, match="shares memory"):
            gradient(memory[:10], out=memory[start : start + 10])
    strided = memory[:40:2]
    out = np.empty(20)
    assert_array_equal(gradient(strided, out=out), 2 * strided)
    with pytest.raises(OutError, match="shares memory"):
        gradient(strided, out=memory[20:40])


@pytest.mark.every(3, of="numba", first=2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_bound(f, backend):
    """Arrays are read at each call; the shapes are those of the first."""
    x, out = X.copy(), np.empty(10)
    step = fwdad.jit(fwdad.grad(f), backend=backend).bind(x, out=out)
    for k in range(4):
        x[:] = X + 0.1 * k
        out[:] = np.nan
        assert step() is out
        assert_allclose(out, central_differences(f, x), rtol=1e-6, atol=1e-6)
    value = fwdad.jit(fwdad.value_and_grad(f), backend=backend).bind(x, out=out)
    assert_allclose(value()[0], f(x))
    assert type(value()[0]) is type(fwdad.jit(f, backend=backend)(x))
    assert value()[1] is out
    without = fwdad.jit(f, backend=backend).bind(x)
    assert_allclose(without(), f(x))


SCALE = 2.0


@pytest.mark.slow_cases("numba")
@pytest.mark.parametrize("backend", BACKENDS)
def test_bound_looks_outside(backend, monkeypatch):
    """What the function reads from outside is read at each call, and what it calls is checked."""
    x, out = X.copy(), np.empty(10)
    step = fwdad.jit(fwdad.grad(lambda x: SCALE * np.sum(x)), backend=backend).bind(x, out=out)
    assert_array_equal(step(), np.full(10, 2.0))
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert_array_equal(step(), np.full(10, 3.0))
    monkeypatch.setitem(globals(), "SCALE", 4)
    assert_array_equal(step(), np.full(10, 4.0))


@compiled
def test_bound_and_captured_arrays():
    """Another array in the place of one that is read is seen, and what is written there."""
    data = np.arange(20.0).reshape(10, 2)

    def loss(x):
        return np.sum((data @ x) ** 2)

    x, out = np.ones(2), np.empty(2)
    step = fwdad.jit(fwdad.grad(loss)).bind(x, out=out)
    assert_allclose(step(), central_differences(loss, x), rtol=1e-6)
    data[0] = 3.0
    assert_allclose(step(), central_differences(loss, x), rtol=1e-6)
    data = np.asfortranarray(np.cos(data))
    assert_allclose(step(), central_differences(loss, x), rtol=1e-6)


@compiled
def test_bound_and_later_rules():
    """A rule that is registered later counts from then on."""

    def cube(x):
        return x**3

    x, out = np.ones(2), np.empty(2)
    step = fwdad.jit(fwdad.grad(lambda x: np.sum(cube(x)))).bind(x, out=out)
    assert_array_equal(step(), [3.0, 3.0])

    @fwdad.frule(cube)
    def cube_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**3, 30.0 * x_dot

    assert_array_equal(step(), [30.0, 30.0])


@compiled
def test_bound_is_not_misled():
    """A new shape of the caller's object is no new shape of what was bound."""
    x, out = X.copy(), np.empty(10)
    step = fwdad.jit(fwdad.grad(square)).bind(x, out=out)
    wanted = step().copy()
    x.shape = (5, 2)
    out.setflags(write=False)
    assert step() is out
    assert_array_equal(out, wanted)
    x = X.copy()
    with pytest.raises(OutError, match="shares memory"):
        fwdad.jit(fwdad.grad(square)).bind(x, out=x)


def allocations(call, times=300):
    """How many bytes Python and NumPy take at most in calls beyond the first.

    It is the least of some attempts: what else is going on in the process takes memory, too.
    """
    return min(_allocations(call, times) for _ in range(5))


def _allocations(call, times):
    call()
    gc.disable()
    tracemalloc.start()
    try:
        call()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        for _ in range(times):
            call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
        gc.enable()


@compiled
def test_nothing_is_allocated():
    """Neither by Python and NumPy, nor, of small arrays, by compiled code."""
    from numba.core.runtime import _nrt_python as nrt  # noqa: PLC0415
    from numba.core.runtime import rtsys  # noqa: PLC0415

    x, out = X.copy(), np.empty(10)
    step = fwdad.jit(fwdad.grad(rosenbrock)).bind(x, out=out)
    nothing = allocations(lambda: None)
    assert allocations(step) <= nothing + 64  # bytes: a Python int, which counts the calls
    nrt.memsys_enable_stats()
    before = rtsys.get_allocation_stats()
    for _ in range(50):
        step()
    after = rtsys.get_allocation_stats()
    nrt.memsys_disable_stats()
    assert after.alloc - before.alloc == 2 * 50  # Numba's descriptors of the two arguments
    assert after.free == after.alloc
    gradient = fwdad.jit(fwdad.grad(rosenbrock))
    for _ in range(3):
        gradient(x, out=out)
    assert allocations(lambda: gradient(x, out=out)) < nothing + 500  # the dict, tuples of a call
    n = 100_000
    large, out = np.linspace(0.0, 1.0, n), np.empty(n)
    step = fwdad.jit(fwdad.grad(lambda x: np.sum(x**3))).bind(large, out=out)
    assert allocations(step) <= nothing + 64
    assert_allclose(out, 3 * large**2)
    out[:] = 0.0
    gradient = fwdad.grad(fwdad.jit(lambda x: np.sum(x**3)))
    for _ in range(3):
        assert gradient(large, out=out) is out
    assert allocations(lambda: gradient(large, out=out)) < nothing + 2_000
    assert_allclose(out, 3 * large**2)


@compiled
def test_slices_need_no_memory():
    """Arrays that are computed into ``out`` are not made first, as without it."""

    def f(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    g = fwdad.jit(fwdad.grad(f))
    out = np.full(10, 7.0)
    assert g(X, out=out) is out
    assert_array_equal(out, g(X))
    assert "np.empty" not in fwdad.show(g, X, out=out, backend="numba")

"""Pullbacks that write into arrays that are given."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import OutError
from tests.differences import central_differences

X = np.linspace(0.2, 1.1, 7)
Y_BAR = np.cos(np.arange(30.0)).reshape(5, 6)


def field(x):
    return np.sin(x[1:]) * x[:-1] + np.sum(x)


def recorded(x):
    return field(x) * float(str(1.0))


@pytest.mark.every(3, of="field1")
@pytest.mark.parametrize("chunk", [1, 2, 3, 5, None, "auto"])
@pytest.mark.parametrize("f", [field, recorded, fwdad.jit(field)])
def test_one_and_many(f, chunk):
    J = central_differences(field, X)
    for _ in range(3):
        _, pullback = fwdad.vjp(f, X, chunk=chunk)
        out = np.full((5, 7), np.nan)
        assert pullback(Y_BAR, out=out) is out
        assert_allclose(out, Y_BAR @ J, rtol=1e-7)
        one = np.full(7, np.nan)
        assert pullback(Y_BAR[0], out=one) is one
        assert_allclose(one, Y_BAR[0] @ J, rtol=1e-7)
        assert_array_equal(pullback(Y_BAR[0]), one)


def test_composites():
    _, pullback = fwdad.vjp(lambda a, b: {"y": a["u"] * b}, {"u": X}, 2.0)
    out = {"u": np.empty(7)}, np.empty(())
    assert pullback({"y": X}, out=out) is out
    assert_array_equal(out[0]["u"], 2 * X)
    assert_allclose(out[1], X @ X)
    for bad in (np.empty(7), (1, 2), ({"v": 1}, np.empty(())), ({"u": np.empty(6)}, np.empty(()))):
        with pytest.raises(OutError, match="out"):
            pullback({"y": X}, out=bad)


def test_what_does_not_fit():
    _, pullback = fwdad.vjp(field, X)
    bar = np.ones(6)
    shared = np.ones(20)
    for out, match in [
        (np.empty((5, 7)), "of shape"),
        (np.empty(7, np.float32), "float32"),
        (np.empty(14)[::2], "has gaps"),
        (np.broadcast_to(0.0, 7), "read-only"),
    ]:
        with pytest.raises(OutError, match=match):
            pullback(bar, out=out)
    with pytest.raises(OutError, match="shares memory"):
        pullback(shared[:6], out=shared[3:10])


def test_nested():
    """Inside of a derivative, at once and in a trace."""

    def f(x):
        y, pullback = fwdad.vjp(field, x)
        out = np.empty(7)
        pullback(y * y, out=out)
        return out

    wanted = central_differences(f, X)
    assert_allclose(fwdad.jacobian(f, X), wanted, rtol=1e-6)
    for backend in ("numpy", "numba"):
        g = fwdad.jit(f, backend=backend)
        assert_allclose(g(X), f(X))
        assert_allclose(fwdad.jacobian(g, X), wanted, rtol=1e-6)


def test_memory():
    """Rows come some at a time, into a matrix that is there."""
    x, n = np.linspace(0.0, 1.0, 2000), 1000
    bars = np.ones((n, 2000))
    _, pullback = fwdad.vjp(lambda x: np.sin(x) * x[::-1], x, chunk=10)
    out = np.empty((n, 2000))
    pullback(bars, out=out)
    tracemalloc.start()
    pullback(bars, out=out)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < out.nbytes / 8
    assert_allclose(out[-1], np.cos(x) * x[::-1] + np.sin(x[::-1]))

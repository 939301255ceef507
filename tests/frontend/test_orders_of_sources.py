"""The memory order of what NumPy's Python functions return, traced from sources of our own."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
X = (np.arange(24.0) * 7 % 11).reshape(2, 3, 4) + np.arange(24.0).reshape(2, 3, 4) / 50

GIVEN = {
    "turned": lambda x: x.transpose(2, 0, 1),
    "columns": np.asfortranarray,
    "matrix turned": lambda x: x[0].T,
    "part of columns": lambda x: np.asfortranarray(x)[:, 0],
    "every second": lambda x: np.asfortranarray(x.repeat(2, 0))[::2],
}
SOURCES = {
    "quantile": lambda h: np.quantile(h, 0.3, axis=1),
    "quantiles": lambda h: np.quantile(h, [0.3, 0.6], axis=1),
    "quantile, axis kept": lambda h: np.quantile(h, 0.3, axis=0, keepdims=True),
    "percentile": lambda h: np.percentile(h, 30, axis=-1),
    "nanquantile": lambda h: np.nanquantile(h, 0.3, axis=1),
    "gradient": lambda h: np.gradient(h, axis=0),
    "gradient, last": lambda h: np.gradient(h, 0.5, axis=-1),
    "gradients": lambda h: np.gradient(h)[1],
    "vectorize": lambda h: np.vectorize(lambda a: a * a)(h),
    "vectorize, broadcast": lambda h: np.vectorize(lambda a, b: a * b)(h, h[0]),
    "vectorize, rows": lambda h: np.vectorize(lambda a, b: a * b)(h, np.ones(h.shape)),
    "vectorize, otypes": lambda h: np.vectorize(lambda a: a * a, otypes=[float])(h),
    "delete": lambda h: np.delete(h, 0, 1),
    "delete, last": lambda h: np.delete(h, -1, -1),
    "delete a list": lambda h: np.delete(h, [0], 0),
    "delete two": lambda h: np.delete(h, [0, 1], -1),
    "delete nothing": lambda h: np.delete(h, [], 0),
    "insert": lambda h: np.insert(h, 0, 1.0, axis=1),
    "insert a row": lambda h: np.insert(h, 1, h[0], axis=0),
}


def written_through(given, source):
    """A function that writes through a reshape, which is a view or a copy."""

    def f(x):
        y = source(given(x))
        v = y.reshape(-1)
        v[1:2] = 9.0
        return y

    return f


def in_memory_order(given, source):
    return lambda x: source(given(x)).ravel("K")


def plain(f, x):
    try:
        return f(x)
    except (ValueError, IndexError):
        pytest.skip("NumPy refuses it")


def unless_refused(jacobian, wanted):
    """A Jacobian on a tape; what is expected where the tape refuses to write through a view."""
    try:
        return jacobian(X)
    except fwdad.errors.UntraceableError as error:
        assert "is written" in str(error)  # noqa: PT017  (most programs are not refused)
        return wanted


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(
    ("looked_at", "given"),
    [*((written_through, given) for given in GIVEN), (in_memory_order, "part of columns")],
)
def test_values_and_derivatives(looked_at, source, given):
    f = looked_at(GIVEN[given], SOURCES[source])
    assert_array_equal(fwdad.jvp(f, X, X)[0], plain(f, X))
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))
    wanted = central_differences(f, X, accuracy=1e-6)
    for chunk in (2, 3):
        found = fwdad.jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(found, wanted, atol=1e-7)
    for transformed in (fwdad.jacfwd(f), fwdad.jacrev(f, chunk=2)):
        found = unless_refused(fwdad.jit(transformed, backend="numpy"), wanted)
        assert_allclose(found, wanted, atol=1e-7)


@needs_numba
@pytest.mark.parametrize("source", ["quantiles", "gradient", "vectorize", "delete", "insert"])
@pytest.mark.parametrize("looked_at", [written_through, in_memory_order])
def test_compiled(looked_at, source):
    f = looked_at(GIVEN["part of columns"], SOURCES[source])
    assert_array_equal(fwdad.jit(f, backend="numba")(X), f(X))
    wanted = fwdad.jacobian(f, X, mode="forward")
    for transformed in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        found = unless_refused(fwdad.jit(transformed, backend="numba"), wanted)
        assert_allclose(found, wanted, atol=1e-12)

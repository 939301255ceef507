"""NumPy's `diag` that is written, `flat`, `like=`, `fill_diagonal(wrap=True)`, and divisions by a zero that is known."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]
M = np.arange(6.0).reshape(2, 3) + 1


def check(f, x, backend):
    """Value, Jacobian both ways and one product, against f and its differences."""
    jit = fwdad.jit(f, backend=backend)
    assert_array_equal(jit(x.copy()), f(x.copy()))
    expected = central_differences(f, x)
    for transformed in (fwdad.jacfwd(f, chunk=2), fwdad.jacrev(f)):
        found = fwdad.jit(transformed, backend=backend)(x)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.slow_cases("numba")
@pytest.mark.parametrize("backend", BACKENDS)
def test_flat_as_an_argument(backend):
    check(lambda x: np.sum(x.flat) * np.dot(x.flat, x.T.flat), M, backend)
    check(lambda x: np.multiply(x.flat, np.add(x.flat, 1.0)), M, backend)
    check(lambda x: np.cumsum(x[:, ::2].flat) ** 2, M, backend)


@pytest.mark.slow_cases("numba")
@pytest.mark.parametrize("backend", BACKENDS)
def test_like(backend):
    check(lambda x: np.fromfunction(lambda i, j: i * x[0, 1] + j, (2, 2), like=x), M, backend)
    check(lambda x: x * np.ones((2, 3), like=x) + np.eye(2, 3, like=x), M, backend)
    check(lambda x: x[0] * np.array([1.0, 2.0, 3.0], like=x) + np.arange(3.0, like=x), M, backend)


def of_diagonal(shape, wrap):
    def f(x):
        a = np.sin(np.ones(shape)) * x[0, 0]
        np.fill_diagonal(a, x[1] * x[0], wrap=wrap)
        return a * a

    return f


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(7, 3), (3, 3), (2, 5), (9, 2), (2, 2, 2)])
def test_diagonals(shape, backend):
    if backend == "numba" and shape != (7, 3):
        return  # the same index, of other lengths
    for wrap in (True, False) if backend == "numpy" else (True,):
        check(of_diagonal(shape, wrap), M, backend)


def test_no_diagonal():
    for shape in ((3,), (2, 2, 3)):
        with pytest.raises(ValueError, match=r"at least 2-d|equal length") as own:
            of_diagonal(shape, wrap=True)(M)
        with pytest.raises(ValueError, match=str(own.value)):
            fwdad.jit(of_diagonal(shape, wrap=True))(M)
        with pytest.raises(ValueError, match=str(own.value)):
            fwdad.jit(fwdad.jacfwd(of_diagonal(shape, wrap=True)))(M)


@pytest.mark.every(3, of="numba")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("zero", [0, 0.0, -0.0])
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")
def test_arrays_divided_by_zero(zero, backend, caplog):
    def f(x):
        return (x / zero).sum()

    expected = np.full(3, 1 / np.float64(zero))
    x = np.array([1.0, 2.0, 3.0])
    assert_array_equal(fwdad.grad(f)(x), expected)
    assert_array_equal(fwdad.jit(fwdad.grad(f), backend=backend)(x), expected)
    assert_array_equal(fwdad.jit(fwdad.jacfwd(f), backend=backend)(x), expected)
    single = fwdad.jit(fwdad.grad(f), backend=backend)(x.astype(np.float32))
    assert single.dtype == np.float32
    assert not caplog.records


def test_numbers_divided_by_zero():
    for f in (lambda a: a / 0, lambda a: a // 0, lambda a: a % 0.0, lambda a: (a > 0) / 0):
        with pytest.raises(ZeroDivisionError) as own:
            f(2.0)
        for way in (fwdad.jit(f), fwdad.jit(fwdad.grad(f)), fwdad.grad(f), fwdad.jacfwd(f)):
            with pytest.raises(ZeroDivisionError, match=str(own.value)):
                way(2.0)
    g = fwdad.jit(lambda a: a / 0 if a < 0 else a * 2)  # a way that is not taken
    assert g(2.0) == 4.0
    with pytest.raises(ZeroDivisionError):
        g(-2.0)


def test_distributions_of_scipy():
    """Their methods are made from strings, of which the source is not kept."""
    stats = pytest.importorskip("scipy.stats")
    x = np.array([0.5, 1.0])

    def f(x):
        return stats.norm.logpdf(x).sum()

    assert_allclose(fwdad.jit(f)(x), f(x))
    assert_allclose(fwdad.jit(fwdad.grad(f))(x), -x)
    assert_allclose(fwdad.grad(f)(x), -x)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_matrix_of_a_diagonal_is_written(mode):
    def f(x):
        m = np.diag([x[0], x[1], 1.0])
        m[:2, 1:] += x[0] ** 2
        return m.ravel()

    x = np.array([0.5, 2.0])
    first = np.array([[1, 1, 1], [0, 1, 1], [0, 0, 0.0]])
    expected = np.stack([first, np.diag([0, 1.0, 0])], axis=-1).reshape(9, 2)
    found = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode=mode))(x)
    assert_allclose(found, expected)


def _is_sequence(x):
    try:
        iter(x)
    except TypeError:
        return False
    return True


@pytest.mark.every(2)
@pytest.mark.parametrize(
    "of",
    [
        lambda x: 3,
        lambda x: x.shape[0] // 2,
        lambda x: float(x[0]),
        lambda x: x[0],
        lambda x: x.sum().reshape(()),
        lambda x: None,
        lambda x: x,
        lambda x: [x[0]],
    ],
)
def test_a_number_is_distinguished_from_a_sequence(of):
    def f(x):
        return x * (2.0 if _is_sequence(of(x)) else 1.0) * (3.0 if np.iterable(of(x)) else 1.0)

    x = np.ones(3)
    assert_array_equal(fwdad.jit(f)(x), f(x))
    found = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode="reverse"))(x)
    assert_array_equal(found, np.diag(f(x)))

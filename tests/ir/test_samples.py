"""Samples: the types of a tape are those of what functions return for them."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from fwdad.ir.abstract_eval.samples import sample_of
from fwdad.ir.types import ArrayType
from tests.differences import central_differences

RNG = np.random.default_rng(0)
TALL = RNG.standard_normal((5, 2))
COUNTS = np.array([[1, 0], [1, 1], [1, 2], [1, 5], [1, 4]])
B = RNG.standard_normal(5)


@pytest.mark.parametrize("dtype", [*"fdFDbBil", "?"])
@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (3, 3), (1, 4), (2, 4, 2), (2, 0, 3)])
def test_matrices_have_full_rank(dtype, shape):
    for scale in (1.0, 32.0, None):
        made = sample_of(ArrayType(np.dtype(dtype), shape), {}, scale)
        assert made.dtype == dtype
        assert made.shape == shape
        if made.dtype != bool and scale is not None:
            ranks = np.linalg.matrix_rank(made.astype(complex))
            assert_array_equal(ranks, np.full(shape[:-2], min(shape[-2:])))


def fitted(a, b):
    return scipy.linalg.lstsq(a, b)[1] * np.sum(b)


@pytest.mark.every(3, of="auto")
@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("a", [TALL, TALL.T.copy().T, COUNTS], ids=["rows", "columns", "ints"])
def test_residuals_are_a_number_of_tall_matrices(a, backend):
    wanted = central_differences(lambda b: fitted(a, b), B)
    for transform in (fwdad.grad, fwdad.jacfwd, fwdad.jacrev):
        for chunk in (1, 2, 3) if transform is fwdad.jacfwd else (None,):
            options = {} if chunk is None else {"chunk": chunk}
            g = fwdad.jit(lambda b, t=transform, o=options: t(lambda b: fitted(a, b), **o)(b),
                          backend=backend)  # fmt: skip
            assert_allclose(g(B), wanted, rtol=1e-6, atol=1e-9)


def test_the_rank_of_a_result_is_found_for_each_kind_of_lengths():
    """By lengths: of a wide matrix the residuals are an array, of a tall one a number."""
    f = fwdad.jit(fwdad.grad(lambda a, b: np.sum(scipy.linalg.lstsq(a, b)[1])), backend="numpy")
    assert_allclose(f(TALL.T, B[:2]), np.zeros((2, 5)), atol=1e-14)
    wanted = central_differences(lambda a: scipy.linalg.lstsq(a, B)[1], TALL)
    assert_allclose(f(TALL, B), wanted, rtol=1e-6, atol=1e-9)


def number_of_two(x):
    return 2.0 * x[0] if len(x) == 2 else 2.0 * x


def array_of_two(x):
    return 2.0 * x if len(x) == 2 else 2.0 * x[0]


@pytest.mark.parametrize("function", [number_of_two, array_of_two])
def test_a_rank_that_hangs_on_a_length_is_that_of_the_example(function):
    """Whichever of the two samples has the higher one."""
    fwdad.pure(function)
    fwdad.frule(function)(lambda primals, tangents: (function(*primals), function(*tangents)))
    f = fwdad.jit(fwdad.jacfwd(lambda x: np.sum(function(x) ** 2)), backend="numpy")
    for n in (2, 5, 2):
        x = RNG.standard_normal(n)
        wanted = np.zeros(n)
        wanted[: np.size(function(x))] = 4 * np.atleast_1d(function(x))
        assert_allclose(f(x), wanted, rtol=1e-14)


def test_matrices_of_ints_are_solved():
    m = np.array([[1, 2], [3, 4]])
    for f in (
        lambda x: np.linalg.solve(m, x),
        lambda x: np.linalg.inv(m) @ x,
        lambda x: scipy.linalg.solve(m, x),
    ):
        for transform in (fwdad.jacfwd, fwdad.jacrev):
            found = fwdad.jit(transform(f), backend="numpy")(np.array([0.3, -0.7]))
            assert_allclose(found, np.linalg.inv(m), rtol=1e-12)


@pytest.mark.parametrize("d", [2, 10])
def test_samples_of_matrices_are_scaled(d):
    """The logarithm is defined where all elements are above (d - 1) / 2."""

    def f(a):
        return np.sum(scipy.special.multigammaln(a @ a.T + 9.0, d))

    def g(a):
        return np.sum(scipy.special.multigammaln(a + 9.0, d))

    for h in (f, g):
        found = fwdad.jit(fwdad.grad(h), backend="numpy")(TALL)
        assert_allclose(found, central_differences(h, TALL), rtol=1e-6, atol=1e-8)


def test_a_rank_that_values_decide_raises():
    """In the tangents' shapes it would be lost: an empty one for a number."""

    def f(t, m):
        return t**2 + np.sum(scipy.linalg.lstsq(t * m, B)[1])

    if type(scipy.linalg.lstsq(TALL, B)[1]) is np.ndarray:
        pytest.skip("SciPy 1.18 returns an array")
    deficient = np.outer(np.arange(1.0, 6.0), [1.0, 2.0])
    for transform in (fwdad.jacfwd, fwdad.grad):
        g = fwdad.jit(transform(f), backend="numpy")
        assert_allclose(g(0.7, TALL), 1.4, rtol=1e-12)
        with pytest.raises(UntraceableError, match="the rank depends on values"):
            g(0.7, deficient)
        assert_allclose(transform(f)(0.7, deficient), 1.4, rtol=1e-12)


@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize(("i", "j"), [(0, 2), (1, 3), (2, 2)])
def test_a_length_between_two_numbers(i, j, static_shapes):
    """Both numbers are one in a sample: the difference is not always that of the sample."""
    a = RNG.standard_normal((5, 5))
    a = a + a.T

    def given(a, i, j):
        return np.sum(scipy.linalg.eigh(a, eigvals_only=True, subset_by_index=[i, j]) ** 2)

    def captured(a):
        return given(a, i, j)

    for f, args in ((given, (a, i, j)), (captured, (a,))):
        wanted = fwdad.jacobian(given, a, args=(i, j), mode="forward")
        assert_allclose(fwdad.jit(f, static_shapes=static_shapes)(*args), f(*args), rtol=1e-12)
        found = fwdad.jit(fwdad.grad(f), static_shapes=static_shapes)(*args)
        assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)

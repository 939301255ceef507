"""Linear algebra in compiled code against NumPy, and its derivatives against those at once."""

from itertools import product

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.loops.source import numba_source
from fwdad.codegen.numpy_backend.source import compiled, numpy_source
from fwdad.frontend.trace import trace
from fwdad.transforms.passes import optimise
from tests.differences import central_differences, difference_along
from tests.tiers import every

rng = np.random.default_rng(3)
A = rng.normal(size=(3, 3)) + 4 * np.eye(3)
STACK = rng.normal(size=(2, 3, 3)) + 4 * np.eye(3)
V, B = rng.normal(size=3), rng.normal(size=(3, 2))
STACK_B = rng.normal(size=(2, 3, 2))
TALL = rng.normal(size=(5, 3))


def systems(a, v, b):
    return np.linalg.solve(a, v), np.linalg.solve(a, b), np.linalg.solve(a.T, b)


def stacked_systems(t, a, b, c):
    return (
        np.linalg.solve(t, c), np.linalg.solve(t, b), np.linalg.solve(a, c), np.linalg.inv(t),
        np.linalg.solve(t[0], c[0, :, 0]),
    )  # fmt: skip


def products(a, t, b, c, v):
    return (
        t @ a, t @ b, a @ t, t @ t, t @ v, v @ c, t[:, ::-1] @ c, np.einsum("kij,jl->kil", t, b),
        np.einsum("i,kij", v, t), np.einsum("kii->k", t), np.inner(v, v), t[:1] @ c,
    )  # fmt: skip


def symmetric(a, tall):
    s = a @ a.T
    low = np.linalg.cholesky(s)
    return low, np.linalg.eigvalsh(s), np.linalg.norm(tall, axis=1), np.linalg.norm(tall)


PROGRAMS = [
    (systems, (A, V, B)), (stacked_systems, (STACK, A, B, STACK_B)),
    (products, (A, STACK, B, STACK_B, V)), (symmetric, (A, TALL)),
]  # fmt: skip


@pytest.mark.slow_cases("2")
@pytest.mark.parametrize("k", every(2, range(len(PROGRAMS))))
def test_derivatives_are_compiled(k):
    f, args = PROGRAMS[k]
    both = fwdad.jit(lambda *args: (f(*args), fwdad.jacfwd(f)(*args)))
    y, jacobians = both(*args)
    for found, wanted in zip(y, f(*args), strict=True):
        assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)
    for found, wanted in zip(jacobians, fwdad.jacfwd(f)(*args), strict=True):
        assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
    assert fwdad.explain(both).endswith("run by Numba")


def decompositions(a, t, tall):
    u, s, vt = np.linalg.svd(tall, full_matrices=False)
    q, r = np.linalg.qr(tall)
    low, vectors = np.linalg.eigh(a + a.T, UPLO="U")
    return (
        u * s @ vt, np.abs(q @ r), np.linalg.det(t), np.linalg.slogdet(a)[1],
        vectors * low @ vectors.T, np.linalg.svd(tall)[0].shape[1],
    )  # fmt: skip


def test_decompositions():
    f = fwdad.jit(decompositions)
    for found, wanted in zip(f(A, STACK, TALL), decompositions(A, STACK, TALL), strict=True):
        assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    assert fwdad.explain(f).endswith("run by Numba")


def test_complex_and_narrow_systems():
    f = fwdad.jit(lambda a, b: np.linalg.solve(a, b) @ b.T)
    for dtype, eps in ((complex, 1e-13), (np.float32, 1e-4), (np.complex64, 1e-4)):
        a, b = (
            (A + (0.5j * A.T if np.dtype(dtype).kind == "c" else 0)).astype(dtype),
            B.astype(dtype),
        )
        found = f(a, b)
        assert found.dtype == dtype
        assert_allclose(found, np.linalg.solve(a, b) @ b.T, rtol=eps, atol=eps)
        assert fwdad.explain(f).endswith("run by Numba")


def test_errors_are_numpy_s():
    f = fwdad.jit(lambda a, b: np.linalg.solve(a, b))
    assert_allclose(f(A, B), np.linalg.solve(A, B), rtol=1e-13)
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        f(np.ones((3, 3)), B)
    for a, b in ((TALL, B), (A, TALL), (A[:2], B)):
        with pytest.raises(Exception) as wanted:  # noqa: PT011 (whatever NumPy raises)
            np.linalg.solve(a, b)
        with pytest.raises(type(wanted.value), match=str(wanted.value)[:20]):
            f(a, b)
    empty = f(np.empty((0, 0)), np.empty((0, 2)))
    assert empty.shape == (0, 2)


def factorisations(f, *args):
    program = trace(f, *args).program
    optimise(program)
    return numba_source(program)[0].text.count("lu_factor(")


def test_one_factorisation_serves_the_lanes():
    def f(a, v):
        return np.linalg.solve(a, v)

    assert factorisations(fwdad.jacfwd(f), A, V) == 1
    assert factorisations(fwdad.jacfwd(f, argnums=(0, 1)), A, V) == 1

    def written(a, v):
        x = np.linalg.solve(a, v)
        a[0, 0] += 1.0
        return x + np.linalg.solve(a, v)

    assert factorisations(written, A.copy(), V) == 2

    def branched(a, v, flag):
        x = np.linalg.solve(a, v) if flag else v
        return x + np.linalg.solve(a, 2 * v)

    assert factorisations(branched, A, V, True) == 2  # the first may not have run


def test_systems_in_a_loop_keep_their_matrices():
    def f(a, v, n):
        x = v
        for k in range(n):
            m = a + k * np.outer(x, x)
            x = np.linalg.solve(m, x) + np.linalg.solve(a, v) + np.linalg.solve(m, v)
        return x

    program = trace(f, A, V, 3).program
    optimise(program)
    plain = compiled(numpy_source(program))
    g = fwdad.jit(f)
    assert_allclose(g(A, V, 3), f(A, V, 3), rtol=1e-12)
    assert_allclose(plain(A, V, 3)[0], f(A, V, 3), rtol=1e-12)
    assert factorisations(f, A, V, 3) == 2


def of_squares(a):
    values, vectors = np.linalg.eigh(a + a.T)
    power = np.linalg.matrix_power(a, -3)
    return values, vectors**2, power, np.linalg.slogdet(a)[1], np.linalg.cholesky(a @ a.T)


def of_rectangles(a):
    q, r = np.linalg.qr(a)
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    x, squares, _, _ = np.linalg.lstsq(a, a[:, 0] ** 2)
    return q, r, u**2, s, vt**2, np.linalg.pinv(a), x, squares


@pytest.mark.parametrize(
    ("f", "x"), [(of_squares, A), pytest.param(of_rectangles, TALL, marks=pytest.mark.slow)]
)
def test_derivatives_of_factorisations_are_compiled(f, x):
    """Along directions and backwards, for matrices of any length."""

    def total(x):
        s = 0.0
        for y in f(x):
            s = s + np.sum(np.sin(y))
        return s

    push = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v)[1])
    gradient = fwdad.jit(fwdad.grad(total))
    v, w = rng.normal(size=(2, *x.shape)), rng.normal(size=x.shape)
    for own, wanted in zip(push(x, v), fwdad.jvp(f, x, v)[1], strict=True):
        assert_allclose(own, wanted, rtol=1e-9, atol=1e-11)
    for k in (3, 4) if f is of_rectangles else (2, 3):  # other lengths, the same code
        part = x[:k] if f is of_rectangles else x[:k, :k].copy()
        found, direction = gradient(part), w[: part.shape[0], : part.shape[1]]
        slope = difference_along(total, part, direction)
        assert_allclose(np.sum(found * direction), slope, rtol=1e-6, atol=1e-6)
    for compiled_function in (push, gradient):
        assert fwdad.explain(compiled_function).endswith("run by Numba")


def test_vectors_of_a_repeated_eigenvalue_raise_where_they_are_used():
    values = fwdad.jit(lambda x: fwdad.jacobian(lambda x: np.linalg.eigh(np.eye(3) * x)[0], x))
    vectors = fwdad.jit(lambda x: fwdad.jacobian(lambda x: np.linalg.eigh(np.eye(3) * x)[1], x))
    assert_allclose(values(2.0), np.ones(3), rtol=1e-14)
    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="repeated eigenvalue"):
        vectors(2.0)


def test_factors_of_rectangles_are_recorded():
    """Their derivatives, for matrices of unknown lengths, are no calls of rules."""

    def f(a):
        q, r = np.linalg.qr(a)
        return np.sum(q[:, 0] * r[0, -1]) + np.sum(np.linalg.lstsq(a, a[:, 0] ** 2)[0])

    gradient = fwdad.jit(fwdad.grad(f))
    assert_allclose(gradient(TALL), central_differences(f, TALL), rtol=1e-6, atol=1e-7)
    assert fwdad.explain(gradient).endswith("run by Numba")


def test_flags_that_are_given_are_assumed():
    """They decide how many results there are."""
    for pivoting in (False, True, False):
        given = {"mode": "economic", "pivoting": pivoting}
        y, pullback = fwdad.vjp(scipy.linalg.qr, TALL, kwargs=given)
        assert len(y) == 2 + pivoting
        q_bar, r_bar = np.ones_like(y[0]), np.ones_like(y[1])
        x_bar = pullback((q_bar, r_bar, *y[2:]))

        def total(a, given=given):
            q, r, *_ = scipy.linalg.qr(a, **given)
            return np.sum(q) + np.sum(r)

        assert_allclose(x_bar, central_differences(total, TALL), rtol=1e-6, atol=1e-7)


@pytest.mark.every(7, first=2)
@pytest.mark.parametrize("kind", [float, np.float32, complex, int])
@pytest.mark.parametrize(
    "subscripts",
    ["lij,lik->ijk", "ijl,jlk->ijk", "ij,jk->ik", "ij,kj->ik", "ji,jk->ik", "ij,jk,k->k"],
)
def test_sums_of_einsum_in_any_order(subscripts, kind):
    """Innermost, or formed in the result where that lies in memory as its operands do."""
    rng = np.random.default_rng(3)
    lengths = dict(zip("ijkl", (3, 4, 5, 6), strict=True))
    terms = subscripts.partition("->")[0].split(",")
    arrays = [(4 * rng.normal(size=[lengths[c] for c in term])).astype(kind) for term in terms]
    found = fwdad.jit(lambda *a: np.einsum(subscripts, *a), backend="numba")(*arrays)
    wanted = np.einsum(subscripts, *arrays)
    assert found.dtype == wanted.dtype
    assert_allclose(found, wanted, rtol=1e-5 if kind is np.float32 else 1e-13)
    for n in (0, 1):  # of the first operand's last axis
        lengths[terms[0][-1]] = n
        given = [a[tuple(slice(lengths[c]) for c in t)] for a, t in zip(arrays, terms, strict=True)]
        found = fwdad.jit(lambda *a: np.einsum(subscripts, *a), backend="numba")(*given)
        assert_allclose(found, np.einsum(subscripts, *given), rtol=1e-5)


@pytest.mark.every(4)
@pytest.mark.parametrize(("n", "kind"), every(5, product([1, 2, 7, 8, 9, 17], [float, np.float32])))
@pytest.mark.parametrize(
    "subscripts", ["kij,nkj->nki", "lij,lik->ijk", "ab,cb->ac", "ijk,j->ik", "ij,jk,il->lik"]
)
def test_sums_of_einsum_along_rows(subscripts, n, kind):
    """In registers, whole vectors and the rest of a row; operands may be views."""
    rng = np.random.default_rng(4)
    inputs, result = subscripts.split("->")
    terms = inputs.split(",")
    lengths = {c: n if c == result[-1] else 3 + k for k, c in enumerate(sorted({*inputs} - {","}))}
    arrays = [rng.normal(size=[2 * lengths[c] for c in term]).astype(kind) for term in terms]
    half = [(*[slice(None, None, 2)] * (a.ndim - 1), slice(0, a.shape[-1] // 2)) for a in arrays]
    views = [a[index] for a, index in zip(arrays, half, strict=True)]
    f = fwdad.jit(lambda *a: np.einsum(subscripts, *a), backend="numba")
    tolerance = 1e-5 if kind is np.float32 else 1e-13
    for given in (views, [np.ascontiguousarray(v) for v in views]):
        found = f(*given)
        assert found.dtype == kind
        assert_allclose(found, np.einsum(subscripts, *given), rtol=tolerance, atol=tolerance)
    longer = [np.concatenate((a, a)) for a in views]
    if subscripts == "ab,cb->ac":  # the same tape, other lengths
        assert_allclose(f(*longer), np.einsum(subscripts, *longer), rtol=tolerance, atol=tolerance)


def test_what_rows_of_einsum_assume():
    """A row of one number is broadcast; a NaN stays where it is."""
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4.0).reshape(4, 1)
    f = fwdad.jit(lambda a, b: np.einsum("ij,jk->ik", a, b), backend="numba")
    assert_allclose(f(a, b), a @ b)
    a[1, 2] = np.nan
    c = np.ones((4, 5))
    assert_allclose(f(a, c), np.einsum("ij,jk->ik", a, c))
    with pytest.raises(ValueError, match=r"fit|broadcast|mismatch"):
        f(a, np.ones((3, 5)))


@pytest.mark.slow_cases("float32", "complex")
@pytest.mark.parametrize("dtype", [float, np.float32, complex])
def test_products_of_few_rows_and_columns(dtype, rng):
    """Lengths that are not known: loops up to ten, BLAS beyond; any layout."""
    product = fwdad.jit(lambda a, b: a @ b)
    tolerance = 1e-5 if dtype is np.float32 else 1e-13
    for m, k, n in np.ndindex(3, 3, 3):
        lengths = [(0, 1, 5)[m] + 2 * m, (3, 8, 10)[k], (2, 9, 11)[n]]
        a, b = (rng.standard_normal((s, t)).astype(dtype) for s, t in (lengths[:2], lengths[1:]))
        for x in (a, np.asfortranarray(a), a[::-1]):
            for y in (b, np.asfortranarray(b), b[:, ::-1]):
                found = product(x, y)
                assert found.dtype == dtype
                assert_allclose(found, x @ y, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_determinants_in_the_precision_of_the_matrix(dtype, caplog):
    a = np.array([[2.0, 1.0], [0.5, 3.0]]).astype(dtype)
    for f in (np.linalg.det, lambda a: np.linalg.slogdet(a)[0], lambda a: np.linalg.slogdet(a)[1]):
        for x in (a, np.array([a, a.T, a @ a])):
            found, wanted = fwdad.jit(f)(x), f(x)
            assert found.dtype == wanted.dtype
            assert_allclose(found, wanted, rtol=1e-5)
    if a.dtype.kind == "f":
        assert fwdad.jit(fwdad.grad(np.linalg.det))(a).dtype == dtype
    assert not caplog.records


def test_gradients_of_column_extremes_of_what_is_written(caplog):
    def f(x):
        s, rows, total = x.reshape(2, 3) * 2.0, np.zeros((2, 3)), 0.0
        for k in range(2):
            rows[0, :] = s[k, :]
            total += np.min(rows, axis=0).sum()
        return total

    x = np.linspace(-1.0, 1.1, 6)
    assert_allclose(fwdad.jit(fwdad.grad(f))(x), central_differences(f, x), atol=1e-8)
    assert not caplog.records

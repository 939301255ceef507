"""The structure of each operation, beside its dense Jacobian at several points."""

import math

import numpy as np
import pytest

import fwdad
from fwdad.tangents.sparse import scatter_add, sparse_product

RNG = np.random.default_rng(3)
X = RNG.random((3, 4)) + 0.3
V = RNG.random(6) + 0.3
A = RNG.random((4, 5))
CUBE = RNG.random((2, 3, 4))
PLACES = np.array([2, 0, 2, 1])

# functions whose patterns are those of their Jacobians, and the points
EXACT = {
    "product": (lambda x: x * np.sin(x) - 3, X),
    "broadcast": (lambda x: x[:, None] * x[None, :], V),
    "quotient": (lambda x: x[1:] / x[:-1], V),
    "sum": (lambda x: np.sum(x, axis=1), X),
    "sum of all": (np.sum, X),
    "mean": (lambda x: np.mean(x, axis=0, keepdims=True), X),
    "sums of two axes": (lambda x: np.sum(x, axis=(0, 2)), CUBE),
    "prod": (lambda x: np.prod(x, axis=-1), X),
    "var": (lambda x: np.var(x, axis=0), X),
    "norm": (lambda x: np.linalg.norm(x, axis=1), X),
    "cumsum": (np.cumsum, X),
    "cumsum of columns": (lambda x: np.cumsum(x, axis=0), X),
    "cumprod": (np.cumprod, V),
    "accumulate": (lambda x: np.multiply.accumulate(x, axis=1), X),
    "reduce": (lambda x: np.add.reduce(x, axis=1), X),
    "diff": (np.diff, V),
    "transpose": (lambda x: x.T * 2, X),
    "reshape": (lambda x: x.reshape(2, 6)[:, ::2], X),
    "roll": (lambda x: np.roll(x, 2, axis=1), X),
    "flip": (lambda x: np.flip(x, 0), X),
    "repeat": (lambda x: np.repeat(x, 2, axis=0), X),
    "tile": (lambda x: np.tile(x, (2, 1)), X),
    "take": (lambda x: np.take(x, [2, 0, 2], axis=0), X),
    "fancy": (lambda x: x[PLACES[:2]], X),
    "mask": (lambda x: x[np.array([True, False, True])], X),
    "pad": (lambda x: np.pad(x, 1, mode="wrap"), X),
    "concatenate": (lambda x: np.concatenate([x, [[1.0] * 4], x[:1]]), X),
    "stack": (lambda x: np.stack([x, x[::-1]], axis=1), X),
    "array": (lambda x: np.array([x[0], 1.0, x[2] * x[3]]), V),
    "triangle": (np.tril, X),
    "diagonal": (lambda x: np.diagonal(x), X),
    "diag": (np.diag, V),
    "trace": (np.trace, X),
    "where": (lambda x: np.where(np.array([True, False] * 3), x, x[::-1]), V),
    "matvec": (lambda x: A @ x[:5], V),
    "matmul": (lambda x: x @ A, X),
    "of both": (lambda x: x @ x.T, X),
    "dot": (lambda x: np.dot(x, x), V),
    "outer": (lambda x: np.outer(x, x[:2]), V),
    "inner": (lambda x: np.inner(x, x[:2]), X),
    "batched matmul": (lambda x: x @ np.swapaxes(x, 1, 2), CUBE),
    "kron": (lambda x: np.kron(x[:2], x[2:]), V),
    "tensordot": (lambda x: np.tensordot(x, A, axes=1), X),
    "einsum": (lambda x: np.einsum("ij,jk->ki", x, A), X),
    "einsum of both": (lambda x: np.einsum("bij,bkj->bik", x, x), CUBE),
    "einsum of a diagonal": (lambda x: np.einsum("ii->i", x[:, :3]), X),
    "convolve": (lambda x: np.convolve(x, [1.0, 2.0, 3.0], "same"), V),
    "cross": (lambda x: np.cross(x[:, :3], x[::-1, 1:]), X),
    "scatter": (lambda x: scatter_add(x[:4], PLACES, 3), V),
    "sparse": (
        lambda x: sparse_product(
            np.ones(3), x, "csr", np.array([0, 1, 3]), np.array([2, 0, 5]), (2, 6)
        ),
        V,
    ),
    "clip": (lambda x: np.clip(x, 0.0, 9.0), V),
    "maximum": (lambda x: np.maximum(x, 0.0), V),
    "number": (lambda x: math.exp(x[0]) * math.sin(x[3]), V),
    "floor": (lambda x: np.floor(x + 2) * x[0], V),
    "constant": (lambda x: np.zeros_like(x) + np.ones(6), V),
    "stop": (lambda x: fwdad.stop_gradient(x) * x[1], V),
    "spectrum of rows": (lambda x: np.abs(np.fft.rfft(x, axis=1)[:, 1:2]), X),
    "inverse": (lambda x: np.linalg.inv(x[:, :3] + 3 * np.eye(3)), X),
    "split": (lambda x: np.split(x, 3)[1] * 2, V),
}


@pytest.mark.parametrize("kind", ["global", "local"])
@pytest.mark.parametrize("name", EXACT)
def test_exact(name, kind):
    f, x = EXACT[name]
    J = fwdad.jacobian(f, x, mode="forward").reshape(-1, x.size) != 0
    pattern = fwdad.jacobian_sparsity(f, x, kind=kind).toarray()
    assert np.array_equal(pattern, J)


def mixture(x):
    return np.sort(x) * np.where(x > 0.6, x[::-1], np.median(x)) + np.maximum(x, x[::-1])


# what depends on values, or what nothing is known of: more than the Jacobian at a point has
WIDER = {
    "bincount": (lambda x: np.bincount(PLACES, weights=x[:4], minlength=4), V),
    "sort": (np.sort, V),
    "mixture": (mixture, V),
    "maximum": (lambda x: np.maximum(x[1:], x[:-1]), V),
    "max": (lambda x: np.max(x, axis=0), X),
    "solve": (lambda x: np.linalg.solve(x[:, :3] + 3 * np.eye(3), x[:, 3]), X),
    "eigenvalues": (lambda x: np.linalg.eigvalsh(x[:, :3] + x[:, :3].T), X),
    "interp": (lambda x: np.interp(x, [0.0, 0.5, 2.0], x[:3] + 1), V),
    "gathered": (lambda x: x[np.argsort(x)], V),
    "masked": (lambda x: np.where(x > 0.6, x[0], x), V),
}


@pytest.mark.parametrize("kind", ["global", "local"])
@pytest.mark.parametrize("name", WIDER)
def test_superset(name, kind):
    f, x = WIDER[name]
    pattern = fwdad.jacobian_sparsity(f, x, kind=kind).toarray()
    rng = np.random.default_rng(0)
    for at in (x,) if kind == "local" else (x, *rng.random((5, *x.shape))):
        J = fwdad.jacobian(f, at, mode="forward").reshape(-1, x.size) != 0
        assert not np.any(J & ~pattern)


def test_known_arrays_are_sorted():
    for f, x in ((np.sort, V), (lambda x: np.sort(x, axis=0), X), (lambda x: np.sort(x, None), X)):
        J = fwdad.jacobian(f, x, mode="forward").reshape(-1, x.size) != 0
        assert np.array_equal(fwdad.jacobian_sparsity(f, x, kind="local").toarray(), J)
        assert fwdad.jacobian_sparsity(f, x).nnz > J.sum()
    ties = np.array([1.0, 2.0, 1.0])
    assert fwdad.jacobian_sparsity(np.sort, ties, kind="local").nnz == 9


def test_rules_of_the_user():
    """A parameter that is called axis means nothing, and linear functions are not run on nodes."""

    def mixed(x, axis=0):
        assert x.dtype == float
        return x[::-1] * np.ones(1)

    fwdad.linear(mixed)

    def squared(x):
        return x**2

    fwdad.elementwise(squared, lambda x, y: 2 * x)
    dense = np.ones((6, 6), bool)
    for kind in ("global", "local"):
        assert np.array_equal(fwdad.jacobian_sparsity(mixed, V, kind=kind).toarray(), dense)
        assert np.array_equal(fwdad.jacobian_sparsity(squared, V, kind=kind).toarray(), np.eye(6))


def test_what_is_dense_is_named():
    pattern = fwdad.jacobian_sparsity(WIDER["eigenvalues"][0], X)
    (why,) = pattern.dense
    assert "eigvalsh" in why
    assert "test_structures.py" in why


# numbers, with the patterns of their Hessians
HESSIANS = {
    "squares": (lambda x: x @ x, V),
    "products": (lambda x: np.sum(x[1:] * x[:-1]), V),
    "linear": (lambda x: 3 * np.sum(x[::2]) - x[1] / 2, V),
    "quotient": (lambda x: x[0] / x[1] + 1 / x[2] + x[3] / 2, V),
    "power": (lambda x: np.sum(x**3) + np.sin(x[0]) * x[3], V),
    "matmul": (lambda x: x[:3] @ np.ones((3, 3)) @ x[3:], V),
    "unused": (lambda x: (np.exp(x) * 0 + x)[0] * x[1], V),
    "nested": (lambda x: np.exp(x[0] * x[1]) + np.prod(x[2:4]) ** 2, V),
    "einsum": (lambda x: np.einsum("i,i,j->", x[:2], x[2:4], np.ones(3)), V),
    "bilinear": (lambda x: np.einsum("i,ij,j->", x[:4], A, np.ones(5)) + x[4] * x[5], V),
    "maximum": (lambda x: np.sum(np.maximum(x, 1.0) * 2), V),
    "convolve": (lambda x: np.convolve(x[:2], x[2:4])[1], V),
}


@pytest.mark.parametrize("kind", ["global", "local"])
@pytest.mark.parametrize("name", HESSIANS)
def test_hessians(name, kind):
    f, x = HESSIANS[name]
    H = np.abs(fwdad.hessian(f, x)) > 1e-13
    pattern = fwdad.hessian_sparsity(f, x, kind=kind).toarray()
    assert not np.any(H & ~pattern)
    assert np.array_equal(pattern, pattern.T)
    if name not in ("unused", "einsum"):
        off = ~np.eye(6, dtype=bool)  # a function of one product is not linear in its factors
        assert np.array_equal(pattern & off, H & off)

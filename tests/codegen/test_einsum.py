"""Einsums with an ellipsis, and with axes whose lengths are known at run time, are loops."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")

RNG = np.random.default_rng(4)

ELLIPSES = [
    ("...ij,...jk->...ik", (5, 3, 4), (5, 4, 2)),
    ("...ij,...jk->...ik", (5, 3, 4), (4, 2)),
    ("...ij,...jk->...ik", (5, 3, 4), (2, 5, 4, 2)),
    ("...ij,...jk->...ik", (5, 3, 4), (1, 4, 2)),
    ("...ij,...jk", (5, 3, 4), (5, 4, 2)),
    ("b...,...a->ab...", (3, 5, 4), (5, 4, 2)),
    ("i...->...", (5, 3, 4)),
    ("...ii->...i", (3, 2, 4, 4)),
    ("...,...", (2, 3), (3,)),
    ("i...j , j -> i...", (2, 3, 4), (4,)),
]


def derivatives_are_right(f, *args):
    """Gradient and Jacobian products in three directions, at once and in chunks, by differences."""
    loss = lambda *args: np.sum(np.cos(0.1 * f(*args)))  # noqa: E731
    every = tuple(range(len(args)))
    slopes = fwdad.jit(fwdad.grad(loss, argnums=every))(*args)
    for _ in range(2):
        v = [RNG.normal(size=a.shape) for a in args]
        h = 1e-5
        ahead, behind = (loss(*(a + s * h * d for a, d in zip(args, v, strict=True)))
                         for s in (1, -1))  # fmt: skip
        along = sum(np.vdot(g, d) for g, d in zip(slopes, v, strict=True))
        assert_allclose(along, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-8)
    lanes = tuple(np.stack([d, -d, 2 * d]) for d in v)
    for chunk in (1, 2, 3):
        pushed = fwdad.jit(
            lambda x, v, n=chunk: fwdad.jvp(lambda x: loss(*x), x, (v,), argnums=(0,), chunk=n)
        )
        assert_allclose(
            pushed(tuple(args), lanes)[1], along * np.array([1.0, -1.0, 2.0]), rtol=1e-9
        )


@pytest.mark.parametrize(("subscripts", "shapes"), [(s, shapes) for s, *shapes in ELLIPSES])
def test_an_ellipsis(subscripts, shapes):
    def f(*arrays):
        return np.einsum(subscripts, *arrays)

    args = [RNG.normal(size=shape) for shape in shapes]
    assert "called" not in fwdad.show(f, *args, backend="numba")
    found = fwdad.jit(f)(*args)
    assert found.shape == f(*args).shape
    assert_allclose(found, f(*args), rtol=1e-13, atol=1e-13)
    derivatives_are_right(f, *args)


REPEATED = ["ii", "ii->i", "...ii->...i", "bii->b", "iji->j", "ij,ii->j", "ij->i", "ij,kl->k"]


@pytest.mark.parametrize("subscripts", REPEATED)
def test_gradients_of_diagonals_and_sums_are_loops(subscripts):
    def loss(x):
        return np.sum(np.cos(np.einsum(subscripts, *[x] * (1 + subscripts.count(",")))))

    rank = len(subscripts.partition("->")[0].partition(",")[0].replace("...", "b"))
    slope = fwdad.jit(fwdad.grad(loss))
    for n in (3, 1, 5):
        x = RNG.normal(size=(n,) * rank)
        assert_allclose(slope(x), fwdad.grad(loss)(x), rtol=1e-12, atol=1e-13)
        assert "NumPy" not in fwdad.explain(slope)


SPELLINGS = {
    "lists": lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]),
    "lists without a result": lambda x, y: np.einsum(x, [3, 1], y, [1, 2]),
    "lists with ellipses": lambda x, y: np.einsum(x, [..., 1], y, [1, 2], [2, ...]),
    "planned": lambda x, y: np.einsum("ij,jk,kl->il", x, y, y.T, optimize=True),
    "planned, no result": lambda x, y: np.einsum("ij,jk,lk", x, y, y, optimize="greedy"),
    "planned, of four": lambda x, y: np.einsum(
        "ij,jk,ik,j->k", x, y, x @ y, y[:, 0], optimize="optimal"
    ),
    "planned, ellipses": lambda x, y: np.einsum(
        "...j,jk,...k->...", x[:, None], y, x @ y, optimize=True
    ),
    "planned, of chosen rows": lambda x, y: np.einsum(
        "ij,jk,ik->k", x[x[:, 0] > -9], y, (x @ y)[x[:, 0] > -9], optimize=True
    ),
    "planned, to a number": lambda x, y: np.einsum("ij,jk,ik->", x, y, x @ y, optimize=True),
}


@pytest.mark.parametrize("f", SPELLINGS.values(), ids=list(SPELLINGS))
def test_every_spelling_is_loops(f):
    compiled = fwdad.jit(f)
    for m, n, k in ((3, 4, 2), (1, 4, 2), (3, 1, 1), (40, 33, 9)):
        x, y = RNG.normal(size=(m, n)), np.asfortranarray(RNG.normal(size=(n, k)))
        assert_allclose(compiled(x, y), f(x, y), rtol=1e-12, atol=1e-12)
        assert "NumPy" not in fwdad.explain(compiled)
    derivatives_are_right(f, RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2)))


def shifted(x, y):
    total = 0.0
    for w in range(x.shape[0]):
        parts = np.einsum("eij,eik->jk", x[w:], y[: x.shape[0] - w])
        total = total + np.sum(parts * parts)
    return total


def test_slices_of_any_length():
    x, y = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 2, 4))
    assert "called" not in fwdad.show(shifted, x, y, backend="numba")
    assert_allclose(fwdad.jit(shifted)(x, y), shifted(x, y), rtol=1e-13)
    derivatives_are_right(shifted, x, y)


def rest(x, y):
    return np.einsum("ei,ei->i", x[1:], y)


@pytest.mark.parametrize(("m", "n"), [(4, 3), (2, 3), (4, 1), (2, 1)])
def test_a_length_of_one_is_broadcast(m, n):
    x, y = RNG.normal(size=(m, 3)), RNG.normal(size=(n, 3))
    f = fwdad.jit(rest)
    f(np.ones((5, 3)), np.ones((4, 3)))  # where nothing is
    assert_allclose(f(x, y), rest(x, y), rtol=1e-13)
    derivatives_are_right(rest, x, y)


def test_lengths_that_differ_raise_numpy_s_error():
    f = fwdad.jit(rest)
    with pytest.raises(ValueError, match="broadcast together"):
        f(np.ones((4, 3)), np.ones((4, 3)))


def test_a_program_that_writes_its_argument():
    """It could not be run again under NumPy."""

    def f(x, y):
        y[:] += 1.0
        return np.sum(np.einsum("ei,ej->ij", x[1:], y) ** 2)

    x = RNG.normal(size=(2, 3))
    y = RNG.normal(size=(3, 2))
    given, plain = y.copy(), y.copy()
    jitted = fwdad.jit(f)
    for _ in range(2):
        assert_allclose(jitted(x, given), f(x, plain), rtol=1e-13)
        assert_allclose(given, plain, rtol=1e-15)


DIAGONALS = {
    "diag": np.diag,
    "diag above": lambda m: np.diag(m, 1),
    "lists": lambda m: np.einsum(m, [0, 0], [0]),
    "lists, transposed": lambda m: np.einsum(m, [1, 0], [0, 1])[1],
}


@pytest.mark.parametrize("view", DIAGONALS.values(), ids=list(DIAGONALS))
def test_a_diagonal_of_what_an_elimination_writes(view):
    """Its view is followed in forward mode, over reverse mode too."""

    def loss(a):
        a = a + 4 * np.eye(len(a))
        for k in range(len(a) - 1):
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        return np.sum(np.cos(view(a)))

    a, v = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    h = 1e-5
    ahead, behind = (fwdad.grad(loss)(a + s * h * v) for s in (1, -1))
    found = fwdad.jit(lambda a, v: fwdad.hvp(loss, a, v))(a, v)
    assert_allclose(found, (ahead - behind) / (2 * h), rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jit(fwdad.jacfwd(loss))(a), fwdad.grad(loss)(a), rtol=1e-11)

"""Functions that are said in simpler ones, and cofactors, compiled; their derivatives too."""

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.tiers import every

pytest.importorskip("numba")

RNG = np.random.default_rng(3)
A = RNG.standard_normal((3, 5))
Z = RNG.standard_normal((3, 3)) + 1j * RNG.standard_normal((3, 3))


def by_element(a, z):
    return (
        np.round(a, 2), np.around(a * 100, -1), np.fix(a), np.angle(z), np.heaviside(a, 0.5),
        np.nan_to_num(a, nan=1.0, posinf=2.0), np.isclose(a, a + 1e-9), np.allclose(a, a[::-1]),
        np.isposinf(a), *np.divmod(a, 0.3), np.clip(a, None, 0.5),
    )  # fmt: skip


def along_axes(a, z):
    return (
        np.nansum(a), np.nanprod(a, axis=1, keepdims=True), np.nanstd(a, axis=0, ddof=1),
        np.nanmax(a, axis=0), np.median(a), np.sum(a, where=a > 0), sp.logsumexp(a),
    )  # fmt: skip


def norms(a, z):
    n = np.linalg.norm
    return (
        n(a, 1), n(a, 2), n(z, "fro"), n(a, axis=1, ord=3), n(a, axis=1, keepdims=True),
        np.linalg.matrix_norm(z, ord="nuc"), np.linalg.cond(z),
        np.tensordot(a, np.stack([a, a]), axes=([0, 1], [1, 2])), np.linalg.vecdot(z, z * 2),
    )  # fmt: skip


STACKED = {
    "dot with a vector": lambda x, v: np.dot(x, v),
    "dot with a matrix": lambda x, v: np.dot(x, np.outer(v, v)),
    "dot of stacks": lambda x, v: np.dot(x, np.moveaxis(x, -1, 1) * v[0]),
    "tensordot without axes": lambda x, v: np.tensordot(x[0], v, 0),
}


@pytest.mark.parametrize("f", STACKED.values(), ids=list(STACKED))
def test_products_of_stacks_are_not_left_to_numpy(f):
    loss = lambda x, v: np.sum(np.sin(f(x, v)))  # noqa: E731
    value, slopes = fwdad.jit(f), fwdad.jit(fwdad.grad(loss, argnums=(0, 1)))
    for shape in ((2, 3, 4), (1, 3, 4), (2, 1, 1)):
        x = np.asfortranarray(RNG.standard_normal(shape))
        v = RNG.standard_normal(shape[-1:])
        assert_allclose(value(x, v), f(x, v), rtol=1e-12, atol=1e-13)
        for k, slope in enumerate(slopes(x, v)):
            of_one = (lambda x, v=v: loss(x, v)), (lambda v, x=x: loss(x, v))
            wanted = central_differences(of_one[k], (x, v)[k])
            assert_allclose(slope, wanted, rtol=1e-7, atol=1e-9)
    for made in (value, slopes):
        assert "the function" not in fwdad.explain(made)
        assert "this call" not in fwdad.explain(made)


@pytest.mark.slow_cases("norms")
@pytest.mark.parametrize("f", every(2, [by_element, along_axes, norms]))
def test_values(f):
    made = fwdad.jit(f)
    odd = A.copy()
    odd[0, :2], odd[2, 1], odd[1, 3] = np.nan, np.inf, 0.0
    for a in (A, np.asfortranarray(A * 3.0), *[odd] * (f is not norms)):
        with np.errstate(all="ignore"):
            for found, wanted in zip(made(a, Z), f(a, Z), strict=True):
                assert np.asarray(found).dtype == np.asarray(wanted).dtype
                assert_allclose(found, wanted, rtol=1e-13, atol=1e-14)
    assert "NumPy" not in fwdad.explain(made)


def without_singular_values(a):
    return (
        np.linalg.norm(a, 1) + np.sum(sp.softmax(a, axis=1) * a) + sp.logsumexp(a) * np.nanmean(a)
    )


def total(a):
    return np.linalg.norm(a, "nuc") * np.linalg.det(a) + without_singular_values(a)


@pytest.mark.parametrize("f", every(2, [without_singular_values, total]))
def test_gradient(f):
    made = fwdad.jit(fwdad.grad(f))
    for a in (A[:, :3], 2.0 * A[:, 1:4]):
        expected = fwdad.jacobian(f, a, mode="forward")
        assert_allclose(made(a), expected, rtol=1e-11, atol=1e-12)
        assert_allclose(expected, central_differences(f, a), rtol=1e-6, atol=1e-6)
    assert "NumPy" not in fwdad.explain(made)


def test_cofactors_of_singular_matrices():
    def f(a):
        return np.linalg.det(a) ** 2 + np.linalg.det(a)

    made = fwdad.jit(fwdad.grad(f))
    for a in (
        Z.real, np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 0.5]), np.zeros((3, 3)),
        np.diag([1.0, 2.0, 0.0]), np.diag([3.0, 1e-9, 1e-8]), Z.real[:2, :2],
    ):  # fmt: skip
        expected = fwdad.jacobian(f, a, mode="forward")
        assert_allclose(made(a), expected, rtol=1e-12, atol=1e-14)
    assert "NumPy" not in fwdad.explain(made)
    with pytest.raises(np.linalg.LinAlgError, match="must be square"):
        made(np.ones((2, 3)))


def test_a_small_term_is_not_rounded_away():
    f = fwdad.jit(lambda x: sp.logsumexp(x))
    assert_allclose(f(np.array([0.0, -40.0])), np.exp(-40.0), rtol=1e-14)
    assert f(np.full(3, -np.inf)) == -np.inf
    assert f(np.array([np.inf, 0.0])) == np.inf

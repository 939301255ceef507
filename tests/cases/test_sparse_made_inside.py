"""Sparse arrays that f makes of values, and elements repeated, unsorted or cancelled."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.sparse_arrays import NEW, b, c, dense, difference, differences

i, j = np.array([0, 1, 2, 2, 0]), np.array([1, 0, 3, 1, 4])


ZEROS = np.array([0.7, 0.0, -0.4, 0.0, 1.3])


def set_elements(x):
    a = sp.csr_array(np.eye(5))
    a[1, 1] = x[0]
    a[2, 2] = x[1] * x[2]
    return a


def set_diagonal(x):
    a = sp.csr_array(np.eye(5))
    a.setdiag(x)
    return a


def of_keys(x):
    a = sp.dok_array((5, 5))
    a[0, 1] = x[0]
    a[2, 2] = x[1] ** 2
    return a.tocsr()


MAKERS = {
    "coo": lambda x: sp.coo_array((x, (i, j)), shape=(3, 5)),
    "csr of places": lambda x: sp.csr_array((x, (i, j)), shape=(3, 5)),
    "csr of repeated places": lambda x: sp.csr_array((x, (i * 0, j // 2)), shape=(3, 5)),
    "csc of places": lambda x: sp.csc_array((x**2, (i, j)), shape=(3, 5)),
    "csr of indices": lambda x: sp.csr_array((x, j, [0, 2, 2, 5]), shape=(3, 5)),
    "csr matrix": lambda x: sp.csr_matrix((x, (i, j)), shape=(3, 5)),
    "bsr": lambda x: sp.csr_array((x, (i, j)), shape=(3, 5)).tobsr((1, 1)),
    "one diagonal": sp.diags_array,
    "diagonals": lambda x: sp.diags_array([x[:-1], 2 * x, x[1:] ** 2], offsets=[-1, 0, 1]),
    "diagonals as csc": lambda x: sp.diags([x[:-1], 2 * x], [-1, 0], format="csc"),
    "spdiags": lambda x: sp.spdiags(np.stack([x, 2 * x]), [0, 1], 5, 5),
    "dense to csr": lambda x: sp.csr_array(np.outer(c, x)),
    "dense to csc": lambda x: sp.csc_array(np.outer(c, x)),
    "dense to coo": lambda x: sp.coo_array(np.outer(c, x)),
    "dense to dia": lambda x: sp.dia_array(np.outer(b, x)),
    "dense to bsr": lambda x: sp.bsr_array(np.outer(b, x)),
    "row of a matrix": sp.csr_matrix,
    "kron": lambda x: sp.kron(x.reshape(1, 5), sp.eye_array(5)).tocsr()[:, ::5],
    "sum": lambda x: sp.diags_array(x).tocsr() + sp.csr_array((x, (i, j)), shape=(5, 5)),
    "set elements": set_elements,
    "set diagonal": set_diagonal,
    "dictionary of keys": of_keys,
}


@pytest.mark.every(5)
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("x", [b, ZEROS], ids=["regular", "zeros"])
def test_made_inside(name, x):
    """Where a value is zero its derivative is not: no such element may be dropped."""

    def f(x):
        return MAKERS[name](x) @ b

    assert_allclose(fwdad.jacobian(f, x), differences(f, x), rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jacobian(lambda x: MAKERS[name](x).toarray(), x, chunk=2),
                    differences(MAKERS[name], x), rtol=1e-7, atol=1e-8)  # fmt: skip
    second = fwdad.hessian(lambda x: np.sum(f(x) ** 2), x)
    gradient = fwdad.grad(lambda x: np.sum(f(x) ** 2))
    assert_allclose(second, differences(gradient, x), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("one", [sp.coo_array, sp.csr_array] if NEW else [sp.coo_array])
def test_vectors(one):
    assert_allclose(fwdad.jacobian(lambda x: one(x) @ b, ZEROS), b)


@pytest.mark.parametrize(
    ("f", "jacobian"),
    [
        # 1 - 1 at x = 1, summed over both stored elements
        (lambda x: (sp.diags_array(x).tocsr() - sp.eye_array(2).tocsr()).toarray(), 1.0),
        # [1, -1] [1, 1]^T is zero: its derivative is not
        (
            lambda x: (
                sp.csr_array((x * np.array([1, -1]), ([0, 0], [0, 1])), shape=(2, 2))
                @ sp.csr_array(np.ones((2, 2)))
            ).toarray(),
            None,
        ),
        (lambda x: dropped(sp.csr_array(sp.diags_array(x - 1))).toarray(), 1.0),
        (lambda x: dropped(sp.coo_array(sp.diags_array(x - 1))).toarray(), 1.0),
    ],
)
def test_what_cancels_is_kept(f, jacobian):
    x = np.ones(2)
    J = fwdad.jacobian(f, x)
    assert_allclose(J, differences(f, x + 0.0), atol=1e-8)
    assert_allclose(fwdad.jacobian(f, x, chunk=1), J)
    if jacobian is not None:
        assert_array_equal(J[[0, 1], [0, 1], [0, 1]], [jacobian] * 2)


def dropped(a):
    a.eliminate_zeros()
    return a


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_repeated_and_unsorted_elements(layout):
    indices, indptr = np.array([3, 1, 1, 0, 2, 0]), np.array([0, 3, 6])
    shape = (2, 4) if layout == "csr" else (4, 2)
    make = getattr(sp, f"{layout}_array")
    a = make((np.arange(1.0, 7), indices, indptr), shape=shape)
    for f in [
        lambda A: A.sum_duplicates() or A.toarray(),
        lambda A: A.sort_indices() or A.data**2,
        lambda A: A.toarray(),
        lambda A: A + A,
        lambda A: A.multiply(A.toarray()),
        lambda A: A.tocsc().tocsr()[0, 0] * A.diagonal(),
        lambda A: A[[0, 1, 1], [0, 1, 0]],
        lambda A: abs(A).sum(axis=1),
    ]:
        v = np.random.default_rng(4).standard_normal(6)
        _, y_dot = fwdad.jvp(f, a.copy(), v)
        assert_allclose(dense(y_dot), difference(f, a, v), rtol=1e-7, atol=1e-8)
    assert_array_equal(a.indices, indices)


def test_room_behind_the_last_element():
    """SciPy allows arrays that are longer than what is stored."""
    a = sp.csr_array(np.eye(3))
    a.data, a.indices = np.arange(1.0, 8), np.array([0, 1, 2, 0, 0, 0, 0])
    x = np.arange(3.0)
    for f in (lambda A: A @ x, lambda A: A.toarray(), lambda A: A.tocsc() @ x):
        J = fwdad.jacobian(f, a)
        assert J.shape[-1] == 7
        assert_array_equal(J[..., 3:], 0)
        assert_array_equal(J[..., 0].ravel(), f(sp.csr_array(np.diag([1.0, 0, 0]))).ravel())

"""Sums over places, sparse products and sparse solves, as functions of the stored elements."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.testing import assert_allclose, assert_array_equal

from fwdad.rules.sparse import sparse_solution
from fwdad.tangents.sparse import (
    coordinates,
    scatter_add,
    sparse_product,
    sparse_solve,
)
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(51)
BOTH = (draw.real, draw.complex)
ROOM = sp.csr_array(np.array([[1, 1, 0, 1, 0], [0, 0, 0, 0, 0], [1, 0, 1, 0, 1], [0, 1, 0, 0, 0]]))
SQUARE = sp.csc_array(5 * np.eye(4) + np.diag([1.0, 2.0], 2) + np.diag([1.0, 1.0, 3.0], -1))


def places(layout):
    """A pattern with an empty row, as the options of ``sparse_product``."""
    a = ROOM.asformat(layout)
    major, minor = (a.row, a.col) if layout == "coo" else (a.indptr, a.indices)
    return {"layout": layout, "major": major, "minor": minor, "shape": a.shape}


CASES = [
    *[
        Case(scatter_add, make(5), np.array(where), 4, linear=(0,))
        for make in BOTH
        for where in ([0, 1, 2, 3, 0], [3, 3, 3, 1, 3], [1, 1, 1, 1, 1])
    ],
    Case(scatter_add, draw.real(0), np.zeros(0, int), 3, linear=(0,)),
    *[
        Case(sparse_product, make(7), other(5, *columns), linear=(0, 1), **places(layout))
        for layout in ("csr", "csc", "coo")
        for make, other in [(draw.real, draw.real), (draw.complex, draw.complex)]
        for columns in [(), (1,), (3,), (7,)]
    ],
    *[
        Case(sparse_product, draw.real(7), draw.complex(5), linear=(0, 1), **places("csr")),
        Case(sparse_product, draw.complex(7), draw.real(5, 2), linear=(0, 1), **places("coo")),
    ],
    *[
        Case(
            sparse_solve,
            SQUARE.asformat(layout).data.astype(dtype),
            make(4, *columns),
            layout=layout,
            indptr=SQUARE.asformat(layout).indptr,
            indices=SQUARE.asformat(layout).indices,
            options={},
        )
        for layout in ("csc", "csr")
        for make, dtype in [(draw.real, float), (draw.complex, complex)]
        for columns in [(), (3,)]
    ],
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def test_scatter_adds_in_order_and_keeps_the_dtype():
    values = np.array([1e8, 1.0, -1e8], np.float32)
    y = scatter_add(values, np.array([2, 2, 2]), 4)
    assert y.dtype == np.float32
    assert_array_equal(y, [0, 0, 0, 0])  # in double precision, or in another order, it is 1


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_the_product_is_scipy_s(layout, rng):
    a = ROOM.asformat(layout)
    a.data = rng.standard_normal(7)
    for x in (rng.standard_normal(5), rng.standard_normal((5, 3)), rng.integers(0, 9, 5)):
        assert_array_equal(sparse_product(a.data, x, **places(layout)), a @ x)


def test_the_solution_is_scipy_s(rng):
    b = rng.standard_normal(4)
    x, info = sparse_solve(SQUARE.data, b, "csc", SQUARE.indptr, SQUARE.indices, {})
    assert info == 0
    assert_allclose(SQUARE.toarray() @ x, b, rtol=1e-14)
    assert_array_equal(x, spl.spsolve(SQUARE, b))


def test_a_singular_matrix_is_reported():
    columns = {"indptr": np.array([0, 1, 2], np.intc), "indices": np.array([0, 1], np.intc)}
    assert sparse_solve(np.array([1.0, 0.0]), np.ones(2), "csc", **columns, options={})[1] > 0


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(("make", "dtype"), [(draw.real, float), (draw.complex, complex)])
@pytest.mark.parametrize("columns", [(), (3,)])
def test_transpose_of_a_solution(layout, make, dtype, columns, rng):
    matrix = SQUARE.asformat(layout)
    data = matrix.data.astype(dtype) * (1 + 0.5j if dtype is complex else 1)
    places = {"layout": layout, "indptr": matrix.indptr, "indices": matrix.indices}
    check_transpose(
        sparse_solution, data, make(4, *columns), argnum=1, rng=rng, **places, options={}
    )


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_coordinates_follow_the_storage(layout):
    a = ROOM.asformat(layout)
    rows, cols = coordinates(layout, *(places(layout)[name] for name in ("major", "minor")))
    dense = np.zeros(a.shape)
    dense[rows, cols] = a.data
    assert_array_equal(dense, ROOM.toarray())

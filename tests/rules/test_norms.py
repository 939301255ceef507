"""Norms of vectors and matrices, along axes, and at their kinks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw

draw = Draw(24)
la = np.linalg
INF = np.inf
VECTOR_ORDERS = (2, 1, 3, 2.5, 0.5, -1.5, -1, INF, -INF)
MATRIX_ORDERS = ("fro", "nuc", 2, -2, 1, -1, INF, -INF)

CASES = [
    case
    for g in (draw.real, draw.complex)
    for case in [
        *(Case(la.norm, g(4), o) for o in (None, *VECTOR_ORDERS)),
        *(Case(la.norm, g(3, 4), o, axis=0) for o in (None, *VECTOR_ORDERS)),
        *(Case(la.norm, g(3, 4), o, axis=-1, keepdims=True) for o in VECTOR_ORDERS),
        *(Case(la.norm, g(3, 4), o) for o in (None, *MATRIX_ORDERS)),
        *(Case(la.norm, g(2, 3, 4), o, axis=(1, 2)) for o in (None, *MATRIX_ORDERS)),
        *(Case(la.norm, g(2, 3, 4), o, axis=(2, 0)) for o in MATRIX_ORDERS),
        *(Case(la.norm, g(2, 3, 4), o, axis=(-1, 1), keepdims=True) for o in MATRIX_ORDERS),
        Case(la.norm, g(2, 3, 4)),
        Case(la.norm, g(2, 3, 4), keepdims=True),
        *(Case(la.vector_norm, g(3, 4), ord=o) for o in VECTOR_ORDERS),
        *(Case(la.vector_norm, g(3, 4, 2), ord=o, axis=(0, 2)) for o in VECTOR_ORDERS),
        *(Case(la.vector_norm, g(3, 4), ord=o, keepdims=True) for o in (2, INF, 3)),
        *(Case(la.vector_norm, g(3, 4), ord=o, axis=0) for o in (2, INF, 3)),
        *(Case(la.matrix_norm, g(2, 3, 4), ord=o) for o in MATRIX_ORDERS),
        *(Case(la.matrix_norm, g(2, 3, 4), ord=o, keepdims=True) for o in MATRIX_ORDERS),
    ]
] + [Case(la.norm, draw.real(4), 0), Case(la.vector_norm, draw.real(3, 4), ord=0)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize("order", [None, 2, 1, 3, 0.5, INF, -INF])
def test_the_norm_of_a_zero_vector_has_tangent_zero(order):
    x_dot = Chunk(draw.real(2, 3))
    for x in (np.zeros(3), np.zeros(3, complex)):
        y, y_dot = call_rule(la.norm, (x,), (x_dot,), ord=order)
        assert y == 0.0
        assert_array_equal(y_dot.lanes, [0.0, 0.0])


@pytest.mark.parametrize("order", [None, "fro", "nuc", 2, -2, 1, INF])
def test_the_norm_of_a_zero_matrix_has_tangent_zero(order):
    y_dot = call_rule(la.norm, (np.zeros((2, 3)),), (Chunk(draw.real(2, 2, 3)),), ord=order)[1]
    assert_array_equal(y_dot.lanes, [0.0, 0.0])


def test_some_zero_vectors_among_others():
    x = np.array([[0.0, 3.0], [0.0, 4.0]])
    y_dot = fwdad.jvp(lambda m: la.norm(m, axis=0), x, np.ones((2, 2)))[1]
    assert_allclose(y_dot, [0.0, 1.4], rtol=1e-15)


def test_of_equal_maxima_the_first_one_counts():
    x = np.array([2.0, -2.0, 1.0])
    assert_array_equal(fwdad.grad(lambda v: la.norm(v, INF))(x), [1.0, 0.0, 0.0])
    assert_array_equal(fwdad.grad(lambda v: la.norm(v, -INF))(-x), [0.0, 0.0, -1.0])
    assert_array_equal(fwdad.grad(lambda m: la.norm(m, 1))(np.ones((2, 2))), [[1, 0], [1, 0]])
    assert_array_equal(fwdad.grad(lambda m: la.norm(m, INF))(np.ones((2, 2))), [[1, 1], [0, 0]])


def test_zeros_among_the_elements():
    x = np.array([0.0, 3.0, -4.0])
    for order, want in ((1, [0, 1, -1]), (2, [0, 0.6, -0.8])):
        assert_allclose(fwdad.grad(lambda v, o=order: la.norm(v, o))(x), want)
    assert fwdad.grad(lambda v: la.norm(v, 3))(x)[0] == 0.0


def test_the_count_of_nonzeros_has_no_tangent():
    assert call_rule(la.norm, (np.ones(3),), (Chunk(np.ones((1, 3))),), ord=0)[1] is ZERO


def test_the_nuclear_norm_of_a_matrix_of_low_rank():
    a = draw.real(4, 2) @ draw.real(2, 5)
    u, _, vh = la.svd(a)
    gradient = fwdad.grad(lambda m: la.norm(m, "nuc"))(a)
    assert_allclose(gradient, u[:, :2] @ vh[:2], atol=1e-12)  # the subgradient of least norm


def test_a_wrong_order_raises_as_the_primal_does():
    with pytest.raises(ValueError, match="norm order"):
        call_rule(la.norm, (np.ones((2, 2)),), (Chunk(np.ones((1, 2, 2))),), ord=3)

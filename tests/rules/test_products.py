"""Products: matmul, dot, einsum, tensordot, outer, kron, cross and their relatives."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import NonlinearTangentError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(20)
BOTH = (0, 1)


def _bilinear(function, *shapes, **options):
    """One function on real operands, on complex ones, and on one of each."""
    first, second = shapes
    return [
        Case(function, draw.real(*first), draw.real(*second), linear=BOTH, **options),
        Case(function, draw.complex(*first), draw.complex(*second), linear=BOTH, **options),
        Case(function, draw.real(*first), draw.complex(*second), linear=BOTH, **options),
        Case(function, draw.complex(*first), draw.real(*second), linear=BOTH, **options),
    ]


CASES = [
    *_bilinear(np.matmul, (3, 4), (4, 2)),
    *_bilinear(np.matmul, (4,), (4,)),
    *_bilinear(np.matmul, (3, 4), (4,)),
    *_bilinear(np.matmul, (4,), (4, 2)),
    *_bilinear(np.matmul, (2, 3, 4), (4, 2)),  # unequal ranks, stacked on the left
    *_bilinear(np.matmul, (3, 4), (2, 4, 2)),  # and on the right
    *_bilinear(np.matmul, (3, 1, 3, 4), (2, 4, 2)),
    *_bilinear(np.matmul, (4,), (3, 4, 2)),
    *_bilinear(np.matmul, (3, 3, 4), (4,)),
    *_bilinear(np.matmul, (4, 3), (2, 4), axes=[(1, 0), (1, 0), (1, 0)]),
    *_bilinear(np.matmul, (4, 5, 3), (2, 4, 5), axes=[(2, 0), (1, 0), (0, 2)]),
    *_bilinear(np.linalg.matmul, (3, 4), (4, 2)),
    Case(np.matmul, np.zeros((0, 3)), draw.real(3, 2), linear=BOTH),
    Case(np.matmul, draw.real(1, 1), draw.real(1, 1), linear=BOTH),
    Case(np.matmul, np.asfortranarray(draw.real(3, 4)), draw.real(8, 2)[::2], linear=BOTH),
    Case(np.matmul, draw.real(3, 4).astype("f"), draw.real(4, 2).astype("f")),
    *_bilinear(np.vecdot, (3, 4), (3, 4)),
    *_bilinear(np.vecdot, (4,), (3, 4)),
    *_bilinear(np.vecdot, (3, 1, 4), (5, 4)),
    *_bilinear(np.vecdot, (3, 4), (3, 4), axis=0),
    *_bilinear(np.vecdot, (3, 4), (3, 4), axis=0, keepdims=True),
    *_bilinear(np.vecdot, (4, 3), (4,), axes=[0, 0]),
    *_bilinear(np.linalg.vecdot, (3, 4), (3, 4), axis=0),
    *_bilinear(np.dot, (3, 4), (4, 2)),
    *_bilinear(np.dot, (4,), (4,)),
    *_bilinear(np.dot, (3, 4), (4,)),
    *_bilinear(np.dot, (4,), (4, 2)),
    *_bilinear(np.dot, (2, 3, 4), (5, 4, 2)),
    *_bilinear(np.dot, (2, 3, 4), (4,)),
    *_bilinear(np.dot, (4,), (5, 4, 2)),
    *_bilinear(np.dot, (), (3,)),
    *_bilinear(np.dot, (3, 2), ()),
    Case(np.dot, 2.0, draw.real(3), linear=BOTH),
    *_bilinear(np.inner, (3, 4), (2, 4)),
    *_bilinear(np.inner, (4,), (4,)),
    *_bilinear(np.inner, (2, 3, 4), (5, 4)),
    Case(np.inner, draw.real(3), 2.0, linear=BOTH),
    *_bilinear(np.vdot, (4,), (4,)),
    *_bilinear(np.vdot, (3, 4), (4, 3)),
    *_bilinear(np.tensordot, (3, 4), (4, 2), axes=1),
    *_bilinear(np.tensordot, (3, 4, 5), (4, 5, 2)),
    *_bilinear(np.tensordot, (3, 4), (2,), axes=0),
    *_bilinear(np.tensordot, (3, 4, 5), (4, 3, 2), axes=([1, 0], [0, 1])),
    *_bilinear(np.tensordot, (3, 4, 5), (5, 4, 3), axes=([-1, 0], [0, 2])),
    *_bilinear(np.tensordot, (2, 3, 4), (6, 3), axes=(1, 1)),
    *_bilinear(np.linalg.tensordot, (3, 4), (4, 2), axes=1),
    *_bilinear(np.outer, (3,), (4,)),
    *_bilinear(np.outer, (3, 2), (4,)),
    *_bilinear(np.linalg.outer, (3,), (4,)),
    *_bilinear(np.kron, (3, 2), (2, 4)),
    *_bilinear(np.kron, (3,), (2,)),
    *_bilinear(np.kron, (3, 2), (4,)),
    *_bilinear(np.kron, (2,), (2, 3)),
    *_bilinear(np.kron, (2, 2, 2), (2, 3)),
    *_bilinear(np.cross, (3,), (3,)),
    *_bilinear(np.cross, (4, 3), (3,)),
    *_bilinear(np.cross, (3,), (4, 3)),
    *_bilinear(np.cross, (5, 4, 3), (4, 3)),
    *_bilinear(np.cross, (3, 4), (3, 4), axis=0),
    *_bilinear(np.cross, (3, 4), (4, 3), axisa=0, axisc=0),
    *_bilinear(np.linalg.cross, (3, 4), (3, 4), axis=0),
    Case(np.linalg.matrix_transpose, draw.complex(2, 3, 4), linear=(0,)),
    Case(np.linalg.diagonal, draw.real(2, 3, 4), linear=(0,)),
    Case(np.linalg.diagonal, draw.complex(2, 3, 4), offset=1, linear=(0,)),
    Case(np.linalg.diagonal, draw.real(4, 3), offset=-1, linear=(0,)),
    Case(np.linalg.trace, draw.complex(2, 3, 4), linear=(0,)),
    Case(np.linalg.trace, draw.real(3, 4), offset=-1, linear=(0,)),
]
if hasattr(np, "matvec"):
    CASES += [
        *_bilinear(np.matvec, (3, 4), (4,)),
        *_bilinear(np.matvec, (2, 3, 4), (4,)),
        *_bilinear(np.matvec, (3, 4), (5, 4)),
        *_bilinear(np.matvec, (4, 3), (4,), axes=[(1, 0), 0, 0]),
        *_bilinear(np.vecmat, (3,), (3, 4)),
        *_bilinear(np.vecmat, (2, 3), (3, 4)),
        *_bilinear(np.vecmat, (3,), (2, 3, 4)),
    ]


def _einsum(subscripts, *shapes, **options):
    places = tuple(range(1, len(shapes) + 1))
    return [
        Case(np.einsum, subscripts, *(make(*s) for s in shapes), linear=places, **options)
        for make in (draw.real, draw.complex)
    ]


CASES += [
    *_einsum("ij,jk->ik", (3, 4), (4, 2)),
    *_einsum("ij,jk", (3, 4), (4, 2)),
    *_einsum("ba", (3, 4)),
    *_einsum("ii->i", (3, 3)),  # a diagonal
    *_einsum("ii", (3, 3)),
    *_einsum("iij->j", (3, 3, 2)),
    *_einsum("iii->", (3, 3, 3)),
    *_einsum("ij->", (3, 2)),  # letters that only one operand has
    *_einsum("ij,kj->i", (3, 4), (2, 4)),
    *_einsum("i,j,ij->", (3,), (4,), (3, 4)),
    *_einsum("...ij,...jk->...ik", (2, 3, 4), (4, 2)),
    *_einsum("...i,...i", (2, 3, 4), (3, 4)),
    *_einsum("i...,i...->...", (3, 2), (3, 2)),
    *_einsum("...,...", (2, 3), (3,)),
    *_einsum("ij,ij->ij", (3, 1), (1, 4)),  # stretched axes
    *_einsum("ij,ij->", (3, 4), (1, 4)),
    *_einsum("ij,ij->j", (3, 4), (1, 4)),
    *_einsum("ij,ij->", (3, 4), (3, 4), optimize=True),  # an array of no axes
    *_einsum(" i j , j k -> i k", (3, 4), (4, 2)),
    *_einsum("ij,jk,kl->il", (3, 4), (4, 2), (2, 3), optimize=True),
    *_einsum("ij,jk,kl->il", (20, 30), (30, 20), (20, 3)),  # large enough to be planned
    Case(np.einsum, draw.real(3, 4), [0, 1], draw.real(4, 2), [1, 2], [0, 2], linear=(0, 2)),
    Case(np.einsum, draw.real(3, 4), [0, 1], draw.real(4, 2), [1, 2], linear=(0, 2)),
    Case(np.einsum, draw.real(5, 3, 4), [..., 0, 1], draw.complex(4, 2), [1, 2], [..., 2, 0]),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def test_the_same_operand_twice_gives_both_terms():
    x, x_dot = np.array([1.0, 2.0]), Chunk(np.eye(2))
    y, y_dot = call_rule(np.einsum, ("i,i->", x, x), (fwdad.ZERO, x_dot, x_dot))
    assert y == 5.0
    assert_allclose(y_dot.lanes, [2.0, 4.0], rtol=1e-15)


def test_two_chunks_cannot_be_multiplied():
    x_dot = Chunk(np.eye(3))
    for product in (np.matmul, np.dot, np.vdot, np.outer, np.kron, np.cross):
        with pytest.raises(NonlinearTangentError):
            product(x_dot, x_dot)


def test_padding_a_tangent_takes_zeros_only():
    padded = np.pad(Chunk(np.ones((2, 3))), (1, 2))
    assert_allclose(padded.lanes, [[0, 1, 1, 1, 0, 0]] * 2)
    with pytest.raises(NonlinearTangentError, match="zeros"):
        np.pad(Chunk(np.ones((2, 3))), 1, constant_values=1.0)
    with pytest.raises(NonlinearTangentError, match="zeros"):
        np.pad(Chunk(np.ones((2, 3))), 1, mode="edge")

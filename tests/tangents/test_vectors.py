"""The tangents of a type as vectors: seeds, sums, multiples, inner products."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import SeedError, UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.registry import tangent_type, typeof
from fwdad.tangents.vectors import (
    add_tangents,
    inner_product,
    scale_tangent,
    zero_tangent,
)
from fwdad.tangents.zero import ZERO, NoTangent, undefined
from tests.tangents.classes import Body, Box, Point, T, Unknown

# -- what a type's tangents are

VALUES = [
    1.5,
    np.float32(2),
    2.0 + 1j,
    np.arange(3.0),
    np.zeros((2, 0)),
    np.array(1.0),
    np.ones((2, 3), np.complex64),
    (1.0, np.ones(2), 3),
    [np.ones(2), [1.0, "a"]],
    {"a": 1.0, "b": {"c": np.ones(2)}},
    Point(1.0, np.ones(2)),
    Body(2.0, np.ones(3)),
    sp.csr_array(np.eye(3)),
    (),
]


@pytest.mark.parametrize("x", VALUES, ids=str)
@pytest.mark.parametrize("n", [1, 3])
def test_zero_basis_and_random_are_tangents(x, n, rng):
    kind = tangent_type(typeof(x), n)
    zero, random = kind.zero(x), kind.random(x, rng)
    for x_dot in (zero, kind.basis(x), random):
        assert kind.holds(x, x_dot)
        if size_of(x):
            assert not tangent_type(typeof(x), n + 1).holds(x, x_dot)
    assert_array_equal(inner_product(zero, random), np.zeros(n) if size_of(x) else 0.0)


def size_of(x):
    """The dimension of a value's tangent space, counted by hand."""
    if isinstance(x, (float, complex, np.inexact)):
        return 1
    if isinstance(x, np.ndarray):
        return x.size
    if isinstance(x, Body):
        return 1 + x.place.size
    if isinstance(x, dict):
        return sum(map(size_of, x.values()))
    if isinstance(x, (list, tuple)):
        return sum(map(size_of, x))
    return x.data.size if sp.issparse(x) else 0


def test_basis_goes_leaf_after_leaf():
    x = (2.0, np.ones((2, 2)), 7)
    kind = tangent_type(typeof(x), 3)
    (a, b, c), (d, e, _) = kind.basis(x), kind.basis(x, start=3)
    assert_array_equal(a.lanes, [1, 0, 0])
    assert_array_equal(b.lanes.reshape(3, 4), [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    assert c is NoTangent
    assert d is ZERO
    assert_array_equal(e.lanes.reshape(3, 4), [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


def test_random_directions_are_independent_and_complex_in_both_parts(rng):
    x = (np.zeros(50), np.zeros(50, complex))
    a, b = tangent_type(typeof(x), 4).random(x, rng)
    assert np.linalg.matrix_rank(a.lanes) == 4
    assert a.dtype == np.float64
    assert b.dtype == np.complex128
    assert 0.5 < np.std(b.lanes.imag) < 2
    again = tangent_type(typeof(x), 4).random(x, np.random.default_rng(1))[0]
    assert_array_equal(
        again.lanes, tangent_type(typeof(x), 4).random(x, np.random.default_rng(1))[0].lanes
    )


@pytest.mark.parametrize(
    ("x", "x_dot"),
    [
        (1.0, Chunk(np.ones((2, 1)))),
        (1.0, Chunk(np.ones(3))),
        (1.0, np.ones(2)),
        (1.0, Chunk(np.ones(2) * 1j)),
        (1.0, NoTangent),
        (np.ones(2), Chunk(np.ones((2, 3)))),
        (np.ones(2), Chunk(np.ones(2))),
        ((1.0, 2), (Chunk(np.ones(2)), Chunk(np.ones(2)))),
        ((1.0, 2), (Chunk(np.ones(2)),)),
        ((1.0, 2), [Chunk(np.ones(2)), NoTangent]),
        ({"a": 1.0}, {"b": Chunk(np.ones(2))}),
        (Body(1.0, np.ones(1)), (Chunk(np.ones(2)), Chunk(np.ones((2, 1))), NoTangent)),
    ],
    ids=str,
)
def test_what_is_no_tangent(x, x_dot):
    assert not tangent_type(typeof(x), 2).holds(x, x_dot)


def test_zero_and_undefined_are_tangents_of_everything():
    for x in (1.0, np.ones(2), [1.0, (np.ones(2), 3)]):
        kind = tangent_type(typeof(x), 2)
        assert kind.holds(x, ZERO)
    assert tangent_type(float, 2).holds(1.0, undefined("at a kink"))
    assert tangent_type(list, 2).holds([1.0, [2.0]], [ZERO, [undefined("at a kink")]])


@pytest.mark.parametrize(
    ("T", "x"),
    [
        (float, 1),
        (float, np.ones(1)),
        (np.ndarray, np.ones(2, np.float32)),
        (np.ndarray, [1.0]),
        (tuple[float, int], (1.0, 2.0)),
        (tuple[float, int], (1.0,)),
        (tuple[float, ...], (1.0, 2)),
        (list[float], [1.0, "a"]),
        (dict[str, float], {1: 1.0}),
        (dict[str, float], {"a": 1}),
        (Body, Point(1.0, np.ones(1))),
        (float | None, "a"),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_named(T, x):
    kind = tangent_type(T, 2)
    assert not kind.fits(x)
    with pytest.raises(UnsupportedTypeError, match=r"expected .*; got"):
        kind.zero(x)
    assert not kind.holds(x, ZERO)


@pytest.mark.parametrize(
    ("T", "x"),
    [
        (tuple[float, ...], (1.0, 2.0, 3.0)),
        (tuple[float, ...], ()),
        (float | None, None),
        (float | None, 2.0),
        (list[T], [1.0, "a"]),
        (tuple[np.ndarray, npt.NDArray[np.int64]], (np.ones(1), np.arange(2))),
        (Box[float], Box(1.0)),
        (Any, Unknown()),
    ],
    ids=str,
)
def test_values_that_fit(T, x):
    assert tangent_type(T, 2).fits(x)


# -- the vector space, pushed to the leaves


def test_sum_multiple_and_product_of_a_composite(rng):
    x = {"a": 2.0, "b": [np.ones((2, 3)), 5], "c": np.ones(2, complex)}
    kind = tangent_type(typeof(x), 3)
    u, v = kind.random(x, rng), kind.random(x, rng)
    w = add_tangents(u, scale_tangent(-2.0, v))
    assert kind.holds(x, w)
    assert_allclose(w["b"][0].lanes, u["b"][0].lanes - 2 * v["b"][0].lanes)
    assert w["b"][1] is NoTangent
    by_hand = [
        u["a"].lanes[k] * v["a"].lanes[k]
        + np.sum(u["b"][0].lanes[k] * v["b"][0].lanes[k])
        + np.vdot(u["c"].lanes[k], v["c"].lanes[k]).real
        for k in range(3)
    ]
    assert_allclose(inner_product(u, v), by_hand, rtol=1e-14)
    assert np.all(inner_product(u, u) > 0)


def test_zero_stands_for_a_whole_composite():
    x = (1.0, [np.ones(2), 2.0])
    one = tangent_type(typeof(x), 2).basis(x)
    part = (one[0], ZERO)
    assert add_tangents(one, ZERO) is one
    assert add_tangents(ZERO, one) is one
    total = add_tangents(part, one)
    assert_array_equal(total[0].lanes, 2 * one[0].lanes)
    assert_array_equal(total[1][0].lanes, one[1][0].lanes)
    assert_array_equal(add_tangents(one, part)[0].lanes, 2 * one[0].lanes)
    assert scale_tangent(3.0, ZERO) is ZERO
    assert inner_product(one, ZERO) == 0
    assert_array_equal(inner_product(part, one), one[0].lanes ** 2)


def test_plain_tangents_of_the_api_are_vectors_too():
    y_dot = (np.arange(3.0), 2.0, NoTangent)
    total = add_tangents(y_dot, scale_tangent(0.5, y_dot))
    assert_array_equal(total[0], [0, 1.5, 3])
    assert total[1:] == (3.0, NoTangent)
    assert inner_product(y_dot, y_dot) == 9.0


def test_different_structures_are_named():
    with pytest.raises(SeedError, match="the second tangent"):
        add_tangents((1.0, 2.0), (1.0, 2.0, 3.0))
    with pytest.raises(SeedError, match=r"the first\[1\]"):
        inner_product((1.0, [2.0]), (1.0, {"a": 2.0}))


def test_chunks_of_other_widths_do_not_multiply():
    with pytest.raises(fwdad.errors.ChunkMismatchError):
        inner_product(Chunk(np.ones((2, 3))), Chunk(np.ones((3, 3))))
    with pytest.raises(fwdad.errors.ChunkMismatchError):
        inner_product(Chunk(np.ones((2, 3))), np.ones(3))


def test_an_undefined_tangent_raises_where_it_is_multiplied():
    bad = (undefined("of a repeated eigenvalue"), 1.0)
    with pytest.raises(fwdad.errors.UndefinedDerivativeError, match="repeated"):
        inner_product(bad, (1.0, 1.0))


def test_a_shared_leaf_is_one_tangent():
    """CASES, forward 4: a list of arrays that two fields of a tuple share."""
    a, b = np.ones(2), np.ones(3)
    shared = [a, b]
    x = (shared, shared, a)
    kind = tangent_type(tuple, 2)
    zero = kind.zero(x)
    assert zero[0] is zero[1]
    assert zero[2] is zero[0][0]
    ones = scale_tangent(2.0, add_tangents(zero, kind.basis(x)))
    assert ones[2] is ones[0][0]
    assert ones[0] is ones[1]
    # each leaf once: 2^2 for the one unit direction of each lane
    assert_array_equal(inner_product(ones, ones), [4.0, 4.0])


def test_equal_numbers_are_not_shared():
    x = (1.0, 1.0)
    one = scale_tangent(1.0, (2.0, 2.0))
    assert inner_product(one, one) == 8.0
    y, y_dot = fwdad.jvp(lambda x: x[0] + 10 * x[1], x, (1.0, 0.0))
    assert (y, y_dot) == (11.0, 1.0)


def test_a_list_that_holds_itself_ends():
    """CASES, forward 7: zero, scale and add terminate."""
    x = [1.0, np.ones(2)]
    x.append(x)
    zero = zero_tangent(x, 2)
    assert zero[2] is zero
    assert_array_equal(zero[1].lanes, np.zeros((2, 2)))
    unit = tangent_type(list, 2).basis(x)
    total = add_tangents(unit, scale_tangent(3.0, unit))
    assert total[2] is total
    assert_array_equal(total[0].lanes, [4.0, 0.0])
    assert_array_equal(inner_product(unit, unit), [1.0, 1.0])
    assert tangent_type(list, 2).holds(x, total)

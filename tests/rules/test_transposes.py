"""Transposes of operators, indexing, broadcasting and casts."""

import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from fwdad.rules.core.adjoints import TRANSPOSES, Space, into
from fwdad.rules.core.define import frule
from fwdad.rules.core.recording import RecordingTangent, pull_back
from fwdad.rules.core.registry import RULES
from fwdad.rules.transposes import getitem_transpose
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes
from tests.tangents.law_cases import FLAT, seeds

draw = Draw(33)
X, M, C = draw.real(3), draw.real(2, 3), draw.real(2, 4, 3)
Z, ZM = draw.complex(3), draw.complex(2, 3)

PAIRS = [(M, M + 1), (X, M), (M, X), (M[:, :1], X), (2.0, M), (M, 3.0), (X[:1], C), (Z, M), (X, ZM)]
CASES = [
    *[Case(f, a, b, linear=(0, 1)) for f in (np.add, np.subtract) for a, b in PAIRS],
    *[Case(np.multiply, a, b, linear=(0, 1)) for a, b in [*PAIRS, (Z, ZM)]],
    *[Case(np.divide, a, b, linear=(0,)) for a, b in [*PAIRS, (Z, ZM)]],
    *[Case(np.negative, a, linear=(0,)) for a in (M, Z, 2.0)],
    *[Case(np.conjugate, a, linear=(0,)) for a in (ZM, M)],
    *[Case(np.real, a, linear=(0,)) for a in (ZM, M)],
    Case(np.imag, ZM, linear=(0,)),
    *[Case(f, a, linear=(0,)) for f in (np.positive, np.copy) for a in (M, Z, 2.0)],
    *[Case(f, a, linear=(0,)) for f in (np.asarray, np.ascontiguousarray) for a in (M.T, Z)],
    *[Case(np.matrix_transpose, a, linear=(0,)) for a in (C, ZM)],
    *[
        Case(np.broadcast_to, X, (2, 3), linear=(0,)),
        Case(np.broadcast_to, Z, (4, 2, 3), linear=(0,)),
    ],
    *[
        Case(np.broadcast_to, M[:, :1], (2, 3), linear=(0,)),
        Case(np.broadcast_to, 2.0, 3, linear=(0,)),
    ],
]
INDICES = [
    *(0, -1, slice(None), slice(None, None, -1), slice(1, None, 2), None, Ellipsis, ()),
    *((0, 1, 2), (slice(None), 0), (Ellipsis, 1), (0, None, slice(1, 3))),
    *([1, 0, 1, 1], ([0, 1, 1], slice(None), [2, 2, 2]), (0, slice(None), [1, 1])),
    *(C > 0, C[:, 0, 0] > -9, np.zeros((0, 2), int), (slice(None), [True, False, True, True])),
    (slice(None), np.array([[0, 3], [3, 0]]), 1),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


@pytest.mark.parametrize("index", INDICES, ids=repr)
@pytest.mark.parametrize("x", [C, C + 1j], ids=["real", "complex"])
def test_getitem(x, index, rng):
    check_transpose(operator.getitem, x, index, rng=rng)


@given(data=st.data(), n=st.integers(1, 3))
@settings(deadline=None)
def test_getitem_adds_what_was_taken_twice(data, n):
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=3, max_side=4))
    index = data.draw(
        st.one_of(
            hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True),
            hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=4)),
        )
    )
    taken = np.empty(shape)[index]
    y_bar = draw.real(n, *np.shape(taken))
    x_bar = getitem_transpose(Chunk(y_bar), Space(shape, np.dtype(float)), index)
    for k in range(n):
        want = np.zeros(shape)
        np.add.at(want, index, y_bar[k])
        assert_allclose(x_bar.lanes[k], want, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1), (2, 3), (), (1,), (1, 1)])
def test_into_sums_what_was_broadcast(shape):
    y_bar = draw.complex(4, 2, 3)
    for dtype in (float, complex):
        x_bar = into(Space(shape, np.dtype(dtype)), Chunk(y_bar))
        assert (x_bar.shape, x_bar.dtype) == (shape, dtype)
        for k in range(4):
            # the adjoint, from the broadcast itself: one unit of x after the other
            for at in np.ndindex(shape):
                unit = np.zeros(shape)
                unit[at] = 1
                want = np.sum(np.broadcast_to(unit, (2, 3)) * y_bar[k])
                assert_allclose(x_bar.lanes[(k, *at)], want if dtype is complex else want.real)


@pytest.mark.every(5)
@pytest.mark.parametrize(
    ("operation", "x"),
    [
        (lambda x: 2 * x[::-1] - x / 3 + (-x), X),
        (lambda x: x[:, None] * M.T + X[:, None] @ x[None, :2], X),
        (lambda x: (M @ x).reshape(2, 1) + x.T[:2].sum() + x[0], X),
        (lambda x: np.concatenate([x, 2 * x]).reshape(2, 3)[:, [0, 0, 2]], X),
        (lambda x: (1 + 2j) * x + np.conj(x) * 3j + x.real + 1j * x.imag, Z),
        (lambda x: x.swapaxes(0, 1).ravel(), M),
        (lambda x: x.astype(complex) * (1 - 1j), M),
        (lambda x: np.where(M > 0, x, 0) + np.where(M > 0, x[:1], x * M), M),
        (lambda x: x.squeeze().transpose(1, 0).mT.copy().flatten(), M[None]),
    ],
)
def test_rules_made_of_operators_are_transposed(operation, x, rng):
    """A linear function written with a chunk's operators and methods: its record is transposed."""

    def linear_map(x):
        return np.asarray(operation(x))

    @frule(linear_map)
    def body(primals, tangents):
        return linear_map(primals[0]), operation(tangents[0])

    try:
        check_frule(linear_map, x, rng=rng, second_order=False)
    finally:
        del RULES[linear_map]


def test_a_cast_is_transposed_by_the_cast_back():
    y_bar = Chunk(draw.complex(2, 3))
    x_bar = TRANSPOSES[Chunk.astype][0](y_bar, Space((3,), np.dtype(np.float32)), complex)
    assert x_bar.dtype == np.float32
    assert_array_equal(x_bar.lanes, y_bar.lanes.real.astype(np.float32))


@pytest.mark.parametrize(("call", "value"), FLAT)
def test_every_law_is_recorded_and_transposed(call, value):
    """Each case of the closed list, seen through a recording tangent and read backwards."""
    lanes = seeds(1, value)
    x_dot = RecordingTangent(Chunk(lanes))
    y_dot = call(x_dot)
    if y_dot is ZERO:
        return
    want = call(lanes[0])
    assert_allclose(y_dot.value.lanes[0], want, rtol=1e-12, atol=1e-14)
    y_bar = seeds(2, want, 4)
    x_bar = pull_back([(y_dot, Chunk(y_bar))])[id(x_dot)]
    assert x_bar.shape == np.shape(value)
    assert x_bar.dtype.kind == "f" or lanes.dtype.kind == "c"
    for k in range(2):
        left = np.vdot(y_bar[k], want).real
        right = np.vdot(x_bar.lanes[k], lanes[0]).real
        assert_allclose(right, left, rtol=1e-12, atol=1e-12 * np.sum(np.abs(y_bar[k] * want)))

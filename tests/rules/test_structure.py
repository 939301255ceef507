"""Functions of shape, type, memory and text; arrays made after another one's pattern."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fwdad.errors import DualLeakError
from fwdad.rules.core.define import call_rule
from fwdad.rules.core.registry import find_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw

draw = Draw(36)
x = draw.real(3, 4)

CASES = [
    *[
        Case(f, x)
        for f in (
            np.shape, np.ndim, np.size, np.result_type, np.min_scalar_type,
            np.isscalar, np.array_repr, np.array_str, np.array2string, np.zeros_like, np.ones_like,
        )
    ],
    Case(np.can_cast, x, "float32"),
    *[Case(f, x, x[1:]) for f in (np.shares_memory, np.may_share_memory)],
    *[Case(f, 1.5) for f in (np.format_float_positional, np.format_float_scientific)],
    Case(np.full_like, x, 1.5, check={"argnums": ["fill_value"]}),
    Case(np.full_like, x, draw.real(4), check={"argnums": ["fill_value"]}),
    Case(np.full_like, x, draw.real(3, 1), dtype=complex, check={"argnums": ["fill_value"]}),
    Case(np.full_like, np.arange(3), np.float64(2.5), dtype=float),
    Case(np.full_like, np.arange(3), draw.real(2, 1), dtype=float, shape=(2, 5)),
    Case(np.full_like, x, 2, check={"argnums": ["a"]}),
    Case(np.full_like, x.T, 2.5, order="K", check={"argnums": ["fill_value"]}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


def test_every_result_of_the_constant_functions_is_without_a_tangent():
    for case in CASES:
        if find_rule(case.function).kind == "constant":
            tangents = tuple(Chunk(np.ones((2, *np.shape(a)))) for a in case.args)
            assert call_rule(case.function, case.args, tangents)[1] is ZERO


def test_the_common_type_is_a_type():
    assert call_rule(np.common_type, (x,), (Chunk(np.ones((2, 3, 4))),)) == (np.float64, ZERO)


def test_an_empty_array_takes_shape_and_type_only():
    y, y_dot = call_rule(np.empty_like, (x,), (Chunk(np.ones((2, 3, 4))),))
    assert (y.shape, y.dtype, y_dot) == (x.shape, x.dtype, ZERO)


def test_a_fill_value_that_would_become_an_integer_raises():
    with pytest.raises(DualLeakError, match="int64"):
        call_rule(np.full_like, (np.arange(3), 2.5), (ZERO, Chunk(np.ones(2))))
    y, y_dot = call_rule(np.full_like, (np.arange(3), 2.5), (ZERO, ZERO))
    assert_array_equal(y, [2, 2, 2])
    assert y_dot is ZERO

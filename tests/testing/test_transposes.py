"""Transposes that are wrong, or missing, are found."""

import numpy as np
import pytest

from fwdad.errors import MissingTransposeError
from fwdad.rules.core.adjoints import transpose
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import CheckError, check_transpose
from tests.testing.planted import X, caught, sine


def test_opaque_rule_without_a_transpose(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), Chunk(np.cos(x) * x_dot.lanes)

    plant(sine, body)
    assert caught(sine, X) == ["recording"]
    assert caught(sine, X, opaque=True) == []


def double(x):
    return 2 * x


def double_body(primals, tangents):
    return 2 * primals[0], Chunk(2 * tangents[0].lanes)


def test_transpose_of_an_opaque_rule(plant):
    plant(double, double_body)
    with pytest.raises(MissingTransposeError, match="double has no transpose for argument 0"):
        check_transpose(double, X)
    transpose(double)(lambda y_bar, x: 2 * y_bar)
    check_transpose(double, X)
    assert caught(double, X) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda y_bar, x: y_bar,
        lambda y_bar, x: 2 * y_bar + Chunk(np.full(y_bar.lanes.shape, 1e-9)),
        lambda y_bar, x: 2 * y_bar[::-1],
        lambda y_bar, x: ZERO,
        lambda y_bar, x: np.sum(y_bar),
    ],
)
def test_wrong_transpose(plant, wrong):
    plant(double, double_body)
    transpose(double)(wrong)
    assert caught(double, X) == ["recording"]
    with pytest.raises(CheckError) as failure:
        check_transpose(double, X)
    assert failure.value.check == "transpose"


@pytest.mark.parametrize(
    "wrong", [lambda y_bar, x: (1 + 2j) * y_bar, lambda y_bar, x: (1 - 2j) * np.conj(y_bar)]
)
def test_wrong_complex_transpose(plant, wrong):
    """Under Re<., .> the adjoint of a complex factor is its conjugate."""

    def turn(x):
        return (1 + 2j) * x

    def body(primals, tangents):
        return turn(primals[0]), Chunk((1 + 2j) * tangents[0].lanes)

    plant(turn, body)
    transpose(turn)(wrong)
    with pytest.raises(CheckError, match="adjoint"):
        check_transpose(turn, X + 1j)
    transpose(turn, override=True)(lambda y_bar, x: (1 - 2j) * y_bar)
    check_transpose(turn, X + 1j)
    with pytest.raises(CheckError, match="got a complex cotangent for the real x"):
        check_transpose(turn, X)

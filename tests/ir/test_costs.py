"""What operations cost: powers that are products cost what products do."""

import operator

import numpy as np
import pytest

from fwdad.ir.analysis.costs import cost_of, small_power
from fwdad.ir.ops import Apply, Value
from fwdad.ir.types import Number
from fwdad.ops import Cost

FLOAT64 = Number(np.dtype(float), python=False)


def power(exponent, function=operator.pow):
    return Apply(function, (Value(FLOAT64), exponent), outputs=(Value(FLOAT64),))


@pytest.mark.parametrize("function", [operator.pow, np.power])
def test_powers(function):
    for exponent in (2, 3, 2.0, np.int64(3)):
        assert small_power(power(exponent, function)) == exponent
        assert cost_of(power(exponent, function)) is Cost.ARITHMETIC
    for exponent in (0.5, 4, -2, True, Value(FLOAT64), np.array([2.0, 3.0])):
        assert small_power(power(exponent, function)) is None
        assert cost_of(power(exponent, function)) is Cost.LIBRARY


def test_others():
    costs = {
        np.square: Cost.ARITHMETIC, operator.neg: Cost.ARITHMETIC, np.sqrt: Cost.ROOT,
        operator.truediv: Cost.DIVISION, np.exp: Cost.LIBRARY, len: None,
    }  # fmt: skip
    for function, cost in costs.items():
        x = Value(FLOAT64)
        assert cost_of(Apply(function, (x,), outputs=(Value(FLOAT64),))) is cost

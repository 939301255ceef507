"""Derived rules beside written ones."""

import numpy as np
import pytest

from fwdad.errors import MissingRuleError
from fwdad.rules.core.registry import RULES
from fwdad.testing import CheckError, check_derivatives, check_frule
from tests.testing.planted import M, X, caught


def logistic(x, rate=1.0):
    y = np.empty_like(x)
    y[...] = 1 / (1 + np.exp(-rate * x))
    return y


def test_derived_rule_without_a_written_one():
    check_frule(logistic, X)
    check_frule(logistic, X, rate=0.5)
    check_frule(logistic, X, 0.5)
    check_frule(logistic, X + 0.25j)
    check_derivatives(logistic, X)
    assert caught(logistic, M) == []


def test_derived_and_written_rules_agree(plant):
    def body(primals, tangents, *, rate):
        (x,), (x_dot,) = primals, tangents
        y = logistic(x, rate)
        return y, rate * y * (1 - y) * x_dot

    plant(logistic, body)
    check_derivatives(logistic, X, rate=0.5)
    assert RULES[logistic].body is body


def test_wrong_written_rule_beside_the_derived_one(plant):
    def body(primals, tangents, *, rate):
        (x,), (x_dot,) = primals, tangents
        y = logistic(x, rate)
        return y, (1 + 1e-9) * rate * y * (1 - y) * x_dot

    plant(logistic, body)
    check_frule(logistic, X, rate=0.5)  # too small for differences
    with pytest.raises(CheckError, match="written rule and the derived one differ") as failure:
        check_derivatives(logistic, X, rate=0.5)
    assert failure.value.check == "derivatives"
    assert RULES[logistic].body is body


def test_derivatives_of_a_function_without_a_source():
    with pytest.raises(MissingRuleError, match=r"numpy\.sin"):
        check_derivatives(np.sin, X)
    assert np.sin in RULES

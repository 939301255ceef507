"""Functions whose values are locally constant."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from tests.rules.case import Case

X = np.array([[-1.5, 0.3, 2.5], [0.3, -0.7, 7.0]])
Y = np.array([0.3, 0.3, 2.5])
ODD = np.array([0.5, -np.inf, np.nan, 1.0 + 1e-12])

CASES = [
    *[
        Case(f, x, y)
        for f in (
            *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
            *(np.logical_and, np.logical_or, np.logical_xor, np.floor_divide),
            *(np.isclose, np.allclose, np.array_equal, np.array_equiv),
        )
        for x, y in ((X, Y), (Y, 0.3), (0.5, Y), (0.5, -1.5))
    ],
    *[
        Case(f, x)
        for f in (
            *(np.isfinite, np.isinf, np.isnan, np.isneginf, np.isposinf, np.signbit),
            *(np.isreal, np.iscomplex, np.isrealobj, np.iscomplexobj, np.logical_not),
            *(np.floor, np.ceil, np.trunc, np.rint, np.round, np.around, np.fix, np.spacing),
        )
        for x in (X, ODD, -2.5, X[0, 2])
    ],
    Case(np.round, X, 1),
    Case(np.round, 10 * X, decimals=-1),
    Case(np.around, X, decimals=1),
    Case(np.isclose, ODD, 1.0, rtol=1e-9, equal_nan=True),
    Case(np.allclose, ODD, ODD, equal_nan=True),
    Case(np.array_equal, ODD, ODD, equal_nan=True),
]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # of ODD, by the primal itself
@pytest.mark.filterwarnings("ignore:.*fix:DeprecationWarning")  # it is still called, in NumPy 2.5
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_value_is_the_plain_one_and_carries_no_tangent(case):
    want = case.function(*case.args, **case.options)
    tangents = [Chunk(np.ones((2, *np.shape(x)))) for x in case.args]
    y, y_dot = call_rule(case.function, case.args, tangents, **case.options)
    assert type(y) is type(want)
    assert_array_equal(y, want)
    assert np.asarray(y).dtype == np.asarray(want).dtype
    assert y_dot is ZERO


@pytest.mark.parametrize("n", [1, 2, 3])
def test_in_a_program(n):
    """What passes through a step contributes nothing; what stands beside it keeps its slope."""

    def f(x):
        return np.floor(x) * x + np.where(np.isclose(x, 1.5), x, -x) + np.round(x, 1) + x // 0.4

    x = np.array([1.5, -2.3, 0.8])
    want = np.diag(np.floor(x) + np.array([1.0, -1.0, -1.0]))
    assert_array_equal(fwdad.jacobian(f, x, chunk=n), want)

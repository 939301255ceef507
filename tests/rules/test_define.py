"""Writing rules: registration, binding, functions that write into an argument."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UndefinedDerivativeError
from tests.differences import central_differences


def scale_rows(a, factors):
    """A kernel that works in place and returns the largest factor."""
    a *= factors[:, None]
    return float(np.max(factors))


@fwdad.frule(scale_rows, mutates=(0,))
def scale_rows_frule(primals, tangents):
    (a, factors), (a_dot, factors_dot) = primals, tangents
    new = a * factors[:, None]
    new_dot = factors[:, None] * a_dot + a * factors_dot[:, None]
    k = int(np.argmax(factors))
    return (np.max(factors), new), (factors_dot[k], new_dot)


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_rule_of_a_function_that_writes(chunk):
    matrix = np.arange(6.0).reshape(3, 2)

    def f(x):
        work = matrix * x[0]
        largest = scale_rows(work, x)
        return work * largest

    def plain(x):
        return matrix * x[0] * x[:, None] * np.max(x)

    x = np.array([0.5, 2.0, 1.5])
    y, jacobian = fwdad.value_and_jacobian(f, x, chunk=chunk)
    assert_allclose(y, plain(x), rtol=1e-15)
    assert_allclose(jacobian, central_differences(plain, x), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("chunk", [1, 2])
def test_an_inactive_call_writes_once(chunk):
    outside = np.ones((3, 2))

    def f(x):
        scale_rows(outside, np.array([1.0, 2.0, 3.0]))
        return x * outside[2, 0]

    assert_array_equal(fwdad.jacobian(f, np.ones(2), chunk=chunk), 3.0 * np.eye(2))
    assert_array_equal(outside, [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])


def test_a_second_rule_names_the_first():
    with pytest.raises(fwdad.errors.DuplicateRuleError, match=r"test_define\.py:\d+") as caught:
        fwdad.frule(scale_rows, mutates=(0,))(lambda primals, tangents: None)
    assert "override=True" in str(caught.value)


def test_an_active_option_is_refused():
    def shifted(x, *, by=0.0):
        return x + by

    @fwdad.frule(shifted)
    def shifted_frule(primals, tangents, *, by):
        return primals[0] + by, tangents[0]

    with pytest.raises(fwdad.errors.MissingRuleError, match="`by`"):
        fwdad.jacobian(lambda x: shifted(x, by=x[0]), np.ones(2))
    assert_array_equal(fwdad.jacobian(lambda x: shifted(x, by=2.0), np.ones(2)), np.eye(2))


def test_what_has_no_partial_says_of_which_function_and_argument():
    def scaled(x, power):
        return x * power

    fwdad.elementwise(scaled, lambda x, power, y: power, fwdad.no_derivative("it is a setting"))
    assert_allclose(fwdad.derivative(lambda x: scaled(x, 3.0), 2.0), 3.0)
    says = r"scaled has no rule .* its argument power: it is a setting\. "
    for derivative in (fwdad.derivative, fwdad.grad):
        with pytest.raises(UndefinedDerivativeError, match=says):
            derivative(lambda p: scaled(2.0, p))(3.0)
    without = fwdad.no_derivative("it is a setting")
    with pytest.raises(UndefinedDerivativeError, match=r"^the function has no rule .* argument"):
        without()

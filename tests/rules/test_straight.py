"""A value with the derivative of another: no difference of values can check that."""

import numpy as np

import fwdad
from fwdad.tangents.straight import with_derivative_of


def whole(x):
    return with_derivative_of(np.rint(x), x**3)


def test_the_tangent_is_the_other_ones_at_every_order():
    x = np.array([0.4, 1.6, -2.3])
    assert np.array_equal(whole(x), [0.0, 2.0, -2.0])
    for n in (1, 2, 3):
        np.testing.assert_allclose(fwdad.jacobian(whole, x, chunk=n), np.diag(3 * x**2), 1e-15)
    for g in (fwdad.grad, fwdad.jacrev):
        found = fwdad.jit(g(lambda x: np.sum(whole(x))), backend="numpy")(x)
        np.testing.assert_allclose(found, 3 * x**2, rtol=1e-15)
    hessian = fwdad.hessian(lambda x: np.sum(whole(x)), x)
    np.testing.assert_allclose(hessian, np.diag(6 * x), rtol=1e-15)


def test_called_by_its_method():
    def hidden(x):
        return next(map(with_derivative_of.__call__, [x], [x]))

    assert fwdad.derivative(hidden, 0.3) == 1.0

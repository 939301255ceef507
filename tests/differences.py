"""Derivatives to compare with: finite differences and complex steps of the plain program.

Differences are central ones with Richardson extrapolation (``fwdad.evaluation.differences``, which
shares no code with the rules) at the step with the least estimated error. That estimate, without
the rounding of f itself, must be below 1e-7, relative to the largest derivative or to 1; for smooth
functions it is about 1e-11. At a kink they raise instead of returning one of its sides.
"""

import numpy as np

from fwdad.evaluation.differences import directional


def central_differences(f, x, *, least=1.0, accuracy=1e-7):
    """The Jacobian of f at an array x, of shape ``y.shape + x.shape``; f may write into x.

    The first step is a thousandth of |x|, or of ``least`` where that is more.
    """
    x = np.asarray(x, dtype=float)
    columns = []
    for index in np.ndindex(x.shape):

        def moved(t, index=index):
            z = x.copy(order="K")
            z[index] += t
            return f(z)

        columns.append(_at_zero(moved, max(least, abs(float(x[index]))), accuracy))
    if not columns:
        return np.zeros((*np.shape(f(x.copy())), *x.shape))
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)


def difference_along(f, x, v=1.0):
    """The derivative of f at a number or an array x, real or complex, along v."""
    size = float(np.max(np.abs(v), initial=0.0)) or 1.0
    return _at_zero(lambda t: f(x + t * v), max(1.0, float(np.max(np.abs(x), initial=0.0))) / size)


def complex_step(f, x, step=1e-40):
    """The Jacobian of an analytic program that keeps complex numbers, exact to rounding."""
    x = np.asarray(x, dtype=float)
    columns = []
    for index in np.ndindex(x.shape):
        z = x.astype(complex)
        z[index] += 1j * step
        columns.append(np.imag(f(z)) / step)
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)


def _at_zero(f, scale, accuracy=1e-7):
    values, errors = directional(lambda t: {"y": np.array(f(t))}, scale)
    value, error = values["y"], errors["y"]
    if not error <= accuracy * max(1.0, float(np.max(np.abs(value), initial=0.0))):
        raise ArithmeticError(f"differences are accurate to {error:.1e} only: {value}")
    return value

"""Derivatives by other means: differences and complex steps of the plain NumPy program.

Nothing here imports fwdad: what stands in these functions is what the cases are compared with.
"""

import copy

import numpy as np


def central_differences(f, x, step=2e-3):
    """Jacobian of an array -> array function, shape ``y.shape + x.shape``.

    Central differences at steps h, h/2 and h/4, extrapolated twice: the error is O(h^6), about
    1e-16, plus about 1e-12 of rounding. It needs f to be smooth within h of x.
    """
    x = np.asarray(x, dtype=float)
    columns = []
    for index in np.ndindex(x.shape):
        h = step * max(1.0, abs(x[index]))
        rough, better, best = (_difference(f, x, index, h / k) for k in (1, 2, 4))
        first, second = (4 * better - rough) / 3, (4 * best - better) / 3
        columns.append((16 * second - first) / 15)
    if not columns:
        return np.zeros((*np.shape(call_on_copy(f, x)), *x.shape))
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)


def _difference(f, x, index, h):
    ahead, behind = x.copy(), x.copy()
    ahead[index] += h
    behind[index] -= h
    gap = ahead[index] - behind[index]  # before f, which may write into its argument
    return (np.array(f(ahead)) - np.array(f(behind))) / gap


def scalar_difference(f, x, step=2e-3):
    """Derivative of a function of one number: as `central_differences`, with floats going in."""
    h = step * max(1.0, abs(x))
    rough, better, best = (
        (np.array(f(x + h / k)) - np.array(f(x - h / k))) / (2 * h / k) for k in (1, 2, 4)
    )
    first, second = (4 * better - rough) / 3, (4 * best - better) / 3
    return (16 * second - first) / 15


def complex_step(f, x, step=1e-40):
    """Jacobian of an analytic program that keeps complex numbers, exact to rounding."""
    x = np.asarray(x, dtype=float)
    columns = []
    for index in np.ndindex(x.shape):
        z = x.astype(complex)
        z[index] += 1j * step
        columns.append(np.imag(f(z)) / step)
    return np.stack(columns, axis=-1).reshape(*columns[0].shape, *x.shape)


def call_on_copy(f, x):
    """Call the plain program on a copy: it may write into its argument."""
    return f(copy.deepcopy(x))

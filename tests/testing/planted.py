"""Right rules of small functions, and which checks of the harness a planted fault fails."""

import numpy as np

from fwdad.testing.frules import failing_checks

X = np.array([0.3, -1.2, 2.1])


M = np.array([[0.7, 1.9, -0.4], [1.1, -0.6, 0.8]])


def sine(x):
    return np.sin(x)


def product(x, y):
    return x * y


def sine_body(primals, tangents):
    """The right rule of sine, beside which the faults are planted."""
    (x,), (x_dot,) = primals, tangents
    return np.sin(x), np.cos(x) * x_dot


def product_body(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return x * y, x_dot * y + x * y_dot


def caught(function, *args, options=None, **settings):
    return sorted(failing_checks(function, args, options, **settings))

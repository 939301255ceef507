"""Small smooth functions whose derivatives are known in closed form."""

import numpy as np

X = np.array([0.7, -1.3, 2.1])


MATRIX = np.array([[0.7, -1.3, 2.1], [0.4, 1.6, -0.9]])


def cubes(x):
    return x**3


def product(x, y):
    return np.outer(x, y)


def energy(x):
    return np.sum(x**4) + x[0] * x[1]


def energy_gradient(x):
    return 4 * x**3 + np.array([x[1], x[0], 0.0])


def energy_hessian(x):
    return np.diag(12 * x**2) + np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])

"""Planets under one another's gravity, by the leapfrog method."""

from __future__ import annotations

import numpy as np

from fwdad.reversible import ancilla, compute, copy_out, reversible


@reversible
def kick(v, x, m, h):
    """Change velocities by what gravity does in a time ``h``."""
    for i in range(len(m)):
        for j in range(len(m)):
            if i != j:
                with compute():
                    square = ancilla(0.0)
                    for k in range(x.shape[1]):
                        square += (x[j, k] - x[i, k]) ** 2
                    with copy_out():
                        for k in range(x.shape[1]):
                            v[i, k] += h * m[j] * (x[j, k] - x[i, k]) / (square * np.sqrt(square))


@reversible
def leapfrog(x, v, m, h, steps):
    """Go ``steps`` steps of a time ``h``; the gravitational constant is 1.

    Parameters
    ----------
    x, v : array, shape (bodies, dimensions)
        Places and velocities: updated.
    m : array, shape (bodies,)
        Masses.
    h : float
        The time of a step.
    steps : int
        How many.
    """
    for _ in range(steps):
        kick(v, x, m, h / 2)
        for i in range(len(m)):
            for k in range(x.shape[1]):
                x[i, k] += h * v[i, k]
        kick(v, x, m, h / 2)

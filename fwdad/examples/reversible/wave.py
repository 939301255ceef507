"""A wave on a string, in time: second order in space and time, ends held fast."""

from __future__ import annotations

from fwdad.reversible import reversible


@reversible
def wave(u, before, c, steps):
    """Go ``steps`` time steps; ``u`` and ``before`` are the present and the last state.

    Parameters
    ----------
    u, before : array, shape (n,)
        Updated.
    c : array, shape (n,)
        The squared Courant number at each place, at most 1.
    steps : int
        How many.
    """
    for _ in range(steps):
        before = -before
        before[1:-1] += 2 * u[1:-1] + c[1:-1] * (u[2:] - 2 * u[1:-1] + u[:-2])
        before, u = u, before

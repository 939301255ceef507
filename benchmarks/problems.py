"""The programs that are differentiated, written as a NumPy user writes them.

fwdad and SciPy's differences run these as they stand. The peers cannot (they have arrays of their
own), so each problem says how it is rewritten for them: the same source with ``np`` standing for
the peer's namespace where that works, which is what "import jax.numpy as np" does, and without
assignment in place where that is what the peer needs.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.examples.pollu import Y_END, pollu, pollu_stored


@dataclass(frozen=True)
class Problem:
    """One program and the point where it is differentiated."""

    name: str
    x: np.ndarray
    function: Callable[[Any], Any]  # a NumPy user's program
    functional: Callable[[Any], Any]  # the same for a peer: nothing is assigned in place
    analytic: bool = True  # may be run with complex x, for the reference derivative

    def rewrite(self, namespace: Any) -> Callable[[Any], Any]:
        """Make the program with ``np`` standing for a peer's namespace."""
        f = self.functional
        inner = {
            name: _rebind(value, namespace)
            for name, value in f.__globals__.items()
            if isinstance(value, types.FunctionType) and name in f.__code__.co_names
        }
        return types.FunctionType(
            f.__code__, {**f.__globals__, **inner, "np": namespace}, f.__name__, f.__defaults__
        )


def _rebind(f: types.FunctionType, namespace: Any) -> types.FunctionType:
    return types.FunctionType(
        f.__code__, {**f.__globals__, "np": namespace}, f.__name__, f.__defaults__
    )


# -- POLLU, 20 species: one scalar operation after the other


def pollu_returned(y):
    """Build the result as a list of scalars: ``return np.array([...])``."""
    return pollu(0.0, y)


# -- the Brusselator on a line: two species on n/2 points, slices and assignment in place

A, B, DIFFUSION = 1.0, 3.0, 0.02


def brusselator(y):
    """Rates u' = A + u²v − (B+1)u + α u_xx, v' = Bu − u²v + α v_xx; u = A, v = B/A at the ends."""
    m = y.size // 2
    u, v = y[:m], y[m:]
    alpha = DIFFUSION * (m + 1) ** 2
    f = np.empty_like(y)
    u_t, v_t = f[:m], f[m:]
    uuv = u * u * v
    u_t[:] = A + uuv - (B + 1) * u
    v_t[:] = B * u - uuv
    u_t[1:-1] += alpha * (u[2:] - 2 * u[1:-1] + u[:-2])
    v_t[1:-1] += alpha * (v[2:] - 2 * v[1:-1] + v[:-2])
    u_t[0] += alpha * (u[1] - 2 * u[0] + A)
    u_t[-1] += alpha * (u[-2] - 2 * u[-1] + A)
    v_t[0] += alpha * (v[1] - 2 * v[0] + B / A)
    v_t[-1] += alpha * (v[-2] - 2 * v[-1] + B / A)
    return f


def brusselator_functional(y):
    """The same with padded arrays and one concatenation."""
    m = y.shape[0] // 2
    u, v = y[:m], y[m:]
    alpha = DIFFUSION * (m + 1) ** 2
    end = np.ones(1)
    u_wide = np.concatenate((A * end, u, A * end))
    v_wide = np.concatenate((B / A * end, v, B / A * end))
    uuv = u * u * v
    u_t = A + uuv - (B + 1) * u + alpha * (u_wide[2:] - 2 * u + u_wide[:-2])
    v_t = B * u - uuv + alpha * (v_wide[2:] - 2 * v + v_wide[:-2])
    return np.concatenate((u_t, v_t))


# -- elementary functions of an array


def transcendental(x):
    """Six elementary functions, products and sums."""
    return np.tanh(x) * np.exp(-x * x) + np.log1p(x * x) * np.sin(3 * x) + np.cos(x) * x


# -- matrices: product, Cholesky factor, linear solve


def matrix_program(a):
    """A covariance, its factor, the weights of some data under it, and the factor applied."""
    n = a.shape[0]
    s = a @ a.T + n * np.eye(n)
    l = np.linalg.cholesky(s)
    x = np.linalg.solve(s, np.linspace(0.0, 1.0, n))
    return l @ x


def gaussian_process(x):
    """The same operations on the kernel matrix of n points: a Jacobian of n columns."""
    n = x.shape[0]
    d = x[:, None] - x[None, :]
    s = np.exp(-8.0 * d * d) + 0.1 * np.eye(n)
    l = np.linalg.cholesky(s)
    w = np.linalg.solve(s, np.linspace(0.0, 1.0, n))
    return l @ w


def _rng() -> np.random.Generator:
    return np.random.default_rng(20261121)


def brusselator_problem(n: int) -> Problem:
    """The Brusselator with n unknowns, at a smooth state off the equilibrium."""
    s = np.arange(1, n // 2 + 1) / (n // 2 + 1)
    y = np.concatenate((A + np.sin(2 * np.pi * s), B / A + 0.5 * np.cos(2 * np.pi * s)))
    return Problem(f"brusselator-{n}", y, brusselator, brusselator_functional)


def array_problem(n: int) -> Problem:
    """The transcendental function of n numbers."""
    name = f"array-{n:.0e}".replace("e+0", "e")
    return Problem(name, _rng().normal(size=n), transcendental, transcendental)


def matrix_problem(n: int) -> Problem:
    """The matrix program of a dense n × n matrix."""
    return Problem(
        "matrix", _rng().normal(size=(n, n)), matrix_program, matrix_program, analytic=False
    )


def gaussian_process_problem(n: int) -> Problem:
    """The matrix program of n points on a line."""
    return Problem(
        "gp", np.linspace(0.0, 1.0, n), gaussian_process, gaussian_process, analytic=False
    )


def pollu_problem() -> Problem:
    """POLLU that returns ``np.array([...])``, near the end of the published solution."""
    return Problem("pollu", Y_END.copy(), pollu_returned, pollu_returned)


def pollu_stored_problem() -> Problem:
    """POLLU that writes into an array made beforehand."""
    return Problem("pollu-stored", Y_END.copy(), pollu_stored, pollu_returned)

"""Robertson's, Burgers' and Lorenz' derivatives by hand for Numba.

Importing this module needs Numba.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from benchmarks.jit_problems import STEP, VISCOSITY
from fwdad.codegen.llvm.simd import compiled_lanes

# -- Robertson

_three = compiled_lanes(3)
unit3, store3 = _three.unit, _three.store


@njit
def rober_primal(y):
    """Rate of change of three concentrations."""
    r1, r2, r3 = 0.04 * y[0], 1e4 * y[1] * y[2], 3e7 * y[1] * y[1]
    f = np.empty(3)
    f[0], f[1], f[2] = -r1 + r2, r1 - r2 - r3, r3
    return f


@njit
def rober_lanes(y):
    """The three columns together, as SIMD values of three lanes."""
    r1 = 0.04 * unit3(0)
    r2 = 1e4 * y[2] * unit3(1) + 1e4 * y[1] * unit3(2)
    r3 = 6e7 * y[1] * unit3(1)
    j = np.empty((3, 3))
    columns = j.T
    store3(columns, r2 - r1, 0)
    store3(columns, r1 - r2 - r3, 1)
    store3(columns, r3, 2)
    return j


@njit
def rober_entries(y):
    """The nine entries, each as its formula."""
    a, b, c = 1e4 * y[2], 1e4 * y[1], 6e7 * y[1]
    j = np.empty((3, 3))
    j[0, 0], j[0, 1], j[0, 2] = -0.04, a, b
    j[1, 0], j[1, 1], j[1, 2] = 0.04, -a - c, -b
    j[2, 0], j[2, 1], j[2, 2] = 0.0, c, 0.0
    return j


# -- Burgers


@njit
def burgers_primal(u):
    """The rate, the ends apart; views, because LLVM does not vectorise indices that may wrap."""
    n = u.size
    along, diffusion = 0.5 * (n + 1), VISCOSITY * (n + 1) ** 2
    f = np.empty(n)
    left, here, right, inner = u[:-2], u[1:-1], u[2:], f[1:-1]
    for i in range(n - 2):
        second = right[i] - 2 * here[i] + left[i]
        inner[i] = diffusion * second - along * here[i] * (right[i] - left[i])
    f[0] = diffusion * (u[1] - 2 * u[0]) - along * u[0] * u[1]
    f[-1] = diffusion * (u[-2] - 2 * u[-1]) + along * u[-1] * u[-2]
    return f


@njit
def burgers_bands(u):
    """The dense Jacobian: zeros, and three bands whose places the author knows."""
    n = u.size
    along, diffusion = 0.5 * (n + 1), VISCOSITY * (n + 1) ** 2
    j = np.zeros((n, n))
    for i in range(n):
        left = u[i - 1] if i > 0 else 0.0
        right = u[i + 1] if i < n - 1 else 0.0
        if i > 0:
            j[i, i - 1] = diffusion + along * u[i]
        j[i, i] = -2 * diffusion - along * (right - left)
        if i < n - 1:
            j[i, i + 1] = diffusion - along * u[i]
    return j


# -- Lorenz


@njit
def lorenz_primal(p, steps):
    """Euler steps with the state in scalars."""
    x, y, z = p[0], p[1], p[2]
    sigma, rho, beta = p[3], p[4], p[5]
    for _ in range(steps):
        x_t, y_t, z_t = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
        x, y, z = x + STEP * x_t, y + STEP * y_t, z + STEP * z_t
    return np.array([x, y, z])


@njit
def _lorenz_steps(p, steps, x_dot, y_dot, z_dot, sigma_dot, rho_dot, beta_dot):
    """The same with tangents of any type that has +, − and products with floats."""
    x, y, z = p[0], p[1], p[2]
    sigma, rho, beta = p[3], p[4], p[5]
    for _ in range(steps):
        x_t, y_t, z_t = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
        x_t_dot = sigma * (y_dot - x_dot) + (y - x) * sigma_dot
        y_t_dot = (rho - z) * x_dot + x * (rho_dot - z_dot) - y_dot
        z_t_dot = y * x_dot + x * y_dot - beta * z_dot - z * beta_dot
        x, y, z = x + STEP * x_t, y + STEP * y_t, z + STEP * z_t
        x_dot = x_dot + STEP * x_t_dot
        y_dot = y_dot + STEP * y_t_dot
        z_dot = z_dot + STEP * z_t_dot
    return x, y, z, x_dot, y_dot, z_dot


_eight = compiled_lanes(8)
unit8, load8, store8 = _eight.unit, _eight.load, _eight.store


@njit
def lorenz_jacobian_lanes(p, steps):
    """Six columns as SIMD values of eight lanes: a whole number of registers.

    Two lanes are spare. LLVM takes 1.6 × as long for values of six lanes with AVX2.
    """
    _, _, _, x_dot, y_dot, z_dot = _lorenz_steps(
        p, steps, unit8(0), unit8(1), unit8(2), unit8(3), unit8(4), unit8(5)
    )
    j = np.empty((3, 8))
    columns = j.T
    store8(columns, x_dot, 0)
    store8(columns, y_dot, 1)
    store8(columns, z_dot, 2)
    return j[:, :6].copy()


@njit
def lorenz_lanes(p, p_dot, steps):
    """Eight directional derivatives as SIMD values of eight lanes."""
    x, y, z, x_dot, y_dot, z_dot = _lorenz_steps(
        p,
        steps,
        load8(p_dot, 0),
        load8(p_dot, 1),
        load8(p_dot, 2),
        load8(p_dot, 3),
        load8(p_dot, 4),
        load8(p_dot, 5),
    )
    made = np.empty((8, 3))
    store8(made, x_dot, 0)
    store8(made, y_dot, 1)
    store8(made, z_dot, 2)
    return np.array([x, y, z]), made


@njit
def lorenz_loops(p, p_dot, steps):
    """The directions in a plain loop inside each step, tangents in arrays."""
    n = p_dot.shape[0]
    s_dot = p_dot.T.copy()
    x, y, z = p[0], p[1], p[2]
    sigma, rho, beta = p[3], p[4], p[5]
    for _ in range(steps):
        x_t, y_t, z_t = sigma * (y - x), x * (rho - z) - y, x * y - beta * z
        for k in range(n):
            a, b, c = s_dot[0, k], s_dot[1, k], s_dot[2, k]
            s_dot[0, k] = a + STEP * (sigma * (b - a) + (y - x) * s_dot[3, k])
            s_dot[1, k] = b + STEP * ((rho - z) * a + x * (s_dot[4, k] - c) - b)
            s_dot[2, k] = c + STEP * (y * a + x * b - beta * c - z * s_dot[5, k])
        x, y, z = x + STEP * x_t, y + STEP * y_t, z + STEP * z_t
    return np.array([x, y, z]), s_dot[:3].T.copy()


@njit
def lorenz_jacobian_loops(p, steps):
    """Six columns by plain loops."""
    return lorenz_loops(p, np.eye(6), steps)[1].T.copy()

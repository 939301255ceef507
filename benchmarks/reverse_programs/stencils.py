"""Stencils: views of arrays, updated in place step by step."""

from __future__ import annotations

import numpy as np

from benchmarks.reverse_programs.problem import Arguments, Problem, normal, random


def jacobi_1d(a, steps):
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])
        a[1:-1] = 0.33333 * (b[:-2] + b[1:-1] + b[2:])
    return np.sum(a)


def jacobi_2d(a, steps):
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (
            a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1]
        )
        a[1:-1, 1:-1] = 0.2 * (
            b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1]
        )
    return np.sum(a)


def seidel_2d(a, steps):
    a = a.copy()
    n = a.shape[0]
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, n - 1):
                a[i, j] = (
                    a[i - 1, j - 1] + a[i - 1, j] + a[i - 1, j + 1]
                    + a[i, j - 1] + a[i, j] + a[i, j + 1]
                    + a[i + 1, j - 1] + a[i + 1, j] + a[i + 1, j + 1]
                ) / 9.0  # fmt: skip
    return np.sum(a)


def heat_3d(a, steps):
    a = a.copy()
    b = a.copy()
    for _ in range(steps):
        b[1:-1, 1:-1, 1:-1] = (
            0.125 * (a[2:, 1:-1, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[:-2, 1:-1, 1:-1])
            + 0.125 * (a[1:-1, 2:, 1:-1] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, :-2, 1:-1])
            + 0.125 * (a[1:-1, 1:-1, 2:] - 2.0 * a[1:-1, 1:-1, 1:-1] + a[1:-1, 1:-1, :-2])
            + a[1:-1, 1:-1, 1:-1]
        )
        a[1:-1, 1:-1, 1:-1] = (
            0.125 * (b[2:, 1:-1, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[:-2, 1:-1, 1:-1])
            + 0.125 * (b[1:-1, 2:, 1:-1] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, :-2, 1:-1])
            + 0.125 * (b[1:-1, 1:-1, 2:] - 2.0 * b[1:-1, 1:-1, 1:-1] + b[1:-1, 1:-1, :-2])
            + b[1:-1, 1:-1, 1:-1]
        )
    return np.sum(a)


def fdtd_2d(ex, ey, hz, source):
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(len(source)):
        ey[0, :] = source[t]
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return np.sum(ex) + np.sum(ey) + np.sum(hz)


def adi(u, steps):
    """Implicit in one direction, then in the other: tridiagonal sweeps."""
    u = u.copy()
    n = u.shape[0]
    v = np.zeros_like(u)
    p = np.zeros_like(u)
    q = np.zeros_like(u)
    a = c = -n * n / steps
    b = 1.0 - 2.0 * a
    d = f = -0.5 * n * n / steps
    e = 1.0 - 2.0 * d
    for _ in range(steps):
        v[0, 1:-1] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = -c / (a * p[1:-1, j - 1] + b)
            q[1:-1, j] = (
                -d * u[j, :-2] + (1.0 + 2.0 * d) * u[j, 1:-1] - f * u[j, 2:] - a * q[1:-1, j - 1]
            ) / (a * p[1:-1, j - 1] + b)
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 0] = 1.0
        p[1:-1, 0] = 0.0
        q[1:-1, 0] = u[1:-1, 0]
        for j in range(1, n - 1):
            p[1:-1, j] = -f / (d * p[1:-1, j - 1] + e)
            q[1:-1, j] = (
                -a * v[:-2, j] + (1.0 + 2.0 * a) * v[1:-1, j] - c * v[2:, j] - d * q[1:-1, j - 1]
            ) / (d * p[1:-1, j - 1] + e)
        u[1:-1, -1] = 1.0
        for j in range(n - 2, 0, -1):
            u[1:-1, j] = p[1:-1, j] * u[1:-1, j + 1] + q[1:-1, j]
    return np.sum(u)


def deriche(image, alpha):
    """A recursive filter: along the rows both ways, then along the columns both ways."""
    decay = np.exp(-alpha)
    k = (1.0 - decay) ** 2 / (1.0 + 2.0 * alpha * decay - np.exp(2.0 * alpha))
    a1 = k
    a2 = k * decay * (alpha - 1.0)
    a3 = k * decay * (alpha + 1.0)
    a4 = -k * decay**2
    b1 = 2.0**-alpha
    b2 = -(decay**2)
    width, height = image.shape
    y1 = np.empty_like(image)
    y2 = np.empty_like(image)
    y1[:, 0] = a1 * image[:, 0]
    y1[:, 1] = a1 * image[:, 1] + a2 * image[:, 0] + b1 * y1[:, 0]
    for j in range(2, height):
        y1[:, j] = a1 * image[:, j] + a2 * image[:, j - 1] + b1 * y1[:, j - 1] + b2 * y1[:, j - 2]
    y2[:, -1] = 0.0
    y2[:, -2] = a3 * image[:, -1]
    for j in range(height - 3, -1, -1):
        y2[:, j] = (
            a3 * image[:, j + 1] + a4 * image[:, j + 2] + b1 * y2[:, j + 1] + b2 * y2[:, j + 2]
        )
    out = y1 + y2
    y1[0, :] = a1 * out[0, :]
    y1[1, :] = a1 * out[1, :] + a2 * out[0, :] + b1 * y1[0, :]
    for i in range(2, width):
        y1[i, :] = a1 * out[i, :] + a2 * out[i - 1, :] + b1 * y1[i - 1, :] + b2 * y1[i - 2, :]
    y2[-1, :] = 0.0
    y2[-2, :] = a3 * out[-1, :]
    for i in range(width - 3, -1, -1):
        y2[i, :] = a3 * out[i + 1, :] + a4 * out[i + 2, :] + b1 * y2[i + 1, :] + b2 * y2[i + 2, :]
    return np.sum(y1 + y2)


def horizontal_diffusion(field, coefficients):
    """Fourth order, with fluxes that are cut where they would run uphill."""
    ni, nj, _ = coefficients.shape
    laplacian = 4.0 * field[1 : ni + 3, 1 : nj + 3] - (
        field[2 : ni + 4, 1 : nj + 3]
        + field[: ni + 2, 1 : nj + 3]
        + field[1 : ni + 3, 2 : nj + 4]
        + field[1 : ni + 3, : nj + 2]
    )
    flux = laplacian[1:, 1 : nj + 1] - laplacian[:-1, 1 : nj + 1]
    slope = field[2 : ni + 3, 2 : nj + 2] - field[1 : ni + 2, 2 : nj + 2]
    flux_x = np.where(flux * slope > 0.0, 0.0, flux)
    flux = laplacian[1 : ni + 1, 1:] - laplacian[1 : ni + 1, :-1]
    slope = field[2 : ni + 2, 2 : nj + 3] - field[2 : ni + 2, 1 : nj + 2]
    flux_y = np.where(flux * slope > 0.0, 0.0, flux)
    out = field[2 : ni + 2, 2 : nj + 2] - coefficients * (
        flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1]
    )
    return np.sum(out)


def vertical_advection(wcon, u_stage, u_pos, utens, utens_stage, dtr):
    """A tridiagonal system in each column: forward sweep, then back substitution."""
    out = utens_stage.copy()
    nk = u_stage.shape[2]
    c = np.empty_like(u_stage)
    d = np.empty_like(u_stage)
    gcv = 0.25 * (wcon[1:, :, 1] + wcon[:-1, :, 1])
    c[:, :, 0] = 0.5 * gcv
    correction = -0.5 * gcv * (u_stage[:, :, 1] - u_stage[:, :, 0])
    d[:, :, 0] = dtr * u_pos[:, :, 0] + utens[:, :, 0] + out[:, :, 0] + correction
    divided = 1.0 / (dtr - c[:, :, 0])
    c[:, :, 0] *= divided
    d[:, :, 0] *= divided
    for k in range(1, nk - 1):
        gav = -0.25 * (wcon[1:, :, k] + wcon[:-1, :, k])
        gcv = 0.25 * (wcon[1:, :, k + 1] + wcon[:-1, :, k + 1])
        a = 0.5 * gav
        c[:, :, k] = 0.5 * gcv
        b = dtr - a - c[:, :, k]
        correction = -0.5 * gav * (u_stage[:, :, k - 1] - u_stage[:, :, k])
        correction -= 0.5 * gcv * (u_stage[:, :, k + 1] - u_stage[:, :, k])
        d[:, :, k] = dtr * u_pos[:, :, k] + utens[:, :, k] + out[:, :, k] + correction
        divided = 1.0 / (b - c[:, :, k - 1] * a)
        c[:, :, k] *= divided
        d[:, :, k] = (d[:, :, k] - d[:, :, k - 1] * a) * divided
    gav = -0.25 * (wcon[1:, :, nk - 1] + wcon[:-1, :, nk - 1])
    a = 0.5 * gav
    correction = -0.5 * gav * (u_stage[:, :, nk - 2] - u_stage[:, :, nk - 1])
    d[:, :, -1] = dtr * u_pos[:, :, -1] + utens[:, :, -1] + out[:, :, -1] + correction
    divided = 1.0 / (dtr - a - c[:, :, nk - 2] * a)
    d[:, :, -1] = (d[:, :, -1] - d[:, :, nk - 2] * a) * divided
    column = d[:, :, nk - 1].copy()
    out[:, :, -1] = dtr * (column - u_pos[:, :, -1])
    for k in range(nk - 2, -1, -1):
        column[:] = d[:, :, k] - c[:, :, k] * column
        out[:, :, k] = dtr * (column - u_pos[:, :, k])
    return np.sum(out)


def cavity_flow(u, v, p, steps, inner):
    """The flow in a box under a moving lid; a fixed number of sweeps for the pressure."""
    u, v, p = u.copy(), v.copy(), p.copy()
    b = np.zeros_like(p)
    h = 2.0 / (p.shape[0] - 1)
    dt, rho, nu = 0.001, 1.0, 0.1
    for _ in range(steps):
        ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * h)
        uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * h)
        vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * h)
        vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * h)
        b[1:-1, 1:-1] = rho * ((ux + vy) / dt - ux**2 - 2.0 * uy * vx - vy**2)
        for _ in range(inner):
            before = p.copy()
            p[1:-1, 1:-1] = 0.25 * (
                before[1:-1, 2:] + before[1:-1, :-2] + before[2:, 1:-1] + before[:-2, 1:-1]
                - h**2 * b[1:-1, 1:-1]
            )  # fmt: skip
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0.0
        un = u.copy()
        vn = v.copy()
        u[1:-1, 1:-1] = (
            un[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / h * (un[1:-1, 1:-1] - un[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / h * (un[1:-1, 1:-1] - un[:-2, 1:-1])
            - dt / (2.0 * rho * h) * (p[1:-1, 2:] - p[1:-1, :-2])
            + nu * dt / h**2 * (un[1:-1, 2:] - 2.0 * un[1:-1, 1:-1] + un[1:-1, :-2])
            + nu * dt / h**2 * (un[2:, 1:-1] - 2.0 * un[1:-1, 1:-1] + un[:-2, 1:-1])
        )
        v[1:-1, 1:-1] = (
            vn[1:-1, 1:-1]
            - un[1:-1, 1:-1] * dt / h * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
            - vn[1:-1, 1:-1] * dt / h * (vn[1:-1, 1:-1] - vn[:-2, 1:-1])
            - dt / (2.0 * rho * h) * (p[2:, 1:-1] - p[:-2, 1:-1])
            + nu * dt / h**2 * (vn[1:-1, 2:] - 2.0 * vn[1:-1, 1:-1] + vn[1:-1, :-2])
            + nu * dt / h**2 * (vn[2:, 1:-1] - 2.0 * vn[1:-1, 1:-1] + vn[:-2, 1:-1])
        )
        u[0, :] = 0.0
        u[:, 0] = 0.0
        u[:, -1] = 0.0
        u[-1, :] = 1.0
        v[0, :] = 0.0
        v[-1, :] = 0.0
        v[:, 0] = 0.0
        v[:, -1] = 0.0
    return np.sum(u) + np.sum(v) + np.sum(p)


# -- arguments


def _line(n: int, steps: int) -> Arguments:
    return random(n), steps


def _square(n: int, steps: int) -> Arguments:
    return random(n, n), steps


def _cube(n: int, steps: int) -> Arguments:
    return random(n, n, n), steps


def _fdtd(n: int, steps: int) -> Arguments:
    a = random(3, n, n + 3)
    return a[0], a[1], a[2], np.arange(float(steps))


def _diffusion(n: int, levels: int) -> Arguments:
    return normal(n + 4, n + 4, levels), random(n, n, levels)


def _advection(n: int, levels: int) -> Arguments:
    return (0.1 * normal(n + 1, n, levels), *random(4, n, n, levels), 3.0 / 20.0)


def _cavity(n: int, steps: int, inner: int) -> Arguments:
    u, v, p = 0.1 * normal(3, n, n + 2)
    return u, v, p, steps, inner


PROBLEMS = [
    Problem(jacobi_1d, _line, (9, 3), (2000, 200), (8000, 800), interpreted=True),
    Problem(jacobi_2d, _square, (6, 3), (90, 50), (250, 200), interpreted=True),
    Problem(seidel_2d, _square, (6, 3), (80, 15), (250, 40)),
    Problem(heat_3d, _cube, (5, 2), (20, 20), (50, 50), interpreted=True),
    Problem(fdtd_2d, _fdtd, (5, 3), (80, 30), (250, 100), interpreted=True),
    Problem(adi, _square, (6, 2), (60, 10), (200, 50), interpreted=True),
    Problem(deriche, lambda n: (random(n, n + 5), 0.25), (6,), (180,), (900,), interpreted=True),
    Problem(horizontal_diffusion, _diffusion, (5, 3), (32, 30), (120, 80), interpreted=True),
    Problem(vertical_advection, _advection, (3, 5), (24, 40), (80, 100), interpreted=True),
    Problem(cavity_flow, _cavity, (6, 2, 3), (41, 5, 20), (101, 20, 50), interpreted=True),
]

"""Stencils, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import fori_loop, scan


def jacobi_1d(a, steps):
    def mean(u, v):
        return u.at[1:-1].set(0.33333 * (v[:-2] + v[1:-1] + v[2:]))

    def step(_, ab):
        b = mean(ab[1], ab[0])
        return mean(ab[0], b), b

    return jnp.sum(fori_loop(0, steps, step, (a, a))[0])


def jacobi_2d(a, steps):
    def mean(u, v):
        return u.at[1:-1, 1:-1].set(
            0.2 * (v[1:-1, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] + v[2:, 1:-1] + v[:-2, 1:-1])
        )

    def step(_, ab):
        b = mean(ab[1], ab[0])
        return mean(ab[0], b), b

    return jnp.sum(fori_loop(0, steps, step, (a, a))[0])


def seidel_2d(a, steps):
    n = a.shape[0]

    def column(j, ai):
        a, i = ai
        view = jax.lax.dynamic_slice(a, (i - 1, j - 1), (3, 3))
        return a.at[i, j].set(jnp.sum(view) / 9.0), i

    def row(i, a):
        return fori_loop(1, n - 1, column, (a, i))[0]

    return jnp.sum(fori_loop(0, steps, lambda _, a: fori_loop(1, n - 1, row, a), a))


def heat_3d(a, steps):
    def spread(u, v):
        inner = v[1:-1, 1:-1, 1:-1]
        return u.at[1:-1, 1:-1, 1:-1].set(
            0.125 * (v[2:, 1:-1, 1:-1] - 2.0 * inner + v[:-2, 1:-1, 1:-1])
            + 0.125 * (v[1:-1, 2:, 1:-1] - 2.0 * inner + v[1:-1, :-2, 1:-1])
            + 0.125 * (v[1:-1, 1:-1, 2:] - 2.0 * inner + v[1:-1, 1:-1, :-2])
            + inner
        )

    def step(_, ab):
        b = spread(ab[1], ab[0])
        return spread(ab[0], b), b

    return jnp.sum(fori_loop(0, steps, step, (a, a))[0])


def fdtd_2d(ex, ey, hz, source):
    def step(fields, value):
        ex, ey, hz = fields
        ey = ey.at[0, :].set(value)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        hz = hz.at[:-1, :-1].add(-0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]))
        return (ex, ey, hz), None

    (ex, ey, hz), _ = scan(step, (ex, ey, hz), source)
    return jnp.sum(ex) + jnp.sum(ey) + jnp.sum(hz)


def adi(u, steps):
    n = u.shape[0]
    a = c = -n * n / steps
    b = 1.0 - 2.0 * a
    d = f = -0.5 * n * n / steps
    e = 1.0 - 2.0 * d
    ones = jnp.ones(n - 2)

    def sweep(right, low, middle, high):
        """Tridiagonal systems with the same matrix; row j of ``right`` belongs to unknown j."""

        def down(pq, r):
            p, q = pq
            made = (-high / (low * p + middle), (r - low * q) / (low * p + middle))
            return made, made

        def up(x, pq):
            x = pq[0] * x + pq[1]
            return x, x

        _, pq = scan(down, (jnp.zeros(n - 2), ones), right)
        return scan(up, ones, pq, reverse=True)[1]

    def step(_, uv):
        u, v = uv
        right = -d * u[1:-1, :-2] + (1.0 + 2.0 * d) * u[1:-1, 1:-1] - f * u[1:-1, 2:]
        v = v.at[0, 1:-1].set(1.0).at[-1, 1:-1].set(1.0)
        v = v.at[1:-1, 1:-1].set(sweep(right, a, b, c))
        right = -a * v[:-2, 1:-1] + (1.0 + 2.0 * a) * v[1:-1, 1:-1] - c * v[2:, 1:-1]
        u = u.at[1:-1, 0].set(1.0).at[1:-1, -1].set(1.0)
        return u.at[1:-1, 1:-1].set(sweep(right.T, d, e, f).T), v

    return jnp.sum(fori_loop(0, steps, step, (u, jnp.zeros_like(u)))[0])


def deriche(image, alpha):
    decay = jnp.exp(-alpha)
    k = (1.0 - decay) ** 2 / (1.0 + 2.0 * alpha * decay - jnp.exp(2.0 * alpha))
    a1 = k
    a2 = k * decay * (alpha - 1.0)
    a3 = k * decay * (alpha + 1.0)
    a4 = -k * decay**2
    b1 = 2.0**-alpha
    b2 = -(decay**2)

    def both_ways(x):
        """Along the rows of x."""
        nothing = jnp.zeros(x.shape[1])

        def forward(state, x):
            x1, y1, y2 = state
            y = a1 * x + a2 * x1 + b1 * y1 + b2 * y2
            return (x, y, y1), y

        def backward(state, x):
            x1, x2, y1, y2 = state
            y = a3 * x1 + a4 * x2 + b1 * y1 + b2 * y2
            return (x, x1, y, y1), y

        ahead = scan(forward, (nothing, nothing, nothing), x)[1]
        back = scan(backward, (nothing, nothing, nothing, nothing), x, reverse=True)[1]
        return ahead + back

    return jnp.sum(both_ways(both_ways(image.T).T))


def horizontal_diffusion(field, coefficients):
    ni, nj, _ = coefficients.shape
    laplacian = 4.0 * field[1 : ni + 3, 1 : nj + 3] - (
        field[2 : ni + 4, 1 : nj + 3]
        + field[: ni + 2, 1 : nj + 3]
        + field[1 : ni + 3, 2 : nj + 4]
        + field[1 : ni + 3, : nj + 2]
    )
    flux = laplacian[1:, 1 : nj + 1] - laplacian[:-1, 1 : nj + 1]
    slope = field[2 : ni + 3, 2 : nj + 2] - field[1 : ni + 2, 2 : nj + 2]
    flux_x = jnp.where(flux * slope > 0.0, 0.0, flux)
    flux = laplacian[1 : ni + 1, 1:] - laplacian[1 : ni + 1, :-1]
    slope = field[2 : ni + 2, 2 : nj + 3] - field[2 : ni + 2, 1 : nj + 2]
    flux_y = jnp.where(flux * slope > 0.0, 0.0, flux)
    out = field[2 : ni + 2, 2 : nj + 2] - coefficients * (
        flux_x[1:] - flux_x[:-1] + flux_y[:, 1:] - flux_y[:, :-1]
    )
    return jnp.sum(out)


def vertical_advection(wcon, u_stage, u_pos, utens, utens_stage, dtr):
    mean = 0.25 * (wcon[1:] + wcon[:-1])
    levels = jnp.moveaxis(mean, 2, 0)
    low = -0.5 * levels
    high = jnp.concatenate([0.5 * levels[1:], jnp.zeros_like(levels[:1])])
    low = low.at[0].set(0.0)
    u = jnp.moveaxis(u_stage, 2, 0)
    below = jnp.concatenate([u[:1], u[:-1]])
    above = jnp.concatenate([u[1:], u[-1:]])
    correction = -low * (below - u) - high * (above - u)
    right = dtr * u_pos + utens + utens_stage
    right = jnp.moveaxis(right, 2, 0) + correction

    def down(cd, level):
        low, high, right = level
        divided = 1.0 / (dtr - low - high - cd[0] * low)
        made = (high * divided, (right - cd[1] * low) * divided)
        return made, made

    def up(x, cd):
        x = cd[1] - cd[0] * x
        return x, x

    nothing = jnp.zeros_like(u[0])
    _, cd = scan(down, (nothing, nothing), (low, high, right))
    x = scan(up, nothing, cd, reverse=True)[1]
    return jnp.sum(dtr * (x - jnp.moveaxis(u_pos, 2, 0)))


def cavity_flow(u, v, p, steps, inner):
    h = 2.0 / (p.shape[0] - 1)
    dt, rho, nu = 0.001, 1.0, 0.1

    def moved(own, u, v, slope):
        centre = own[1:-1, 1:-1]
        return own.at[1:-1, 1:-1].set(
            centre
            - u[1:-1, 1:-1] * dt / h * (centre - own[1:-1, :-2])
            - v[1:-1, 1:-1] * dt / h * (centre - own[:-2, 1:-1])
            - dt / (2.0 * rho * h) * slope
            + nu * dt / h**2 * (own[1:-1, 2:] - 2.0 * centre + own[1:-1, :-2])
            + nu * dt / h**2 * (own[2:, 1:-1] - 2.0 * centre + own[:-2, 1:-1])
        )

    def step(_, uvp):
        u, v, p = uvp
        ux = (u[1:-1, 2:] - u[1:-1, :-2]) / (2.0 * h)
        uy = (u[2:, 1:-1] - u[:-2, 1:-1]) / (2.0 * h)
        vx = (v[1:-1, 2:] - v[1:-1, :-2]) / (2.0 * h)
        vy = (v[2:, 1:-1] - v[:-2, 1:-1]) / (2.0 * h)
        b = rho * ((ux + vy) / dt - ux**2 - 2.0 * uy * vx - vy**2)

        def sweep(_, p):
            p = p.at[1:-1, 1:-1].set(
                0.25 * (p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1] - h**2 * b)
            )
            p = p.at[:, -1].set(p[:, -2])
            p = p.at[0, :].set(p[1, :])
            p = p.at[:, 0].set(p[:, 1])
            return p.at[-1, :].set(0.0)

        p = fori_loop(0, inner, sweep, p)
        u, v = (
            moved(u, u, v, p[1:-1, 2:] - p[1:-1, :-2]),
            moved(v, u, v, p[2:, 1:-1] - p[:-2, 1:-1]),
        )
        u = u.at[0, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0).at[-1, :].set(1.0)
        v = v.at[0, :].set(0.0).at[-1, :].set(0.0).at[:, 0].set(0.0).at[:, -1].set(0.0)
        return u, v, p

    u, v, p = fori_loop(0, steps, step, (u, v, p))
    return jnp.sum(u) + jnp.sum(v) + jnp.sum(p)

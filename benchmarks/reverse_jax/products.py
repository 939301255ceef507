"""Products of matrices and vectors, and statistics, for JAX."""

from __future__ import annotations

import jax.numpy as jnp
from jax.lax import fori_loop


def trmm(a, b, alpha):
    m, n = b.shape
    at = jnp.arange(m)

    def element(j, bi):
        b, i = bi
        return b.at[i, j].add(jnp.sum(jnp.where(at > i, a[:, i] * b[:, j], 0.0))), i

    b = fori_loop(0, m, lambda i, b: fori_loop(0, n, element, (b, i))[0], b)
    return jnp.sum(alpha * b)


def syrk(a, c, alpha, beta):
    n, m = a.shape
    at = jnp.arange(n)

    def row(i, c):
        c = c.at[i].set(jnp.where(at <= i, beta * c[i], c[i]))

        def rank_one(k, c):
            return c.at[i].add(jnp.where(at <= i, alpha * a[i, k] * a[:, k], 0.0))

        return fori_loop(0, m, rank_one, c)

    return jnp.sum(fori_loop(0, n, row, c))


def syr2k(a, b, c, alpha, beta):
    n, m = a.shape
    at = jnp.arange(n)

    def row(i, c):
        c = c.at[i].set(jnp.where(at <= i, beta * c[i], c[i]))

        def rank_two(k, c):
            made = alpha * b[i, k] * a[:, k] + alpha * a[i, k] * b[:, k]
            return c.at[i].add(jnp.where(at <= i, made, 0.0))

        return fori_loop(0, m, rank_two, c)

    return jnp.sum(fori_loop(0, n, row, c))


def symm(a, b, c, alpha, beta):
    m, n = c.shape
    at = jnp.arange(m)

    def row(i, c):
        def column(j, state):
            c, inner = state
            c = c.at[:, j].add(jnp.where(at < i, alpha * b[i, j] * a[i], 0.0))
            return c, inner.at[j].set(jnp.sum(jnp.where(at < i, b[:, j] * a[i], 0.0)))

        c, inner = fori_loop(0, n, column, (c, jnp.zeros(n)))
        return c.at[i].add(alpha * b[i] * a[i, i] + alpha * inner)

    return jnp.sum(fori_loop(0, m, row, beta * c))


def doitgen(a, c4):
    def plane(r, a):
        return fori_loop(0, a.shape[1], lambda q, a: a.at[r, q].set(a[r, q] @ c4), a)

    return jnp.sum(fori_loop(0, a.shape[0], plane, a))


def gemm(a, b, c, alpha, beta):
    return jnp.sum(alpha * a @ b + c * beta)


def k2mm(a, b, c, d, alpha, beta):
    return jnp.sum(alpha * a @ b @ c + beta * d)


def k3mm(a, b, c, d):
    return jnp.sum((a @ b) @ (c @ d))


def atax(a, x):
    return jnp.sum((a @ x) @ a)


def bicg(a, p, r):
    return jnp.sum(r @ a) + jnp.sum(a @ p)


def mvt(a, x1, x2, y1, y2):
    return jnp.sum(x1 + a @ y1) + jnp.sum(x2 + y2 @ a)


def gemver(a, u1, v1, u2, v2, x, y, w, z, alpha, beta):
    a = a + jnp.outer(u1, v1) + jnp.outer(u2, v2)
    x = x + beta * y @ a + z
    w = w + alpha * a @ x
    return jnp.sum(a) + jnp.sum(x) + jnp.sum(w)


def gesummv(a, b, x, alpha, beta):
    return jnp.sum(alpha * a @ x + beta * b @ x)


def covariance(data):
    n, m = data.shape
    at = jnp.arange(m)
    data = data - jnp.sum(data, axis=0) / n

    def row(i, out):
        made = jnp.where(at >= i, data[:, i] @ data / (n - 1.0), out[i])
        return out.at[i].set(made).at[:, i].set(jnp.where(at >= i, made, out[:, i]))

    return jnp.sum(fori_loop(0, m, row, jnp.zeros((m, m))))


def correlation(data, weights):
    n, m = data.shape
    at = jnp.arange(m)
    data = data - jnp.sum(data, axis=0) / n
    deviation = jnp.sqrt(jnp.sum(data**2, axis=0) / n)
    data = data / (jnp.sqrt(n) * jnp.where(deviation <= 0.1, 1.0, deviation))

    def row(i, out):
        made = jnp.where(at > i, data[:, i] @ data, out[i])
        return out.at[i].set(made).at[:, i].set(jnp.where(at > i, made, out[:, i]))

    return jnp.sum(weights * fori_loop(0, m - 1, row, jnp.eye(m)))


def floyd_warshall(path):
    def step(k, path):
        return jnp.minimum(path, path[:, k, None] + path[None, k])

    return jnp.sum(fori_loop(0, len(path), step, path))

"""Factorisations and solvers in loops, for JAX.

A loop that runs for j < i runs for all j and does nothing where j >= i: reverse mode has to have a
fixed trip count. A slice is a mask.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import cond, fori_loop


def cholesky(a):
    n = a.shape[0]
    at = jnp.arange(n)

    def element(a, i, j):
        s = jnp.sum(jnp.where(at < j, a[i] * a[j], 0.0))
        return a.at[i, j].set((a[i, j] - s) / a[j, j])

    def row(i, a):
        a = fori_loop(0, n, lambda j, a: cond(j < i, lambda a: element(a, i, j), lambda a: a, a), a)
        s = jnp.sum(jnp.where(at < i, a[i] * a[i], 0.0))
        return a.at[i, i].set(jnp.sqrt(a[i, i] - s))

    return jnp.sum(fori_loop(0, n, row, a))


def _factors(a):
    n = a.shape[0]
    at = jnp.arange(n)

    def left(a, i, j):
        s = jnp.sum(jnp.where(at < j, a[i] * a[:, j], 0.0))
        return a.at[i, j].set((a[i, j] - s) / a[j, j])

    def right(a, i, j):
        s = jnp.sum(jnp.where(at < i, a[i] * a[:, j], 0.0))
        return a.at[i, j].add(-s)

    def element(j, ai):
        a, i = ai
        return cond(j < i, left, right, a, i, j), i

    return fori_loop(0, n, lambda i, a: fori_loop(0, n, element, (a, i))[0], a)


def lu(a):
    return jnp.sum(_factors(a))


def ludcmp(a, b):
    n = len(b)
    a = _factors(a)

    def down(i, y):  # what is not solved yet is zero
        return y.at[i].set(b[i] - a[i] @ y)

    y = fori_loop(0, n, down, jnp.zeros_like(b))

    def up(k, x):
        i = n - 1 - k
        return x.at[i].set((y[i] - a[i] @ x) / a[i, i])

    x = fori_loop(0, n, up, jnp.zeros_like(b))
    return jnp.sum(x) + jnp.sum(y)


def trisolv(l, b):
    def step(i, x):  # what is not solved yet is zero
        return x.at[i].set((b[i] - l[i] @ x) / l[i, i])

    return jnp.sum(fori_loop(0, len(b), step, jnp.zeros_like(b)))


def durbin(r):
    at = jnp.arange(len(r))

    def step(k, state):
        y, alpha, beta = state
        before = at < k
        beta = beta * (1.0 - alpha * alpha)
        backwards = jnp.where(before, k - 1 - at, 0)
        alpha = -(r[k] + jnp.sum(jnp.where(before, r[backwards] * y, 0.0))) / beta
        y = y + jnp.where(before, alpha * y[backwards], 0.0)
        return y.at[k].set(alpha), alpha, beta

    start = jnp.zeros_like(r).at[0].set(-r[0])
    return jnp.sum(fori_loop(1, len(r), step, (start, -r[0], 1.0))[0])


def gramschmidt(a):
    n = a.shape[1]

    def column(k, state):
        a, q, r = state
        norm = jnp.sqrt(a[:, k] @ a[:, k])
        r = r.at[k, k].set(norm)
        q = q.at[:, k].set(a[:, k] / norm)

        def other(j, state):
            a, r = state
            r = r.at[k, j].set(q[:, k] @ a[:, j])
            return a.at[:, j].add(-q[:, k] * r[k, j]), r

        def after(j, state):
            return cond(j > k, lambda s: other(j, s), lambda s: s, state)

        a, r = fori_loop(0, n, after, (a, r))
        return a, q, r

    start = (a, jnp.zeros_like(a), jnp.zeros((n, n)))
    _, q, r = jax.lax.fori_loop(0, n, column, start)
    return jnp.sum(q) + jnp.sum(r)

"""The programs again, as JAX has to have them: ``fori_loop``, ``.at[]``, masks for slices.

Made by :func:`programs`, so that nobody imports JAX who does not ask for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def programs() -> dict[str, Callable[..., Any]]:  # noqa: C901  (many small functions)
    """The programs that are written here, by name."""
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
            window = jax.lax.dynamic_slice(a, (i - 1, j - 1), (3, 3))
            return a.at[i, j].set(jnp.sum(window) / 9.0), i

        def row(i, a):
            return fori_loop(1, n - 1, column, (a, i))[0]

        return jnp.sum(fori_loop(0, steps, lambda _, a: fori_loop(1, n - 1, row, a), a))

    def cholesky(a):
        n = a.shape[0]
        at = jnp.arange(n)

        def element(j, ai):
            a, i = ai
            s = jnp.sum(jnp.where(at < j, a[i] * a[j], 0.0))
            return a.at[i, j].set((a[i, j] - s) / a[j, j]), i

        def row(i, a):
            # the trip count is i: reverse mode has to have a fixed one
            def step(j, a):
                return jax.lax.cond(j < i, lambda a: element(j, (a, i))[0], lambda a: a, a)

            a = fori_loop(0, n, step, a)
            s = jnp.sum(jnp.where(at < i, a[i] * a[i], 0.0))
            return a.at[i, i].set(jnp.sqrt(a[i, i] - s))

        return jnp.sum(fori_loop(0, n, row, a))

    def trisolv(l, b):
        def step(i, x):  # what is not solved yet is zero
            return x.at[i].set((b[i] - l[i] @ x) / l[i, i])

        return jnp.sum(fori_loop(0, len(b), step, jnp.zeros_like(b)))

    def gemm(a, b, c, alpha, beta):
        return jnp.sum(alpha * a @ b + c * beta)

    def atax(a, x):
        return jnp.sum((a @ x) @ a)

    def bicg(a, p, r):
        return jnp.sum(r @ a) + jnp.sum(a @ p)

    def mvt(a, x1, x2, y1, y2):
        return jnp.sum(x1 + a @ y1) + jnp.sum(x2 + y2 @ a)

    def gesummv(a, b, x, alpha, beta):
        return jnp.sum(alpha * a @ x + beta * b @ x)

    def recurrence(a):
        def step(y, a):
            y = a * y + jnp.sin(y)
            return y, y

        return 1.0 + jnp.sum(scan(step, 1.0, a[1:])[1])

    def lorenz(u, steps):
        def step(_, u):
            x, y, z = u
            d = jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
            return u + 1e-4 * d

        return jnp.sum(fori_loop(0, steps, step, u))

    def softmax(x, weights):
        e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
        return jnp.sum(weights * (e / jnp.sum(e, axis=-1, keepdims=True)))

    def mlp(w1, b1, w2, b2, w3, b3, x, weights):
        x = jnp.maximum(x @ w1 + b1, 0.0)
        x = jnp.maximum(x @ w2 + b2, 0.0)
        return softmax(x @ w3 + b3, weights)

    return {name: f for name, f in locals().items() if getattr(f, "__module__", "") == __name__}

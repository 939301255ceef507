"""Recurrences, integrators, and programs of machine learning and statistics, for JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.lax import fori_loop, scan


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


def oscillator(p, steps):
    friction, strength, drive = p[0], p[1], p[2]
    h = 1e-4

    def force(t, x, v):
        return -friction * v - strength * jnp.sin(x) + drive * jnp.cos(0.7 * t)

    def step(k, xv):
        x, v = xv
        t = k * h
        k1 = force(t, x, v)
        v2 = v + 0.5 * h * k1
        k2 = force(t + 0.5 * h, x + 0.5 * h * v, v2)
        v3 = v + 0.5 * h * k2
        k3 = force(t + 0.5 * h, x + 0.5 * h * v2, v3)
        v4 = v + h * k3
        k4 = force(t + h, x + h * v3, v4)
        return x + h / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4), v + h / 6.0 * (
            k1 + 2.0 * k2 + 2.0 * k3 + k4
        )

    x, v = fori_loop(0, steps, step, (p[3], p[4]))
    return x + v


def n_body(x, v, m, steps):
    """All pairs at once; the program in NumPy takes them one by one."""

    def step(_, xv):
        x, v = xv
        d = x[:, None] - x[None]
        r2 = jnp.sum(d * d, axis=-1) + 0.01
        f = 0.001 / (r2 * jnp.sqrt(r2))
        v = v - jnp.einsum("ijc,ij,j->ic", d, f, m)
        return x + 0.001 * v, v

    x, _ = fori_loop(0, steps, step, (x, v))
    return jnp.sum(x * x)


def softmax(x, weights):
    e = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return jnp.sum(weights * (e / jnp.sum(e, axis=-1, keepdims=True)))


def mlp(w1, b1, w2, b2, w3, b3, x, weights):
    x = jnp.maximum(x @ w1 + b1, 0.0)
    x = jnp.maximum(x @ w2 + b2, 0.0)
    return softmax(x @ w3 + b3, weights)


def conv2d(x, kernel):
    """With ``lax.conv_general_dilated``, as everybody writes it."""
    made = jax.lax.conv_general_dilated(
        x, kernel, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jnp.sum(made)


def logsumexp(x):
    """Whole rows at once; the program in NumPy takes element by element."""
    largest = jnp.max(x, axis=1)
    return jnp.sum(largest + jnp.log(jnp.sum(jnp.exp(x - largest[:, None]), axis=1)))


def mixture(alphas, means, factors, x, gamma, m):
    """Whole arrays, as in ADBench's version for JAX."""
    count, d = x.shape
    components = len(alphas)
    sums = jnp.sum(factors[:, :d], axis=1)
    diagonals = jnp.exp(factors[:, :d])
    columns, rows = jnp.triu_indices(d, 1)
    lower = jnp.zeros((components, d, d)).at[:, rows, columns].set(factors[:, d:])
    centred = x[:, None] - means
    q = diagonals * centred + jnp.einsum("krc,nkc->nkr", lower, centred)
    terms = alphas + sums - 0.5 * jnp.sum(q * q, axis=-1)
    total = jnp.sum(jax.nn.logsumexp(terms, axis=1)) - count * jax.nn.logsumexp(alphas)
    squares = jnp.sum(diagonals**2) + jnp.sum(factors[:, d:] ** 2)
    prior = 0.5 * gamma * gamma * squares - m * jnp.sum(sums)
    freedom = d + m + 1
    constant = freedom * d * (jnp.log(gamma) - 0.5 * jnp.log(2.0))
    constant -= jax.scipy.special.multigammaln(0.5 * freedom, d)
    return total - 0.5 * count * d * jnp.log(2.0 * jnp.pi) + prior - components * constant


def lstm(weights, extra, state, sequence):
    width = sequence.shape[1]
    layers = len(state) // 2

    def step(state, pair):
        given, wanted = pair
        x = given * extra[0]
        made = []
        for layer in range(layers):
            w, b = weights[2 * layer].reshape(4, width), weights[2 * layer + 1].reshape(4, width)
            hidden, cell = state[2 * layer], state[2 * layer + 1]
            forget = jax.nn.sigmoid(x * w[0] + b[0])
            enter = jax.nn.sigmoid(hidden * w[1] + b[1])
            leave = jax.nn.sigmoid(x * w[2] + b[2])
            cell = cell * forget + enter * jnp.tanh(hidden * w[3] + b[3])
            x = leave * jnp.tanh(cell)
            made.extend([x, cell])
        guess = x * extra[1] + extra[2]
        guess = guess - jnp.log(jnp.sum(jnp.exp(guess)) + 2.0)
        return jnp.stack(made), jnp.sum(wanted * guess)

    _, losses = scan(step, state, (sequence[:-1], sequence[1:]))
    return -jnp.sum(losses) / ((len(sequence) - 1) * width)

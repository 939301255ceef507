"""Programs of machine learning and statistics."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.reverse_programs.problem import Arguments, Problem, normal


def softmax(x, weights):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.sum(weights * (e / np.sum(e, axis=-1, keepdims=True)))


def mlp(w1, b1, w2, b2, w3, b3, x, weights):
    x = np.maximum(x @ w1 + b1, 0.0)
    x = np.maximum(x @ w2 + b2, 0.0)
    x = x @ w3 + b3
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return np.sum(weights * (e / np.sum(e, axis=-1, keepdims=True)))


def conv2d(x, kernel):
    """Images ``(n, height, width, channels)``, a kernel ``(k, k, channels, out)``."""
    k = kernel.shape[0]
    height = x.shape[1] - k + 1
    width = x.shape[2] - k + 1
    out = np.empty((x.shape[0], height, width, kernel.shape[3]))
    for i in range(height):
        for j in range(width):
            view = x[:, i : i + k, j : j + k, :, np.newaxis]
            out[:, i, j, :] = np.sum(view * kernel[np.newaxis], axis=(1, 2, 3))
    return np.sum(out)


def logsumexp(x):
    """The sum over the rows of x of log(sum(exp(row))), by hand."""
    rows, columns = x.shape
    total = 0.0
    for i in range(rows):
        largest = x[i, 0]
        for j in range(1, columns):
            if x[i, j] > largest:  # noqa: PLR1730  (a branch, by hand)
                largest = x[i, j]
        s = 0.0
        for j in range(columns):
            s += math.exp(x[i, j] - largest)
        total += largest + math.log(s)
    return total


# -- the problems of ADBench, differentiated with respect to all parameters


def mixture(alphas, means, factors, x, gamma, m):
    """The log-likelihood of a Gaussian mixture under a Wishart prior.

    ``factors`` holds of each component the logarithms of its inverse factor's diagonal, and then
    what is below the diagonal, column by column.
    """
    count, d = x.shape
    components = len(alphas)
    diagonals = np.exp(factors[:, :d])
    sums = np.empty(components)
    for k in range(components):
        sums[k] = np.sum(factors[k, :d])
    terms = np.empty(components)
    q = np.empty(d)
    total = 0.0
    for i in range(count):
        for k in range(components):
            centred = x[i] - means[k]
            q[:] = diagonals[k] * centred
            at = d
            for c in range(d - 1):
                q[c + 1 :] += factors[k, at : at + d - 1 - c] * centred[c]
                at += d - 1 - c
            terms[k] = alphas[k] + sums[k] - 0.5 * (q @ q)
        largest = np.max(terms)
        total += largest + math.log(np.sum(np.exp(terms - largest)))
    largest = np.max(alphas)
    total -= count * (largest + math.log(np.sum(np.exp(alphas - largest))))
    prior = 0.0
    for k in range(components):
        squares = np.sum(diagonals[k] ** 2) + np.sum(factors[k, d:] ** 2)
        prior += 0.5 * gamma * gamma * squares - m * sums[k]
    freedom = d + m + 1
    constant = freedom * d * (math.log(gamma) - 0.5 * math.log(2.0))
    for j in range(1, d + 1):
        constant -= math.lgamma(0.5 * (freedom + 1 - j))
    constant -= 0.25 * d * (d - 1) * math.log(math.pi)
    return total - 0.5 * count * d * math.log(2.0 * math.pi) + prior - components * constant


def lstm(weights, extra, state, sequence):
    """The loss of a sequence that is predicted letter by letter; gates without mixing."""
    state = state.copy()
    width = sequence.shape[1]
    total = 0.0
    for t in range(len(sequence) - 1):
        x = sequence[t] * extra[0]
        for layer in range(len(state) // 2):
            w = weights[2 * layer]
            b = weights[2 * layer + 1]
            hidden = state[2 * layer]
            forget = 1.0 / (1.0 + np.exp(-(x * w[:width] + b[:width])))
            enter = 1.0 / (1.0 + np.exp(-(hidden * w[width : 2 * width] + b[width : 2 * width])))
            leave = 1.0 / (1.0 + np.exp(-(x * w[2 * width : 3 * width] + b[2 * width : 3 * width])))
            change = np.tanh(hidden * w[3 * width :] + b[3 * width :])
            state[2 * layer + 1] = state[2 * layer + 1] * forget + enter * change
            state[2 * layer] = leave * np.tanh(state[2 * layer + 1])
            x = state[2 * layer]
        guess = x * extra[1] + extra[2]
        guess = guess - math.log(np.sum(np.exp(guess)) + 2.0)
        total += np.sum(sequence[t + 1] * guess)
    return -total / ((len(sequence) - 1) * width)


# -- arguments


def _softmax(rows: int, columns: int) -> Arguments:
    return tuple(normal(2, rows, columns))


def _mlp(n: int, inputs: int, hidden: int, outputs: int) -> Arguments:
    return (
        normal(inputs, hidden) / math.sqrt(inputs), normal(hidden),
        normal(hidden, hidden) / math.sqrt(hidden), normal(hidden),
        normal(hidden, outputs), normal(outputs), normal(n, inputs), normal(n, outputs),
    )  # fmt: skip


def _conv2d(n: int, side: int, k: int, channels: int, out: int) -> Arguments:
    return normal(n, side, side, channels), normal(k, k, channels, out)


def _mixture(count: int, d: int, components: int) -> Arguments:
    return (
        normal(components), normal(components, d), 0.3 * normal(components, d * (d + 1) // 2),
        normal(count + 1, d)[1:], 1.0, 0,
    )  # fmt: skip


def _lstm(steps: int, width: int, layers: int) -> Arguments:
    return (
        normal(2 * layers, 4 * width), normal(3, width), normal(2 * layers, width),
        normal(steps, width),
    )  # fmt: skip


PROBLEMS = [
    Problem(softmax, _softmax, (4, 5), (500, 300), (4000, 500), interpreted=True),
    Problem(mlp, _mlp, (4, 3, 5, 6), (64, 100, 100, 10), (512, 400, 400, 10), interpreted=True),
    Problem(
        conv2d, _conv2d, (2, 6, 3, 2, 3), (2, 20, 5, 3, 8), (4, 50, 7, 3, 16), interpreted=True
    ),
    Problem(logsumexp, lambda m, n: (normal(m, n),), (4, 5), (500, 300), (4000, 1500)),
    Problem(mixture, _mixture, (7, 3, 4), (60, 10, 25), (1000, 10, 25), argnums=(0, 1, 2)),
    Problem(lstm, _lstm, (5, 3, 2), (100, 14, 2), (1024, 14, 2), argnums=(0, 1), interpreted=True),
]

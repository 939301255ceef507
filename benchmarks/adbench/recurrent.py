"""``lstm``: the loss of a network of long short-term memory that predicts a text letter by letter.

As in ADBench, the gates do not mix letters: each has a weight and a bias for each letter.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.adbench.problem import Arguments, Problem
from benchmarks.reverse_programs.learning import lstm as arrays


def loops(weights, extra, start, sequence):
    state = start.copy()
    width = sequence.shape[1]
    x = np.zeros(width)
    guess = np.zeros(width)
    total = 0.0
    for t in range(len(sequence) - 1):
        for i in range(width):
            x[i] = sequence[t, i] * extra[0, i]
        for layer in range(len(state) // 2):
            for i in range(width):
                j, k, n = i + width, i + 2 * width, i + 3 * width
                hidden = state[2 * layer, i]
                forget = _gate(x[i] * weights[2 * layer, i] + weights[2 * layer + 1, i])
                enter = _gate(hidden * weights[2 * layer, j] + weights[2 * layer + 1, j])
                leave = _gate(x[i] * weights[2 * layer, k] + weights[2 * layer + 1, k])
                change = math.tanh(hidden * weights[2 * layer, n] + weights[2 * layer + 1, n])
                state[2 * layer + 1, i] = state[2 * layer + 1, i] * forget + enter * change
                state[2 * layer, i] = leave * math.tanh(state[2 * layer + 1, i])
                x[i] = state[2 * layer, i]
        sum_of_all = 2.0
        for i in range(width):
            guess[i] = x[i] * extra[1, i] + extra[2, i]
            sum_of_all += math.exp(guess[i])
        for i in range(width):
            total += sequence[t + 1, i] * (guess[i] - math.log(sum_of_all))
    return -total / ((len(sequence) - 1) * width)


def _gate(x):
    return 1.0 / (1.0 + math.exp(-x))


def for_jax(jax: Any) -> Any:
    """The same for JAX, its steps by ``scan``."""
    jnp = jax.numpy

    def value(weights, extra, start, sequence):
        width = sequence.shape[1]

        def step(state, letters):
            now, following = letters
            x = now * extra[0]
            rows = list(state)
            for layer in range(len(rows) // 2):
                w, b, hidden = weights[2 * layer], weights[2 * layer + 1], rows[2 * layer]
                forget = jax.nn.sigmoid(x * w[:width] + b[:width])
                enter = jax.nn.sigmoid(hidden * w[width : 2 * width] + b[width : 2 * width])
                leave = jax.nn.sigmoid(x * w[2 * width : 3 * width] + b[2 * width : 3 * width])
                change = jnp.tanh(hidden * w[3 * width :] + b[3 * width :])
                rows[2 * layer + 1] = rows[2 * layer + 1] * forget + enter * change
                x = rows[2 * layer] = leave * jnp.tanh(rows[2 * layer + 1])
            guess = x * extra[1] + extra[2]
            guess = guess - jnp.log(jnp.sum(jnp.exp(guess)) + 2.0)
            return jnp.stack(rows), jnp.sum(following * guess)

        _, terms = jax.lax.scan(step, start, (sequence[:-1], sequence[1:]))
        return -jnp.sum(terms) / ((len(sequence) - 1) * width)

    return value


def for_torch(torch: Any) -> Any:
    """The same for PyTorch."""

    def value(weights, extra, start, sequence):
        width = sequence.shape[1]
        rows = list(start)
        total = 0.0
        for t in range(len(sequence) - 1):
            x = sequence[t] * extra[0]
            for layer in range(len(rows) // 2):
                w, b, hidden = weights[2 * layer], weights[2 * layer + 1], rows[2 * layer]
                forget = torch.sigmoid(x * w[:width] + b[:width])
                enter = torch.sigmoid(hidden * w[width : 2 * width] + b[width : 2 * width])
                leave = torch.sigmoid(x * w[2 * width : 3 * width] + b[2 * width : 3 * width])
                change = torch.tanh(hidden * w[3 * width :] + b[3 * width :])
                rows[2 * layer + 1] = rows[2 * layer + 1] * forget + enter * change
                x = rows[2 * layer] = leave * torch.tanh(rows[2 * layer + 1])
            guess = x * extra[1] + extra[2]
            guess = guess - torch.log(torch.sum(torch.exp(guess)) + 2.0)
            total = total + torch.sum(sequence[t + 1] * guess)
        return -total / ((len(sequence) - 1) * width)

    return value


def make(steps: int, width: int, layers: int) -> Arguments:
    """Random weights, and letters one of which is set."""
    rng = np.random.default_rng(3)
    letters = np.eye(width)[rng.integers(0, width, steps)]
    return (
        rng.normal(size=(2 * layers, 4 * width)), rng.normal(size=(3, width)),
        rng.normal(size=(2 * layers, width)), letters,
    )  # fmt: skip


PROBLEM = Problem(
    "lstm", arrays, loops, make, (5, 3, 2), (1024, 14, 2), (0, 1), 2.5, for_jax, for_torch
)

"""Computations as scientists write them, each with points that go different ways through it."""

import itertools
import math
from dataclasses import dataclass

import numpy as np


def kalman_smoother(log_noise, seen):
    """A filter with what it keeps, and the smoother that reads it backwards."""
    q, r = np.exp(log_noise)
    step, look = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    n = len(seen)
    means, covariances = np.empty((n, 2)), np.empty((n, 2, 2))
    m, p, likelihood = np.zeros(2), 10 * np.eye(2), 0.0
    for t, y in enumerate(seen):
        m, p = step @ m, step @ p @ step.T + q * np.eye(2)
        s = (look @ p @ look.T).item() + r
        gain, error = p @ look.T / s, y - (look @ m)[0]
        likelihood -= 0.5 * (np.log(s) + error**2 / s)
        m = m + gain[:, 0] * error
        p = p - gain @ look @ p
        means[t], covariances[t] = m, p
    for t in reversed(range(n - 1)):
        ahead = step @ covariances[t] @ step.T + q * np.eye(2)
        back = np.linalg.solve(ahead, step @ covariances[t]).T
        means[t] += back @ (means[t + 1] - step @ means[t])
    return likelihood + np.sum(means[:, 0] ** 2)


def transfer(p, omega):
    """As many frequencies as parameters, in one of the calls."""
    m, c, k = p
    response = 1 / (k - m * omega**2 + 1j * omega * c)
    return np.sum(np.log10(np.abs(response))) + np.unwrap(np.angle(response))[-1]


def pivoted_solve(a, b):
    """Gaussian elimination that swaps rows, and a right-hand side that carries no derivative."""
    a, n, order = a.copy(), len(b), np.arange(len(b))
    for k in range(n - 1):
        p = k + np.argmax(np.abs(a[k:, k]))
        if p != k:
            a[[k, p]] = a[[p, k]]
            order[[k, p]] = order[[p, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    x = b[order]
    for i in range(1, n):
        x[i] -= a[i, :i] @ x[:i]
    for i in reversed(range(n)):
        x[i] = (x[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x


def bracketed_root(p):
    """Bisection, and Newton's method that returns from a loop without an end."""

    def f(x):
        return x**3 + p[0] * x - 2 - p[1]

    low, high = 0.0, 3.0
    for _ in range(8):
        middle = 0.5 * (low + high)
        if f(low) * f(middle) <= 0:
            high = middle
        else:
            low = middle
    x = 0.5 * (low + high)
    while True:
        dx = f(x) / (3 * x * x + p[0])
        x = x - dx
        if abs(dx) < 1e-13:
            return x


def first_crossings(p, levels):
    """A loop without an end inside of another one."""

    def crossing(level):
        x = 1.0
        while True:
            x = x - (p[0] * x + math.sin(x) - level) / (p[0] + math.cos(x))
            if abs(p[0] * x + math.sin(x) - level) < 1e-12:
                return x * p[1]

    return np.array([crossing(level) for level in levels]).sum() + crossing(p[1])


def simpson(p):
    """Adaptive quadrature: the depth at most is a number in the text."""

    def f(x):
        return np.exp(-p[0] * x) * np.sin(p[1] * x * x)

    def part(a, b, ends, whole, eps, depth):
        m = 0.5 * (a + b)
        left, right = f(0.5 * (a + m)), f(0.5 * (m + b))
        first = (m - a) / 6 * (ends[0] + 4 * left + ends[1])
        second = (b - m) / 6 * (ends[1] + 4 * right + ends[2])
        delta = first + second - whole
        if depth <= 0 or abs(delta) <= 15 * eps:
            return first + second + delta / 15
        lower = part(a, m, (ends[0], left, ends[1]), first, eps / 2, depth - 1)
        return lower + part(m, b, (ends[1], right, ends[2]), second, eps / 2, depth - 1)

    ends = (f(0.0), f(1.0), f(2.0))
    return part(0.0, 2.0, ends, (ends[0] + 4 * ends[1] + ends[2]) / 3, 1e-3, 12)


def warped(pose, image):
    """An image turned and moved, by the four pixels around each point."""
    h, w = image.shape
    c, s = np.cos(pose[0]), np.sin(pose[0])
    yy, xx = np.mgrid[0:h, 0:w].astype(float)
    u = c * (xx - w / 2) - s * (yy - h / 2) + w / 2 + pose[1]
    v = s * (xx - w / 2) + c * (yy - h / 2) + h / 2 + pose[2]
    inside = (u >= 0) & (u < w - 1) & (v >= 0) & (v < h - 1)
    i = np.clip(np.floor(v), 0, h - 2).astype(int)
    j = np.clip(np.floor(u), 0, w - 2).astype(int)
    a, b = u - j, v - i
    value = (1 - b) * ((1 - a) * image[i, j] + a * image[i, j + 1])
    value += b * ((1 - a) * image[i + 1, j] + a * image[i + 1, j + 1])
    value[~inside] = 0.0
    return np.sum(value**2)


def lower_envelope(f):
    """The distance transform of a row: parabolas that are thrown out again."""
    n = len(f)
    d, v, z = np.zeros(n), np.zeros(n, dtype=int), np.zeros(n + 1)
    k, z[0], z[1] = 0, -np.inf, np.inf
    for q in range(1, n):
        s = ((f[q] + q * q) - (f[v[k]] + v[k] ** 2)) / (2 * q - 2 * v[k])
        while s <= z[k]:
            k -= 1
            s = ((f[q] + q * q) - (f[v[k]] + v[k] ** 2)) / (2 * q - 2 * v[k])
        k += 1
        v[k], z[k], z[k + 1] = q, s, np.inf
    k = 0
    for q in range(n):
        while z[k + 1] < q:
            k += 1
        d[q] = (q - v[k]) ** 2 + f[v[k]]
    return d


def ranked_pages(weights):
    """Power iteration, counted by an iterator without an end."""
    links = weights / weights.sum(axis=1, keepdims=True)
    rank = np.full(len(weights), 1 / len(weights))
    for it in itertools.count():
        new = 0.6 * rank @ links + 0.4 / len(weights)
        if np.abs(new - rank).sum() < 1e-13 or it > 200:
            break
        rank = new
    return new


@dataclass
class Layer:
    """A layer of a wall."""

    thickness: float
    conductivity: float
    name: str = "wall"


def heat_loss(layers, inside, outside):
    """Objects with numbers and texts, in a list."""
    resistance = 0.17
    for layer in layers:
        k = layer.conductivity
        if layer.name == "insulation":
            k *= 1 + 0.1 * layer.thickness
        resistance += layer.thickness / k
    return (inside - outside) / resistance

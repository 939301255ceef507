"""The objectives of the reversible programs as one writes them for Numba."""

from __future__ import annotations

import math

import numpy as np


def bundle_adjustment(cameras, points, weights, pairs, features):
    """Where cameras see points, less where they were seen, weighted."""
    errors = np.empty((len(pairs), 2))
    for k in range(len(pairs)):
        camera, point = cameras[pairs[k, 0]], points[pairs[k, 1]]
        x0, x1, x2 = point[0] - camera[3], point[1] - camera[4], point[2] - camera[5]
        square = camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2
        if square > 0.0:
            angle = math.sqrt(square)
            c, s = math.cos(angle), math.sin(angle)
            w0, w1, w2 = camera[0] / angle, camera[1] / angle, camera[2] / angle
            along = (w0 * x0 + w1 * x1 + w2 * x2) * (1.0 - c)
            p0 = x0 * c + (w1 * x2 - w2 * x1) * s + w0 * along
            p1 = x1 * c + (w2 * x0 - w0 * x2) * s + w1 * along
            p2 = x2 * c + (w0 * x1 - w1 * x0) * s + w2 * along
        else:
            p0 = x0 + camera[1] * x2 - camera[2] * x1
            p1 = x1 + camera[2] * x0 - camera[0] * x2
            p2 = x2 + camera[0] * x1 - camera[1] * x0
        u, v = p0 / p2, p1 / p2
        r = u * u + v * v
        stretch = (1.0 + camera[9] * r + camera[10] * r * r) * camera[6]
        errors[k, 0] = weights[k] * (u * stretch + camera[7] - features[k, 0])
        errors[k, 1] = weights[k] * (v * stretch + camera[8] - features[k, 1])
    return errors


def sparse_dot(a, rows_a, starts_a, b, rows_b, starts_b):
    """The sum of the products of two sparse matrices' entries."""
    s = 0.0
    for j in range(len(starts_a) - 1):
        p, q = starts_a[j], starts_b[j]
        while p < starts_a[j + 1] and q < starts_b[j + 1]:
            if rows_a[p] == rows_b[q]:
                s += a[p] * b[q]
                p += 1
                q += 1
            elif rows_a[p] < rows_b[q]:
                p += 1
            else:
                q += 1
    return s


def sparse_product(y, data, rows, starts, x):
    """A sparse matrix times a vector."""
    y = y.copy()
    for j in range(len(x)):
        for p in range(starts[j], starts[j + 1]):
            y[rows[p]] += data[p] * x[j]
    return y


def embedding(x, edges, others):
    """The loss of a layout."""
    n, m = len(edges), len(others)
    near, far = np.zeros(n), np.zeros(m)
    for e in range(n):
        for k in range(x.shape[1]):
            near[e] += (x[edges[e, 0], k] - x[edges[e, 1], k]) ** 2
    for e in range(m):
        for k in range(x.shape[1]):
            far[e] += (x[others[e, 0], k] - x[others[e, 1], k]) ** 2
    mean_near = mean_far = 0.0
    for e in range(n):
        mean_near += near[e] / n
    for e in range(m):
        mean_far += far[e] / m
    loss = np.exp(mean_near - mean_far + 0.1)
    for e in range(n):
        loss += (near[e] - mean_near) ** 2 / (n - 1)
    for e in range(m):
        loss += (far[e] - mean_far) ** 2 / (m - 1)
    return loss


def mixture(alphas, means, factors, x):  # noqa: C901, PLR0912  (one function, as its users write it)
    """The log-likelihood of a mixture."""
    count, d = means.shape
    logs, diagonal = np.zeros(count), np.zeros((count, d))
    terms, away, scaled = np.zeros(count), np.zeros(d), np.zeros(d)
    for k in range(count):
        for j in range(d):
            logs[k] += factors[k, j]
            diagonal[k, j] = np.exp(factors[k, j])
    loss = 0.0
    for i in range(len(x)):
        for k in range(count):
            for a in range(d):
                away[a] = x[i, a] - means[k, a]
            for a in range(d):
                scaled[a] = diagonal[k, a] * away[a]
            for b in range(d):
                before = d + b * (2 * d - b - 1) // 2 - b - 1
                for a in range(b + 1, d):
                    scaled[a] += factors[k, before + a] * away[b]
            square = 0.0
            for a in range(d):
                square += scaled[a] ** 2
            terms[k] = alphas[k] + logs[k] - 0.5 * square
        largest = np.max(terms)
        total = 0.0
        for k in range(count):
            total += np.exp(terms[k] - largest)
        loss += np.log(total) + largest
    largest = np.max(alphas)
    loss -= len(x) * (np.log(np.sum(np.exp(alphas - largest))) + largest)
    for k in range(count):
        for j in range(d):
            loss -= 0.5 * diagonal[k, j] ** 2
        for j in range(d, factors.shape[1]):
            loss -= 0.5 * factors[k, j] ** 2
    return loss

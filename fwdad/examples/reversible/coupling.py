"""A small invertible network of additive coupling layers, and the density that it gives points.

Dinh, Krueger and Bengio, "NICE: non-linear independent components estimation" (2014,
arXiv:1410.8516), equations 8 and 10.
"""

from __future__ import annotations

import numpy as np

from fwdad.reversible import reversible


@reversible
def layers(z, inner, offsets, outer):
    """Move points through the layers; each moves one coordinate by a function of the other.

    Parameters
    ----------
    z : array, shape (points, 2)
        Updated.
    inner, offsets, outer : array, shape (layers, hidden)
        The weights.
    """
    for k in range(len(inner)):
        if k % 2 == 0:
            z[:, 1] += np.tanh(np.outer(z[:, 0], inner[k]) + offsets[k]) @ outer[k]
        else:
            z[:, 0] += np.tanh(np.outer(z[:, 1], inner[k]) + offsets[k]) @ outer[k]


@reversible
def negative_log_density(loss, z, inner, offsets, outer, scales):
    """Add minus the mean log-density of points, up to a constant.

    Points are moved to where they are normally distributed, after a scaling by ``exp(scales)``.
    """
    layers(z, inner, offsets, outer)
    loss += np.sum((z * np.exp(scales)) ** 2) / (2 * len(z)) - np.sum(scales)


def two_moons(count, rng):
    """Points on two interleaved half circles, with noise.

    Parameters
    ----------
    count : int
        How many.
    rng : numpy.random.Generator
        Draws them.
    """
    angle = rng.uniform(0.0, np.pi, count)
    upper = np.arange(count) % 2 == 0
    x = np.where(upper, np.cos(angle), 1.0 - np.cos(angle))
    y = np.where(upper, np.sin(angle), 0.5 - np.sin(angle))
    return np.stack([x - 0.5, y - 0.25], axis=1) + rng.normal(0.0, 0.08, (count, 2))

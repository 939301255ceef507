"""Bundle adjustment as in ADBench: the residuals of all observations, and their sparse Jacobian.

An observation has 15 parameters: a camera's 11 (rotation 3, centre 3, focal length, principal
point 2, distortion 2), a point's 3 and a weight. The Jacobian of its two residuals is one block of
``(2, 15)``; all blocks one after the other are the data of a matrix in compressed rows, whose
structure is known beforehand.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import fwdad
from benchmarks.reverse_programs.problem import Arguments, Problem, normal

PARAMETERS = 15


def reprojection(z, feature):
    """Where a camera sees a point, less where the point was seen; weighted."""
    r0, r1, r2 = z[0], z[1], z[2]
    x0, x1, x2 = z[11] - z[3], z[12] - z[4], z[13] - z[5]
    square = r0 * r0 + r1 * r1 + r2 * r2
    if square != 0.0:
        theta = math.sqrt(square)
        cosine, sine = math.cos(theta), math.sin(theta)
        w0, w1, w2 = r0 / theta, r1 / theta, r2 / theta
        along = (w0 * x0 + w1 * x1 + w2 * x2) * (1.0 - cosine)
        p0 = x0 * cosine + (w1 * x2 - w2 * x1) * sine + w0 * along
        p1 = x1 * cosine + (w2 * x0 - w0 * x2) * sine + w1 * along
        p2 = x2 * cosine + (w0 * x1 - w1 * x0) * sine + w2 * along
    else:
        p0 = x0 + r1 * x2 - r2 * x1
        p1 = x1 + r2 * x0 - r0 * x2
        p2 = x2 + r0 * x1 - r1 * x0
    u, v = p0 / p2, p1 / p2
    radius = u * u + v * v
    stretch = 1.0 + z[9] * radius + z[10] * radius * radius
    out = np.empty(2)
    out[0] = z[14] * (u * stretch * z[6] + z[7] - feature[0])
    out[1] = z[14] * (v * stretch * z[6] + z[8] - feature[1])
    return out


def bundle_adjustment(cameras, points, weights, seen, features):
    """Two residuals of each observation."""
    out = np.empty((len(seen), 2))
    z = np.empty(15)
    for o in range(len(seen)):
        z[:11] = cameras[seen[o, 0]]
        z[11:14] = points[seen[o, 1]]
        z[14] = weights[o]
        out[o] = reprojection(z, features[o])
    return out


def jacobian(cameras, points, weights, seen, features):
    """The residuals and the blocks of their Jacobian."""
    out = np.empty((len(seen), 2))
    blocks = np.empty((len(seen), 2, 15))
    z = np.empty(15)
    for o in range(len(seen)):
        z[:11] = cameras[seen[o, 0]]
        z[11:14] = points[seen[o, 1]]
        z[14] = weights[o]
        out[o], blocks[o] = fwdad.value_and_jacobian(reprojection, z, args=(features[o],))
    return out, blocks


def times(blocks: Any, directions: Any, args: Arguments) -> np.ndarray:
    """The sparse Jacobian times a direction of cameras, points and weights."""
    cameras, points, weights, seen, _ = args
    first_point = cameras.size
    first_weight = first_point + points.size
    columns = np.concatenate(
        [
            11 * seen[:, :1] + np.arange(11),
            first_point + 3 * seen[:, 1:] + np.arange(3),
            first_weight + np.arange(len(seen))[:, np.newaxis],
        ],
        axis=1,
    )
    indices = np.repeat(columns, 2, axis=0).reshape(-1)
    starts = PARAMETERS * np.arange(2 * len(seen) + 1)
    shape = (2 * len(seen), first_weight + weights.size)
    matrix = csr_array((np.asarray(blocks).reshape(-1), indices, starts), shape=shape)
    return (matrix @ np.concatenate([d.reshape(-1) for d in directions])).reshape(-1, 2)


def arguments(cameras: int, points: int, observations: int) -> Arguments:
    rng = np.random.default_rng(3)
    seen = np.stack(
        [rng.integers(0, cameras, observations), rng.integers(0, points, observations)], axis=1
    )
    held = 0.1 * normal(cameras, 11)
    held[:, 5] -= 5.0
    held[:, 6] += 2.0
    return held, normal(points, 3), 1.0 + 0.1 * normal(observations), seen, normal(observations, 2)


PROBLEMS = [
    Problem(
        bundle_adjustment,
        arguments,
        (2, 4, 7),
        (49, 1000, 4000),
        (49, 7776, 31843),
        argnums=(0, 1, 2),
        derivative=jacobian,
        times=times,
    )
]

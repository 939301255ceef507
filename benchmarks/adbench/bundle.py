"""``ba``: the residuals of bundle adjustment, and the blocks of their sparse Jacobian.

An observation has 15 parameters: a camera's 11 (rotation 3, centre 3, focal length, principal
point 2, distortion 2), a point's 3 and a weight. Its two residuals have a Jacobian of (2, 15).
"""

from __future__ import annotations

from typing import Any

import numpy as np

import fwdad
from benchmarks.adbench.problem import Problem
from benchmarks.reverse_programs.bundle import arguments as make
from benchmarks.reverse_programs.bundle import reprojection


def _reprojection(z, feature):
    """In arrays of three."""
    rotation, x = z[0:3], z[11:14] - z[3:6]
    square = rotation @ rotation
    if square != 0.0:
        theta = np.sqrt(square)
        axis = rotation / theta
        cosine, sine = np.cos(theta), np.sin(theta)
        x = x * cosine + np.cross(axis, x) * sine + axis * ((axis @ x) * (1.0 - cosine))
    else:
        x = x + np.cross(rotation, x)
    uv = x[0:2] / x[2]
    radius = uv @ uv
    uv = uv * (1.0 + z[9] * radius + z[10] * radius * radius)
    return z[14] * (uv * z[6] + z[7:9] - feature)


def _all(residual):
    def residuals(cameras, points, weights, seen, features):
        out = np.empty((len(seen), 2))
        z = np.empty(15)
        for o in range(len(seen)):
            z[:11] = cameras[seen[o, 0]]
            z[11:14] = points[seen[o, 1]]
            z[14] = weights[o]
            out[o] = residual(z, features[o])
        return out

    def blocks(cameras, points, weights, seen, features):
        out = np.empty((len(seen), 2, 15))
        z = np.empty(15)
        for o in range(len(seen)):
            z[:11] = cameras[seen[o, 0]]
            z[11:14] = points[seen[o, 1]]
            z[14] = weights[o]
            out[o] = fwdad.jacobian(residual, z, args=(features[o],))
        return out

    return residuals, blocks


arrays, blocks_of_arrays = _all(_reprojection)
loops, blocks_of_loops = _all(reprojection)


def for_jax(jax: Any) -> Any:
    """The blocks for JAX: rows, of all observations at once."""
    jnp = jax.numpy

    def residual(z, feature):
        rotation, x = z[0:3], z[11:14] - z[3:6]
        square = rotation @ rotation
        safe = jnp.where(square != 0.0, square, 1.0)
        theta = jnp.sqrt(safe)
        axis = rotation / theta
        cosine, sine = jnp.cos(theta), jnp.sin(theta)
        turned = x * cosine + jnp.cross(axis, x) * sine + axis * ((axis @ x) * (1.0 - cosine))
        x = jnp.where(square != 0.0, turned, x + jnp.cross(rotation, x))
        uv = x[0:2] / x[2]
        radius = uv @ uv
        uv = uv * (1.0 + z[9] * radius + z[10] * radius * radius)
        return z[14] * (uv * z[6] + z[7:9] - feature)

    def blocks(cameras, points, weights, seen, features):
        z = jnp.concatenate((cameras[seen[:, 0]], points[seen[:, 1]], weights[:, None]), axis=1)
        return jax.vmap(jax.jacrev(residual))(z, features)

    return blocks


def for_torch(torch: Any) -> Any:
    """The blocks for PyTorch."""

    def residual(z, feature):
        rotation, x = z[0:3], z[11:14] - z[3:6]
        theta = torch.sqrt(rotation @ rotation)
        axis = rotation / theta
        cosine, sine = torch.cos(theta), torch.sin(theta)
        turn = torch.linalg.cross(axis, x)
        x = x * cosine + turn * sine + axis * ((axis @ x) * (1.0 - cosine))
        uv = x[0:2] / x[2]
        radius = uv @ uv
        uv = uv * (1.0 + z[9] * radius + z[10] * radius * radius)
        return z[14] * (uv * z[6] + z[7:9] - feature)

    def blocks(cameras, points, weights, seen, features):
        z = torch.cat((cameras[seen[:, 0]], points[seen[:, 1]], weights[:, None]), dim=1)
        return torch.vmap(torch.func.jacrev(residual))(z, features)

    return blocks


PROBLEM = Problem(
    "ba", arrays, loops, make, (2, 4, 7), (49, 7776, 31843), (0, 1, 2), 4.5, for_jax, for_torch,
    derivatives=(blocks_of_arrays, blocks_of_loops),
)  # fmt: skip

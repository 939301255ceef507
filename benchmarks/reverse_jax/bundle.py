"""Bundle adjustment, for JAX: all observations at once; the Jacobian's blocks by reverse mode."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def reprojection(z, feature):
    rotation = z[:3]
    x = z[11:14] - z[3:6]
    square = rotation @ rotation
    theta = jnp.sqrt(jnp.where(square == 0.0, 1.0, square))
    cosine, sine, w = jnp.cos(theta), jnp.sin(theta), rotation / theta
    turned = x * cosine + jnp.cross(w, x) * sine + w * (w @ x) * (1.0 - cosine)
    p = jnp.where(square == 0.0, x + jnp.cross(rotation, x), turned)
    u = p[:2] / p[2]
    radius = u @ u
    stretch = 1.0 + z[9] * radius + z[10] * radius * radius
    return z[14] * (u * stretch * z[6] + z[7:9] - feature)


def bundle_adjustment(cameras, points, weights, seen, features):
    z = jnp.concatenate([cameras[seen[:, 0]], points[seen[:, 1]], weights[:, None]], axis=1)

    def both(z, feature):
        y, pullback = jax.vjp(lambda z: reprojection(z, feature), z)
        return y, jax.vmap(pullback)(jnp.eye(2))[0]

    return jax.vmap(both)(z, features)

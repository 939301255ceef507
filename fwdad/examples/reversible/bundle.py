"""Bundle adjustment: where cameras see points, less where the points were seen.

Šrajer, Kukelova and Fitzgibbon, "A benchmark of selected algorithmic differentiation tools on some
problems in computer vision and machine learning" (2018, doi:10.1080/10556788.2018.1435651),
section 4.2. A camera has 11 numbers: rotation (an axis times an angle, 3), centre (3), focal
length, principal point (2), radial distortion (2).
"""

from __future__ import annotations

import numpy as np

import fwdad
from fwdad.reversible import ancilla, compute, copy_out, reversible


@reversible
def turn(out, axis, x):
    """Add ``x``, turned about ``axis`` by the angle that is its length (Rodrigues), to ``out``.

    Parameters
    ----------
    out : array, shape (3,)
        Added to.
    axis, x : array, shape (3,)
        Only read.
    """
    if axis[0] ** 2 + axis[1] ** 2 + axis[2] ** 2 > 0.0:
        with compute():
            square = ancilla(0.0)
            angle = ancilla(0.0)
            cosine = ancilla(0.0)
            sine = ancilla(0.0)
            along = ancilla(0.0)
            square += axis[0] ** 2 + axis[1] ** 2 + axis[2] ** 2
            angle += np.sqrt(square)
            cosine += np.cos(angle)
            sine += np.sin(angle) / angle
            along += (axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2]) * (1.0 - cosine) / square
            with copy_out():
                add_scaled(out, cosine, x)
                add_scaled(out, along, axis)
                add_cross(out, sine, axis, x)
    else:
        add_scaled(out, 1.0, x)
        add_cross(out, 1.0, axis, x)


@reversible
def add_scaled(out, factor, a):
    """Add a multiple of a vector."""
    out[0] += factor * a[0]
    out[1] += factor * a[1]
    out[2] += factor * a[2]


@reversible
def add_cross(out, factor, a, b):
    """Add a multiple of a cross product."""
    out[0] += factor * (a[1] * b[2] - a[2] * b[1])
    out[1] += factor * (a[2] * b[0] - a[0] * b[2])
    out[2] += factor * (a[0] * b[1] - a[1] * b[0])


@reversible
def reprojection(error, camera, point, weight, feature):
    """Add the weighted difference of where a camera sees a point and ``feature`` to ``error``.

    Parameters
    ----------
    error : array, shape (2,)
        Added to.
    camera : array, shape (11,)
        See above.
    point : array, shape (3,)
        In space.
    weight : float
        Of this observation.
    feature : array, shape (2,)
        Where the point was seen.
    """
    with compute():
        away = ancilla(np.zeros(3))
        seen = ancilla(np.zeros(3))
        away[0] += point[0] - camera[3]
        away[1] += point[1] - camera[4]
        away[2] += point[2] - camera[5]
        turn(seen, camera[:3], away)
        u = ancilla(0.0)
        v = ancilla(0.0)
        radius = ancilla(0.0)
        stretch = ancilla(0.0)
        u += seen[0] / seen[2]
        v += seen[1] / seen[2]
        radius += u * u + v * v
        stretch += 1.0 + radius * (camera[9] + camera[10] * radius)
        with copy_out():
            error[0] += weight * (u * stretch * camera[6] + camera[7] - feature[0])
            error[1] += weight * (v * stretch * camera[6] + camera[8] - feature[1])


@reversible
def bundle_adjustment(errors, cameras, points, weights, pairs, features):
    """Add the errors of all observations.

    Parameters
    ----------
    errors : array, shape (observations, 2)
        Added to.
    cameras, points : array, shape (cameras, 11), (points, 3)
        What is looked for.
    weights : array, shape (observations,)
        Of the observations.
    pairs : int array, shape (observations, 2)
        Which camera, which point.
    features : array, shape (observations, 2)
        Where the points were seen.
    """
    for k in range(len(pairs)):
        reprojection(errors[k], cameras[pairs[k, 0]], points[pairs[k, 1]], weights[k], features[k])


def jacobian(cameras, points, weights, pairs, features, one=reprojection):
    """The blocks of the Jacobian of all errors; two cotangents travel back together.

    Parameters
    ----------
    cameras, points, weights, pairs, features
        See :func:`bundle_adjustment`.
    one : Reversible
        :func:`reprojection`, or the same without checks.

    Returns
    -------
    array, shape (observations, 2, 15)
        By the camera, the point and the weight.
    """

    def pulled(bar, camera, point, weight, feature):
        def weighted(camera, point, weight):
            error = one(np.zeros(2), camera, point, weight, feature)[0]
            return bar[0] * error[0] + bar[1] * error[1]

        return fwdad.grad(weighted, argnums=(0, 1, 2))(camera, point, weight)

    rows = fwdad.jacfwd(pulled)
    blocks = np.empty((len(pairs), 2, 15))
    camera, point = np.empty(11), np.empty(3)
    for k in range(len(pairs)):
        camera[:], point[:] = cameras[pairs[k, 0]], points[pairs[k, 1]]
        by_camera, by_point, by_weight = rows(np.zeros(2), camera, point, weights[k], features[k])
        blocks[k, :, :11] = by_camera.T
        blocks[k, :, 11:14] = by_point.T
        blocks[k, :, 14] = by_weight
    return blocks


def observations(cameras, points, count, rng):
    """Cameras, points, weights, pairs and features drawn at random, all points in view.

    Parameters
    ----------
    cameras, points, count : int
        How many, and how many observations.
    rng : numpy.random.Generator
        Draws them.
    """
    held = 0.1 * rng.normal(size=(cameras, 11))
    held[:, 5] -= 5.0
    held[:, 6] += 2.0
    pairs = np.stack([rng.integers(0, cameras, count), rng.integers(0, points, count)], axis=1)
    weights = 1.0 + 0.1 * rng.normal(size=count)
    return held, rng.normal(size=(points, 3)), weights, pairs, rng.normal(size=(count, 2))

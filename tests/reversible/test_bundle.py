"""Bundle adjustment, beside ADBench's formula written apart, with complex numbers as directions."""

import numpy as np
import pytest

import fwdad
from fwdad.examples.reversible import bundle
from tests.differences import central_differences, complex_step

SIZES = [(2, 3, 1), (2, 3, 2), (3, 4, 3), (4, 9, 20)]


def residual(z, feature):
    """One observation; analytic in z, so that an imaginary step of it is a derivative."""
    axis, centre, focal, middle, bend, point, weight = (
        z[:3], z[3:6], z[6], z[7:9], z[9:11], z[11:14], z[14]
    )  # fmt: skip
    x = point - centre
    theta = np.sqrt(axis @ axis)
    if theta == 0:
        turned = x + np.cross(axis, x)
    else:
        w = axis / theta
        hat = np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])
        turned = (np.eye(3) + np.sin(theta) * hat + (1 - np.cos(theta)) * hat @ hat) @ x
    p = turned[:2] / turned[2]
    r = p @ p
    return weight * (focal * (1 + bend[0] * r + bend[1] * r**2) * p + middle - feature)


def parameters(args, k):
    cameras, points, weights, pairs, features = args
    i, j = pairs[k]
    return np.concatenate([cameras[i], points[j], weights[k : k + 1]]), features[k]


def expected_block(z, feature):
    return complex_step(lambda z: residual(z, feature), z)


@pytest.mark.parametrize("size", SIZES)
def test_errors_and_their_inverse(size):
    args = bundle.observations(*size, np.random.default_rng(1))
    errors = np.ones((size[2], 2))
    found = bundle.bundle_adjustment(errors, *args)
    expected = 1 + np.stack([residual(*parameters(args, k)) for k in range(size[2])])
    np.testing.assert_allclose(found[0], expected, rtol=1e-13)
    np.testing.assert_allclose((~bundle.bundle_adjustment)(*found)[0], errors, rtol=1e-13)


def test_jacobian_has_the_blocks_of_complex_steps():
    args = bundle.observations(4, 9, 20, np.random.default_rng(2))
    blocks = fwdad.jit(bundle.jacobian)(*args)
    expected = np.stack([expected_block(*parameters(args, k)) for k in range(20)])
    np.testing.assert_allclose(blocks, expected, rtol=1e-11, atol=1e-12)
    few = [a[:1] if k > 1 else a for k, a in enumerate(args)]
    np.testing.assert_allclose(bundle.jacobian(*few), expected[:1], rtol=1e-11, atol=1e-12)


def test_a_camera_that_is_not_turned():
    cameras, points, weights, pairs, features = bundle.observations(
        1, 1, 1, np.random.default_rng(3)
    )
    cameras[:, :3] = 0.0
    (block,) = bundle.jacobian(cameras, points, weights, pairs, features)

    def near(z):
        return residual(z, features[0])

    z, _ = parameters((cameras, points, weights, pairs, features), 0)
    np.testing.assert_allclose(block, central_differences(near, z), rtol=1e-8, atol=1e-9)


def test_gradient_of_the_squares():
    args = bundle.observations(3, 4, 6, np.random.default_rng(4))
    zeros = np.zeros((6, 2))

    def loss(cameras, points, weights):
        return np.sum(bundle.bundle_adjustment(zeros, cameras, points, weights, *args[3:])[0] ** 2)

    found = fwdad.grad(loss, argnums=(0, 1, 2))(*args[:3])
    expected = [np.zeros_like(a) for a in args[:3]]
    for k, (i, j) in enumerate(args[3]):
        by = 2 * residual(*parameters(args, k)) @ expected_block(*parameters(args, k))
        expected[0][i] += by[:11]
        expected[1][j] += by[11:14]
        expected[2][k] += by[14]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)

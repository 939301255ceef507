"""Lanes that are written place by place, compiled."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")


def bands(u):
    """Stores, views, shifts, joins and a grid; every coefficient has another pattern."""
    wide = np.empty(u.size + 2)
    wide[1:-1] = u
    wide[0], wide[-1] = -u[0], 3.0 * u[-1]
    rate = u * (wide[2:] - wide[:-2]) + wide[1:-1] ** 2
    rate[::2] *= u[::2]
    around = np.roll(u, 1) * np.concatenate((u[1:], u[:1])) + u[0] * u
    a = u[: u.size // 2 * 2].reshape(2, -1)
    b = np.zeros((4, a.shape[1] + 2))
    b[1:-1, 1:-1] = a
    five = b[2:, 1:-1] + b[:-2, 1:-1] + b[1:-1, 2:] + b[1:-1, :-2] - 4.0 * b[1:-1, 1:-1]
    return rate, around, five * a


@pytest.mark.slow_cases("40")
@pytest.mark.parametrize("n", [7, 40])
def test_compiled_as_interpreted(n):
    J = fwdad.jit(fwdad.jacfwd(bands))
    x = 0.7 + 0.3 * np.cos(1.0 + np.arange(n) ** 2)
    for found, expected in zip(J(x), fwdad.jacobian(bands, x), strict=True):
        assert found.shape == expected.shape
        assert_allclose(found, expected, rtol=1e-13, atol=1e-14)
    assert "run by Numba" in fwdad.explain(J)
    assert "NumPy" not in fwdad.explain(J)


WEIGHTS, COLUMN = np.arange(40.0) + 1, np.arange(3.0)[:, None] + 1


@pytest.mark.parametrize(
    "f",
    [
        lambda u: WEIGHTS * u,
        lambda u: (COLUMN * u)[:, ::2] * WEIGHTS[::2],
        lambda u: np.sin(WEIGHTS) * WEIGHTS * u[::-1],
    ],
)
def test_coefficients_of_unknown_length(f):
    x = np.linspace(0.5, 1.5, 40)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f))(x), fwdad.jacobian(f, x), rtol=1e-14)


def test_a_band_is_one_loop_over_its_places():
    text = fwdad.show(fwdad.jacfwd(lambda u: u[1:] - u[:-1] ** 2), np.ones(99), backend="numba")
    assert text.count("for ") == 1  # both diagonals in one
    assert "k = i + 1" in text
    assert "[k, i] = " in text

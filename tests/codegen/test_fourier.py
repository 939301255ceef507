"""Fourier transforms of vectors in compiled code: NumPy's own loops."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.numba_support import have_numba
from tests.tiers import every

pytestmark = pytest.mark.skipif(not have_numba(), reason="Numba compiles")
RNG = np.random.default_rng(3)
REAL, COMPLEX = RNG.standard_normal(9), RNG.standard_normal(9) + 1j * RNG.standard_normal(9)


def fft(x, n=None, norm=None):
    return np.fft.fft(x, n, norm=norm)


def ifft(x, n=None, norm=None):
    return np.fft.ifft(x, n, norm=norm)


def rfft(x, n=None, norm=None):
    return np.fft.rfft(x, n, norm=norm)


def irfft(x, n=None, norm=None):
    return np.fft.irfft(x, n, norm=norm)


@pytest.mark.parametrize(
    ("n", "norm"),
    every(3, product([None, 1, 2, 5, 8, 9, 12, 13], [None, "backward", "ortho", "forward"])),
)
@pytest.mark.parametrize(
    ("f", "x"),
    [(fft, COMPLEX), (fft, REAL), (ifft, COMPLEX), (rfft, REAL), (irfft, COMPLEX), (irfft, REAL)],
)
def test_as_numpy(f, x, n, norm):
    """Cut, padded, even, odd, of contiguous and of strided vectors; no Python is called."""

    def g(x):
        return f(x[::2], n, norm), f(x, n, norm)

    fast = fwdad.jit(g)
    for found, wanted in zip(fast(x), g(x), strict=True):
        assert found.dtype == wanted.dtype
        assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    assert "calls NumPy" not in str(fwdad.explain(fast))


@pytest.mark.parametrize(
    ("n", "norm"), every(2, product([None, 1, 2, 7, 8, 11, 12], [None, "ortho", "forward"]))
)
@pytest.mark.parametrize("f", [rfft, irfft])
def test_gradients(f, n, norm):
    """Beside differences; the adjoint is compiled, too."""
    length = f(REAL, n, norm).shape[0]
    w, v = RNG.standard_normal(length), RNG.standard_normal(length)

    def loss(x):
        y = f(x, n, norm)
        return np.sum(w * np.real(y) ** 2) + np.sum(v * np.imag(y))

    wanted = fwdad.jacobian(loss, REAL, mode="forward")
    steps = [(loss(REAL + h) - loss(REAL - h)) / 2e-5 for h in 1e-5 * np.eye(REAL.size)]
    assert_allclose(wanted, steps, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.grad(loss)(REAL), wanted, rtol=1e-11, atol=1e-12)
    fast = fwdad.jit(fwdad.grad(loss))
    assert_allclose(fast(REAL), wanted, rtol=1e-11, atol=1e-12)
    assert "calls NumPy" not in str(fwdad.explain(fast))


def test_the_length_may_be_computed():
    fast = fwdad.jit(lambda x, k: np.fft.rfft(x, 2 * k + 1))
    for k in (0, 3, 7):
        assert_allclose(fast(REAL, k), np.fft.rfft(REAL, 2 * k + 1), rtol=1e-12, atol=1e-13)
    for f in (fast, fwdad.jit(lambda x: np.fft.fft(x[:0]))):
        with pytest.raises(
            (ValueError, fwdad.errors.UntraceableError), match="Invalid number of FFT data points"
        ):
            f(REAL, -1) if f is fast else f(REAL)


def test_what_numpy_refuses():
    with pytest.raises(fwdad.errors.UntraceableError, match="Invalid norm"):
        fwdad.jit(lambda x: np.fft.fft(x, norm="none"))(REAL)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_dtypes(dtype):
    x = np.arange(6).astype(dtype)
    found, wanted = fwdad.jit(rfft)(x), rfft(x)
    assert found.dtype == wanted.dtype
    assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)

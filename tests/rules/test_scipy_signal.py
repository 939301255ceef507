"""Filters of SciPy's signals, against differences, their own matrices, and each other."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import signal
from scipy.signal import _peak_finding_utils, _sigtools
from scipy.signal._upfirdn import upfirdn

import fwdad
from fwdad.rules.scipy_signal import filtered, from_state
from fwdad.testing import check_frule, check_transpose
from tests.differences import central_differences
from tests.rules.case import Case, Draw, transposes

draw = Draw(53)
B, A = signal.butter(3, 0.3)
SOS = signal.butter(4, 0.3, output="sos")
X = draw.real(12)
WAVES = np.sin(np.arange(20.0)) + 0.1 * np.arange(20.0)
PEAKS = signal.find_peaks(WAVES)[0]
STATE = signal.lfilter_zi(B, A)
LONG, SHORT = draw.real(5), np.array([2.0, 0.5, -0.3])

CASES = [
    *(
        Case(filtered, b, x, a, axis, linear=(0, 1))
        for b, x, a, axis in (
            (B, X, A, -1),
            (LONG, draw.real(3, 4), SHORT, 0),
            (SHORT, draw.real(2, 5, 2), LONG + 3.0 * np.eye(5)[0], 1),
            (draw.real(1), draw.real(4), SHORT, 0),
            (draw.real(1), draw.real(4), np.array([2.0]), 0),
            (LONG, draw.real(2), SHORT, 0),  # shorter than the state
            (draw.complex(3), draw.complex(4), draw.complex(3) + np.array([3, 0, 0]), 0),
            (draw.real(3), draw.complex(4), SHORT, 0),
            (draw.complex(3), draw.real(4), SHORT, 0),
        )
    ),
    Case(from_state, draw.real(3), A, 6, 0, linear=(0,)),
    Case(from_state, draw.real(2, 2), SHORT, 1, 1, linear=(0,)),
    Case(from_state, draw.complex(2), SHORT, 4, -1, linear=(0,)),
    *(
        Case(upfirdn, draw.real(m), draw.real(n), up, down, linear=(0, 1))
        for m, n, up, down in (
            (3, 6, 1, 1), (5, 4, 3, 2), (2, 7, 2, 5), (7, 3, 4, 3), (1, 5, 1, 3), (4, 1, 3, 1),
        )
    ),
    Case(upfirdn, draw.real(3), draw.real(4, 2), 2, 1, 0, linear=(0, 1)),
    Case(upfirdn, draw.complex(3), draw.complex(4), 2, 3, linear=(0, 1)),
    Case(upfirdn, draw.real(3), draw.real(2, 5), 3, 2, mode="reflect", linear=(0, 1)),
    Case(upfirdn, draw.real(5), draw.real(6), 1, 2, mode="smooth", linear=(0, 1)),
    *(
        Case(
            _sigtools._convolve2d, draw.real(4, 3), draw.real(*shape), flip, mode, boundary,
            linear=(0, 1),
        )
        for shape in ((2, 3), (3, 2), (1, 1))
        for flip in (0, 1)
        for mode in (0, 1, 2)
        for boundary in (0, 4, 8)
    ),
    Case(_sigtools._convolve2d, draw.complex(3, 3), draw.complex(2, 2), 1, 2, 0, linear=(0, 1)),
    *(Case(_peak_finding_utils._peak_prominences, WAVES, PEAKS, wlen) for wlen in (-1, 5)),
    *(
        Case(
            _peak_finding_utils._peak_widths, WAVES, PEAKS, level,
            *_peak_finding_utils._peak_prominences(WAVES, PEAKS, -1),
        )
        for level in (0.3, 0.5)
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


# -- as users call them


def coefficients(x):
    return np.concatenate([[2.0], 0.3 * x[:3]])


def with_state(x):
    y, ended = signal.lfilter(x[:4], coefficients(x[4:]), x[2:9], zi=x[8:11] * 0.5)
    return np.concatenate([y, ended])


def with_states(x):
    y, ended = signal.sosfilt(SOS * (1.0 + 0.0 * x[0]), x, zi=np.outer([1.0, 2.0], x[:2]))
    return np.concatenate([y, ended.ravel()])


def in_two_parts(x):
    y, z = signal.lfilter(B, A, x[:5], zi=STATE * x[0])
    return np.concatenate([y, signal.lfilter(B, A, x[5:], zi=z)[0]])


VARIED = 0.01 * np.array([1, 1, 1, 0, 1, 1])
SQUARE = draw.real(3, 3)
FILTERS = {
    "lfilter": lambda x: signal.lfilter(B, A, x),
    "its numerator": lambda x: signal.lfilter(x[:5], A, np.cos(np.arange(9.0))),
    "its denominator": lambda x: signal.lfilter(B, coefficients(x), np.ones((2, 6))),
    "all of it": lambda x: signal.lfilter(x[:3], coefficients(x), x.reshape(3, 4), axis=0),
    "finite": lambda x: signal.lfilter(x[:3], [2.0], x),
    "with a state": with_state,
    "of whole numbers": lambda x: signal.lfilter([1, 2, 3], [2, 1], np.arange(5), zi=x[:2])[0],
    "in two parts": in_two_parts,
    "sosfilt": lambda x: signal.sosfilt(SOS, x.reshape(2, 6)),
    "its sections": lambda x: signal.sosfilt(SOS + VARIED * x.reshape(2, 6), np.ones(7)),
    "with states": with_states,
    "filtfilt": lambda x: signal.filtfilt(B, A, x, padlen=5),
    "filtfilt, its coefficients": lambda x: signal.filtfilt(x[:3], coefficients(x), x, padlen=5),
    "filtfilt of Gustafsson": lambda x: signal.filtfilt(B, A, x, method="gust"),
    "sosfiltfilt": lambda x: signal.sosfiltfilt(SOS, x, padlen=6),
    "decimate": lambda x: signal.decimate(x, 2, ftype="fir", n=4),
    "resample_poly": lambda x: signal.resample_poly(x, 3, 2),
    "resample_poly of rows": lambda x: signal.resample_poly(x.reshape(2, 6), 2, 3, axis=1),
    "upfirdn": lambda x: signal.upfirdn(x[:4], x, 2, 3),
    "deconvolve": lambda x: signal.deconvolve(x, [1.0, 0.5])[0],
    "convolve2d": lambda x: signal.convolve2d(x.reshape(3, 4), SQUARE, "same", "symm"),
    "correlate2d": lambda x: signal.correlate2d(x.reshape(4, 3), x[:6].reshape(2, 3), "valid"),
    "filled": lambda x: signal.convolve2d(x.reshape(3, 4), x[:4].reshape(2, 2), fillvalue=2.0),
    "peaks": lambda x: x[signal.find_peaks(x)[0]],
    "heights of peaks": lambda x: signal.find_peaks(x, height=-9)[1]["peak_heights"],
    "prominences": lambda x: signal.peak_prominences(x, signal.find_peaks(x)[0])[0],
    "widths": lambda x: np.stack(signal.peak_widths(x, signal.find_peaks(x)[0], 0.6)),
    "distant peaks": lambda x: x[signal.find_peaks(x, distance=3)[0]],
}


@pytest.mark.every(8)
@pytest.mark.parametrize("f", FILTERS.values(), ids=FILTERS)
def test_against_differences(f):
    x = X.copy()
    y, want = f(x), central_differences(f, x)
    tolerance = {"rtol": 1e-6, "atol": 1e-8}
    for chunk in (1, 2, 3, 5, "auto"):
        assert_allclose(fwdad.jacobian(f, x, chunk=chunk, mode="forward"), want, **tolerance)
    assert_allclose(fwdad.jacobian(f, x, mode="reverse"), want, **tolerance)
    weights = draw.real(*y.shape)
    gradient = fwdad.grad(lambda x: np.sum(weights * f(x)))
    assert_allclose(gradient(x), np.tensordot(weights, want, y.ndim), **tolerance)
    for backend in ("numpy", "auto"):
        assert_allclose(
            fwdad.jit(gradient, backend=backend)(x), gradient(x), rtol=1e-10, atol=1e-12
        )
        assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend=backend)(x), want, **tolerance)
    assert_array_equal(fwdad.jit(f, backend="numpy")(x), y)
    assert_array_equal(fwdad.jvp(f, x, np.ones_like(x))[0], y)
    assert_array_equal(x, X)


@pytest.mark.every(2)
@pytest.mark.parametrize("name", ["lfilter", "all of it", "its sections", "upfirdn", "correlate2d"])
def test_second_derivatives(name):
    def loss(x):
        return np.sum(FILTERS[name](x) ** 3)

    want = central_differences(fwdad.grad(loss), X)
    assert_allclose(fwdad.hessian(loss, X), want, rtol=1e-5, atol=1e-6)
    v = draw.real(12)
    assert_allclose(fwdad.hvp(loss)(X, v), want @ v, rtol=1e-5, atol=1e-6)


def test_poles_by_complex_steps():
    """Independent of the formula: the recursion itself, with a complex step in each coefficient."""

    def recursion(a):
        y = np.zeros(9, complex)
        for n in range(9):
            y[n] = (1.0 + 0.5 * n - sum(a[k] * y[n - k] for k in range(1, 3) if n >= k)) / a[0]
        return y

    a = np.array([2.0, -0.4, 0.3])
    steps = [recursion(a + 1e-30j * e).imag / 1e-30 for e in np.eye(3)]
    found = fwdad.jacobian(lambda a: signal.lfilter([1.0], a, 1.0 + 0.5 * np.arange(9.0)), a)
    assert_allclose(found, np.stack(steps, -1), rtol=1e-13, atol=1e-14)

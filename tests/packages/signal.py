"""Signals, and networks of microwaves."""

import numpy as np

from tests.packages.package_function import PackageFunction

TONE = np.sin(0.7 * np.arange(32)) + 0.3 * np.cos(1.9 * np.arange(32))


def _pywt():
    import pywt

    def f(x):
        _, detail = pywt.dwt(x, "db2")
        return (detail**2).sum()

    return f, TONE[:8].copy()


def _pywt_mallat():
    import pywt

    def f(x):
        return pywt.threshold(x, 0.4, "soft")

    return f, TONE[:8].copy()


def _spectrum_levinson():
    from spectrum import LEVINSON

    def f(r):
        a, error, _ = LEVINSON(r)
        return np.append(a, error)

    return f, np.array([3.0, -2.0, 0.5, 0.1])


def _spectrum_burg():
    from spectrum import arburg

    def f(x):
        a, rho, _ = arburg(x, 2)
        return np.append(a.real, rho)

    return f, TONE[:10].copy()


def _spectrum_window():
    from spectrum.window import window_gaussian

    def f(p):
        return window_gaussian(9, p[0])

    return f, np.array([2.5])


def _skrf_line():
    import skrf

    frequency = skrf.Frequency(1, 3, 3, "ghz")

    def f(p):
        media = skrf.media.DefinedGammaZ0(frequency, z0=p[0], gamma=0.01 + 1j * p[1])
        network = media.line(0.2, "m") ** media.load(0.3)
        return abs(network.s[:, 0, 0]) ** 2 * p[0]

    return f, np.array([60.0, 3.0])


def _skrf_parameters():
    import skrf

    def f(p):
        s = np.array([[[p[0], p[1]], [p[1], 0.2]]], dtype=complex)
        return skrf.network.s2z(s, 50.0).real.ravel()

    return f, np.array([0.1, 0.6])


def _skrf_network():
    import skrf

    frequency = skrf.Frequency(1, 2, 2, "ghz")

    def f(p):
        s = np.zeros((2, 2, 2), complex)
        s[:, 0, 0] = p[0]
        s[:, 1, 0] = s[:, 0, 1] = p[1]
        network = skrf.Network(frequency=frequency, s=s, z0=50)
        return abs((network**network).s).sum()

    return f, np.array([0.1, 0.6])


def _librosa_mel():
    import librosa

    return lambda f: librosa.hz_to_mel(f), np.array([300.0, 2000.0])


def _librosa_decibels():
    import librosa

    return lambda s: librosa.power_to_db(s), np.array([0.3, 1.7, 0.9])


def _librosa_spectrogram():
    import librosa

    def f(y):
        return (abs(librosa.stft(y, n_fft=16, hop_length=8)) ** 2).sum(axis=1)[:4]

    return f, TONE.copy()


def _librosa_features():
    import librosa

    def f(y):
        return librosa.feature.spectral_centroid(y=y, sr=100, n_fft=16, hop_length=8).mean()

    return f, TONE.copy()


UNTRACED = {"jit": "UntraceableError"}

CASES = [
    PackageFunction(
        "PyWavelets",
        "dwt, energy of the details",
        _pywt,
        refused={"*": "MissingRuleError"},
        why="compiled code",
    ),
    PackageFunction(
        "PyWavelets",
        "threshold, soft",
        _pywt_mallat,
    ),
    PackageFunction("spectrum", "LEVINSON", _spectrum_levinson),
    PackageFunction(
        "spectrum",
        "arburg",
        _spectrum_burg,
        refused={"*": "MissingRuleError"},
        why="ndarray.resize moves an array to new memory",
    ),
    PackageFunction("spectrum", "window_gaussian, its width", _spectrum_window),
    PackageFunction("scikit-rf", "a line with a load", _skrf_line),
    PackageFunction("scikit-rf", "s2z", _skrf_parameters),
    PackageFunction("scikit-rf", "two networks in cascade", _skrf_network),
    PackageFunction("librosa", "hz_to_mel", _librosa_mel),
    PackageFunction("librosa", "power_to_db", _librosa_decibels),
    PackageFunction(
        "librosa",
        "stft, power",
        _librosa_spectrogram,
    ),
    PackageFunction(
        "librosa",
        "spectral_centroid",
        _librosa_features,
    ),
]

"""Fourier, cosine and sine transforms of NumPy and SciPy."""

import numpy as np
import pytest
import scipy.fft
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import MissingRuleError
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes

draw = Draw(25)
FIRST = (0,)


def _inputs(name):
    """Makers of arrays that a transform takes."""
    if name in ("rfft", "ihfft"):
        return [draw.real]
    return [draw.complex] if name in ("irfft", "hfft") else [draw.complex, draw.real]


def _along_one_axis(home, name):
    f = getattr(home, name)
    return [
        case
        for g in _inputs(name)
        for case in [
            Case(f, g(5), linear=FIRST),
            Case(f, g(6), linear=FIRST),
            *(Case(f, g(5), n=n, linear=FIRST) for n in (4, 8, 9)),
            *(Case(f, g(5), norm=norm, linear=FIRST) for norm in ("ortho", "forward")),
            Case(f, g(5), n=3, norm="forward", linear=FIRST),
            Case(f, g(2, 5), linear=FIRST),
            Case(f, g(5, 3), n=4, axis=0, linear=FIRST),
            Case(f, g(4, 5, 2), axis=1, norm="backward", linear=FIRST),
        ]
    ]


def _along_many_axes(home, name):
    two, many = getattr(home, f"{name}2"), getattr(home, f"{name}n")
    g = _inputs(name)[0]
    return [
        Case(two, g(4, 5), linear=FIRST),
        Case(two, g(2, 4, 5), linear=FIRST),
        Case(two, g(4, 5), s=(3, 6), linear=FIRST),
        Case(two, g(4, 5, 2), axes=(1, 0), norm="ortho", linear=FIRST),
        Case(many, g(4, 5), linear=FIRST),
        Case(many, g(2, 3, 4), linear=FIRST),
        Case(many, g(2, 3, 4), s=(5, 2), axes=(0, 2), linear=FIRST),
        Case(many, g(2, 3, 4), axes=(2, 0, 1), norm="forward", linear=FIRST),
    ]


HALVES = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
CASES = [
    *(c for home in (np.fft, scipy.fft) for name in HALVES for c in _along_one_axis(home, name)),
    *(c for name in HALVES[:4] for c in _along_many_axes(np.fft, name)),
    *(c for name in HALVES for c in _along_many_axes(scipy.fft, name)),
    Case(np.fft.fftn, draw.complex(3, 4), s=(5, 2, 3), axes=(0, 0, 1), linear=FIRST),
    Case(np.fft.rfftn, draw.real(3, 4), s=(3, -1), axes=(0, 1), linear=FIRST),
    *(
        Case(f, x, *axes, linear=FIRST)
        for f in (np.fft.fftshift, np.fft.ifftshift)
        for x in (draw.real(5), draw.complex(4), draw.real(3, 4))
        for axes in ((), (0,), ((-1,),))
    ),
    *(
        Case(f, g(*shape), type=form, linear=FIRST, **options)
        for f in (scipy.fft.dct, scipy.fft.idct, scipy.fft.dst, scipy.fft.idst)
        for form in (1, 2, 3, 4)
        for g in (draw.real, draw.complex)
        for shape, options in (((5,), {}), ((2, 5), {"n": 4}), ((5, 3), {"axis": 0, "n": 7}))
    ),
    *(
        Case(f, g(*shape), type=form, linear=FIRST, **options)
        for f in (scipy.fft.dctn, scipy.fft.idctn, scipy.fft.dstn, scipy.fft.idstn)
        for form, g, shape, options in (
            (1, draw.real, (4, 3), {}),
            (2, draw.real, (3, 2, 4), {"axes": (0, -1)}),
            (2, draw.complex, (3, 4), {"s": (5, 3), "axes": (1, 0)}),
            (3, draw.real, (2, 3, 4), {"s": (5, -1)}),
            (4, draw.real, (3, 4), {"axes": 1}),
        )
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


@pytest.mark.parametrize("form", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["dct", "idct", "dst", "idst"])
def test_transposes_in_every_normalisation(name, form, rng):
    f = getattr(scipy.fft, name)
    for norm in (None, "ortho", "forward", "backward"):
        for orthogonalize in (None, True, False):
            for x in (draw.real(5), draw.complex(5)):
                check_transpose(f, x, form, norm=norm, orthogonalize=orthogonalize, rng=rng)
            many = getattr(scipy.fft, f"{name}n")
            for x in (draw.real(4, 3), draw.complex(4, 3)):
                check_transpose(many, x, form, norm=norm, orthogonalize=orthogonalize, rng=rng)


def test_one_without_a_rule_is_named():
    with pytest.raises(MissingRuleError, match=r"(?s)scipy\.fft\.fht.*test_fft"):
        fwdad.jvp(lambda x: scipy.fft.fht(x, 0.1, 0.5), np.ones(4), np.ones(4))


def test_the_lanes_survive_overwriting():
    x, v = draw.complex(6), draw.complex(3, 6)
    kept = v.copy()
    for f in (scipy.fft.fft, scipy.fft.dct):
        _, y_dot = fwdad.jvp(lambda z, f=f: f(z, overwrite_x=True), x.copy(), v, holomorphic=True)
        assert_allclose(y_dot, f(v, axis=-1), rtol=1e-13)
        assert np.array_equal(v, kept)


def test_frequencies_are_constants():
    y, y_dot = fwdad.jvp(lambda x: x * np.fft.fftfreq(4), np.ones(4), np.ones(4))
    assert_allclose(y_dot, np.fft.fftfreq(4))
    assert_allclose(y, np.fft.fftfreq(4))


def test_a_spectral_derivative_is_differentiated():
    x = np.sin(2 * np.pi * np.arange(16) / 16)
    k = np.fft.rfftfreq(16, 1 / 16)

    def energy(u):
        return np.sum(np.fft.irfft(2j * np.pi * k * np.fft.rfft(u)) ** 2)

    jacobian = fwdad.jacobian(lambda u: np.fft.irfft(2j * np.pi * k * np.fft.rfft(u)), x)
    assert_allclose(fwdad.grad(energy)(x), 2 * jacobian.T @ (jacobian @ x), atol=1e-10)

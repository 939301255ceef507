"""Lengths that are another one and a number: what is known of them, and that it holds."""

import dataclasses
import itertools
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import signal

import fwdad
from fwdad.errors import UntraceableError
from fwdad.ir.abstract_eval.infer import infer
from fwdad.ir.ops import Value
from fwdad.ir.types import INT, ArrayType, Size, sliced
from tests.differences import central_differences, complex_step
from tests.tiers import every

N = Size(origin=(0, 0))
X = Value(ArrayType(np.dtype(float), (N,)))
BOUNDS = (None, *range(-2, 3))
STEPS = (None, *(k for k in range(-17, 18) if k))


def of_length(d):
    return Value(ArrayType(np.dtype(float), (d,)))


def length_of(function, *args, **kwargs):
    (d,) = infer(function, args, kwargs).shape
    return d


def test_a_length_and_a_number():
    assert N.minus(1).minus(1) is N.minus(2)
    assert N.minus(1).minus(-1) is N
    assert N.minus(-3).minus(3) is N
    assert N.minus(3).minus(-3) is not N  # of two elements none are left
    assert N.minus(3).minus(-3).minus(3) is N.minus(3)
    assert Size().minus(1).minus(-1) is not Size()
    assert (N.least, N.minus(1).least, N.minus(4).least, N.minus(-2).least) == (2, 1, 0, 4)
    assert not N.minus(-1).may_be_one
    assert N.minus(1).may_be_one


def test_slices_whose_length_is_known():
    for s in itertools.starmap(slice, product(BOUNDS, BOUNDS, STEPS)):
        found = {len(range(*s.indices(n))) for n in range(2, 60)}
        known = sliced(N, s)
        assert isinstance(known, Size) or found == {known}, s
        assert len(found) > 1 or known in found, s


@pytest.mark.parametrize("step", [7, 8, -8, 16])
def test_long_steps(step):
    def thinned(x):
        return np.sum(x[::step] * (2 * x)[::step]) + np.sum(np.concatenate([x[::step], x[1::step]]))

    x = np.linspace(1, 2, 40)
    expected = central_differences(thinned, x)
    assert_allclose(fwdad.grad(thinned)(x), expected, rtol=1e-6)
    for backend in ("numpy", "numba"):
        assert_allclose(fwdad.jit(thinned, backend=backend)(x), thinned(x))


def test_what_functions_return():
    shorter, longer = sliced(N, slice(1, None)), N.minus(-2)
    assert length_of(np.diff, X) is shorter
    assert length_of(np.diff, X, n=2) is N.minus(2)
    assert length_of(np.concatenate, (np.ones(1), of_length(shorter))) is N
    assert length_of(np.append, X, [1.0, 2.0]) is longer
    assert length_of(np.pad, X, 1) is longer
    assert length_of(np.delete, X, 0) is shorter


def test_letters_of_einsum():
    k, d, other = (Size(origin=(1, j)) for j in range(3))
    a, b = (Value(ArrayType(np.dtype(float), shape)) for shape in ((k, d, d), (N, other, d)))
    assert infer(np.einsum, ("kij,nkj->nki", a, b), {}).shape == (N, k, d)
    assert infer(np.einsum, ("kij,nkj->n", a, b), {"optimize": True}).shape == (N,)
    assert sliced(other, slice(None, Value(INT))) is not d
    up_to_d = slice(None, Value(dataclasses.replace(INT, size=d)))
    assert not sliced(other, up_to_d).may_be_one
    assert sliced(other, up_to_d) is sliced(
        d, slice(0, Value(dataclasses.replace(INT, size=other)))
    )
    assert sliced(d, up_to_d) is d


def test_what_is_no_fixed_difference():
    three = np.ones(3)
    known = {N.minus(k) for k in range(-4, 5)}
    assert length_of(np.convolve, X, three, "valid") not in known  # of 2 with 3 it has 2 elements
    assert length_of(np.concatenate, (X, of_length(Size()))) not in known
    assert length_of(np.repeat, X, 2) not in known


PROGRAMS = {
    "a step": lambda x: x + np.concatenate((np.ones(1), x[:-1])) * x,
    "differences": lambda x: np.diff(x) / x[1:] + np.zeros(len(x) - 1),
    "twice": lambda x: np.append(np.diff(np.pad(x * x, 1)), x),
    "window": lambda x: np.convolve(x, np.array([1.0, 2.0, 3.0]), "valid") * x[0],
    "three fewer": lambda x: np.concatenate((x[3:], x[:3] ** 2)) * 2.0,
    "empty": lambda x: np.concatenate((np.ones(3) * x[0], x[3:])),
    "einsum": lambda x: np.einsum("ij,kj->ki", np.outer(x, x), np.outer(x, x)[:, : len(x)] * x).sum(
        axis=0
    ),
    "up to a length": lambda x: np.outer(x, x)[:, : len(x)] @ x + np.ones(9)[: len(x)],
    "numbers": lambda x: np.arange(1.0 * (len(x) + 1)) * np.append(x, x[0]),
}


def carried(x):
    y = x
    for _ in range(3):
        y = y + 0.1 * x * np.concatenate((np.ones(1), y[:-1]))
    return y


def grown(x):
    y = x
    for k in range(3):
        y = np.append(y, y[k] * x[0])
    return y


PROGRAMS |= {"carried": carried, "grown": grown}


@pytest.mark.slow_cases("numba-up to a length")
@pytest.mark.parametrize(("backend", "name"), every(7, product(["numba", "numpy"], PROGRAMS)))
def test_other_lengths(name, backend):
    f = PROGRAMS[name]
    value = fwdad.jit(f, backend=backend)
    derivatives = [fwdad.jit(d(f), backend=backend) for d in (fwdad.jacfwd, fwdad.jacrev)]
    narrow = fwdad.jit(lambda x: fwdad.jacobian(f, x, chunk=2, mode="forward"), backend=backend)
    for n in (5, 2, 3, 7, 4, 1):
        x = np.linspace(0.5, 1.5, n)
        assert_allclose(value(x), f(x), rtol=1e-13)
        expected = complex_step(f, x)
        for d in (*derivatives, narrow):
            assert_allclose(d(x), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_lengths_that_do_not_match_are_found(backend):
    f = fwdad.jit(lambda x, y: np.diff(x) * y[1:], backend=backend)
    assert_array_equal(f(np.arange(4.0), np.arange(4.0)), [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="broadcast"):
        f(np.arange(4.0), np.arange(6.0))
    assert_array_equal(f(np.arange(4.0), np.arange(2.0)), [1.0, 1.0, 1.0])


R = np.random.default_rng(3).standard_normal(150)

COUNTS = {  # functions with thresholds that short samples do not reach, or that values decide
    "windows": lambda x: signal.spectrogram(x, nperseg=16)[2],
    "their frequencies": lambda x: signal.spectrogram(x, window="hann", nperseg=20)[0],
    "bins by values": lambda x: np.histogram(x, "auto")[0],
    "edges by values": lambda x: np.histogram_bin_edges(x, "fd"),
    "bins by a length": lambda x: np.histogram(x, "sturges")[0],
    "the longer one": lambda x: np.convolve(x, np.ones(30), "same"),
    "a list that is empty for short arguments": lambda x: signal.deconvolve(x, np.ones(40))[0],
}


@pytest.mark.parametrize("name", COUNTS)
def test_lengths_that_small_samples_do_not_tell(name):
    f = fwdad.jit(lambda x: tuple(1.0 * n for n in np.shape(COUNTS[name](x))), backend="numpy")
    for x in (R, R[:60], R[:20], np.sqrt(np.abs(R)), R[:100]):
        assert f(x) == np.shape(COUNTS[name](x))


def weighted_windows(x):
    s = signal.spectrogram(x, nperseg=16)[2]
    return np.sum(s * np.arange(1.0, s.shape[-1] + 1))


def test_gradients_of_what_is_weighted_by_such_a_length():
    expected = central_differences(weighted_windows, R)
    assert_allclose(fwdad.grad(weighted_windows)(R), expected, rtol=1e-6, atol=1e-7)
    g = fwdad.jit(fwdad.grad(weighted_windows), backend="numpy")
    assert_allclose(g(R), expected, rtol=1e-6, atol=1e-7)
    shorter = central_differences(weighted_windows, R[:90])
    assert_allclose(g(R[:90]), shorter, rtol=1e-6, atol=1e-7)


@fwdad.pure
def cut(x):
    """Of a length that no sample shows."""
    return x * 2.0 if len(x) < 50_000 else x[:3] * 2.0


@fwdad.frule(cut)
def _(primals, tangents):
    (x,), (x_dot,) = primals, tangents
    return cut(x), x_dot * 2.0 if len(x) < 50_000 else x_dot[:3] * 2.0


def weighted(x):
    y = cut(x)
    return np.sum(y * np.arange(1.0, len(y) + 1))


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_a_result_of_another_length_than_its_tape_says_is_no_other_result(backend):
    f, g = fwdad.jit(weighted, backend=backend), fwdad.jit(fwdad.grad(weighted), backend=backend)
    for n in (6, 60_000, 7):
        x = np.linspace(0.0, 1.0, n)
        expected = np.zeros(n)
        m = len(cut(x))
        expected[:m] = 2.0 * np.arange(1.0, m + 1)
        assert_allclose(f(x), weighted(x), rtol=1e-12)
        assert_allclose(g(x), expected, rtol=1e-12)
        assert_allclose(fwdad.grad(weighted)(x), expected, rtol=1e-12)


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_a_program_that_has_written_does_not_run_again(backend):
    def into(out, x):
        out += 1.0
        return weighted(x)

    f, out = fwdad.jit(into, backend=backend), np.zeros(2)
    f(out, np.ones(6))
    with pytest.raises(UntraceableError, match=r"of shape \(3,\) here"):
        f(out, np.ones(60_000))
    assert_array_equal(out, [2.0, 2.0])

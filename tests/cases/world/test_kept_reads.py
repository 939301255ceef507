"""Each way in which what an earlier derivative call has left outside can be read: each raises."""

import copy
import io
import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import integrate, ndimage, special

import fwdad

X = np.array([1.0, 2.0, 3.0])


def in_place(u):
    v = np.zeros(3)
    v += u
    return v


def added_at(u):
    v = np.zeros(3)
    np.add.at(v, [0, 1, 2], u)
    return v


def copied_to(u):
    v = np.zeros(3)
    np.copyto(v, u)
    return v


def filled(u):
    v = np.zeros(3)
    v.fill(u[0])
    return v


def put(u):
    v = np.zeros(3)
    np.put(v, [0, 1, 2], u)
    return v


def stored(u):
    v = np.zeros(3)
    v[:] = u
    return v


def unpacked(u):
    a, b, c = u
    return np.array([a, b, c])


ARRAYS = [
    lambda u, _: np.array(u),
    lambda u, _: np.asarray(u),
    lambda u, _: u.copy(),
    lambda u, _: np.copy(u),
    lambda u, _: np.array(u.tolist()),
    lambda u, _: u.item(0),
    lambda u, _: u[0],
    lambda u, _: -u,
    lambda u, _: u + 0.0,
    lambda u, _: 1.0 + u,
    lambda u, _: np.add(u, 1.0),
    lambda u, _: np.where(u > 0, u, 0.0),
    lambda u, _: np.concatenate([u, u])[:3],
    lambda u, _: u.sum(),
    lambda u, _: np.sum(u),
    lambda u, _: sum(u),
    lambda u, _: max(u),
    lambda u, _: u @ u,
    lambda u, _: u.T * 1.0,
    lambda u, _: u[1:].sum(),
    lambda u, _: u[[0, 1, 2]],
    lambda u, _: u[u > -1],
    lambda u, _: np.array(list(u.flat)),
    lambda u, _: np.array([*u]),
    lambda u, _: np.array([v for k, v in enumerate(u)]),
    lambda u, _: np.array([a for a, b in zip(u, u, strict=False)]),
    lambda u, _: np.array(list(map(float, u))),
    lambda u, _: float(u[0]),
    lambda u, _: math.sqrt(u[0]),
    lambda u, _: in_place(u),
    lambda u, x: u * x,
    lambda u, x: x * u,
    lambda u, x: np.dot(u, x),
    lambda u, x: x @ u,
    lambda u, x: np.stack([u, x])[0],
    lambda u, x: np.einsum("i,i->i", u, x),
    lambda u, _: np.multiply(u, 1.0, out=np.empty(3)),
    lambda u, _: np.ascontiguousarray(u),
    lambda u, _: u.reshape(3, 1)[:, 0] * 1.0,
    lambda u, _: np.ravel(u) * 1.0,
    lambda u, _: copy.copy(u),
    lambda u, _: copy.deepcopy(u),
    lambda u, _: np.array(sorted(u)),
    lambda u, _: np.sort(u),
    lambda u, _: np.linalg.norm(u),
    lambda u, x: np.interp(x, [0.0, 10.0], u[:2]),
    lambda u, _: np.full(3, u[0]),
    lambda u, _: np.cumsum(u),
    lambda u, _: np.array([u[k] for k in range(3)]),
    lambda u, _: np.add.reduce(u),
    lambda u, _: np.add.accumulate(u),
    lambda u, x: np.multiply.outer(u, x)[0],
    lambda u, _: added_at(u),
    lambda u, _: np.sum([u, u], axis=0),
    lambda u, x: np.polyval(u, x),
    lambda u, _: copied_to(u),
    lambda u, _: filled(u),
    lambda u, _: put(u),
    lambda u, _: stored(u),
    lambda u, _: u.astype(float),
    lambda u, _: u.real * 1.0,
    lambda u, _: np.minimum(u, 100.0),
    lambda u, _: u**2,
    lambda u, _: 2.0**u,
    lambda u, _: np.diag(u)[:, 0],
    lambda u, _: np.fromiter(u, float),
    lambda u, _: np.apply_along_axis(lambda v: v * 1.0, 0, u),
    lambda u, _: np.vectorize(lambda v: v * 1.0)(u),
    lambda u, _: np.array([next(iter(u))] * 3),
    lambda u, _: unpacked(u),
    lambda u, _: np.array([max(u[1], u[0])] * 3),
    lambda u, _: copy.deepcopy([u])[0],
    lambda u, _: special.logsumexp(u),
    lambda u, _: np.median(u),
    lambda u, _: integrate.simpson(u),
    lambda u, _: np.cov(u),
    lambda u, _: ndimage.gaussian_filter1d(u, 1.0),
    lambda u, _: np.abs(np.fft.fft(u)),
    lambda u, _: special.gamma(u),
    lambda u, _: np.linalg.solve(np.eye(3), u),
    lambda u, _: np.tril(np.outer(u, u))[0],
    lambda u, _: np.convolve(u, u)[:3],
    lambda u, x: np.polyfit(x, u, 1)[0],
    lambda u, _: np.gradient(u),
    lambda u, _: np.frombuffer(u.tobytes()),
    lambda u, _: np.array(memoryview(u)),
    lambda u, _: u,
]
"""Reads of an array."""


def alone(values):
    yield from values


LISTS = [
    lambda h: np.sum(h),
    lambda h: np.min(h),
    lambda h: np.min(a=h),
    lambda h: np.array(h).min(),
    lambda h: np.sum(np.asarray(h)[1:]),
    lambda h: min(*h, 99.0),
    lambda h: sum(v for v in h),
    lambda h: sum(alone(h)),
    lambda h: min(h),
    lambda h: np.maximum(h[0], h[-1]),
    lambda h: np.sum(h[-3:]),
    lambda h: np.sum([*h, 1.0]),
    lambda h: np.sum([h, h]),
    lambda h: np.sum(tuple(h)),
    lambda h: math.fsum(h),
    lambda h: max(set(h)),
    lambda h: np.ones(2) @ h,
    lambda h: np.ones(2).dot(h),
    lambda h: np.ones(2) * h,
    lambda h: sum(a * b for a, b in itertools.product(h, h)),
    lambda h: special.logsumexp(h),
]
"""Reads of a list of numbers."""

HARMLESS = [
    lambda h: len(h),
    lambda h: np.save(io.BytesIO(), h),
    lambda h: np.savetxt(io.StringIO(), h),
    lambda h: print(h, file=io.StringIO()),
    lambda h: h[-1],
    lambda h: np.sum(h[-1:]),
    lambda h: fwdad.stop_gradient(h[0]),
    lambda h: np.sum(fwdad.stop_gradient(h[:-1])),
    lambda h: np.sum([fwdad.stop_gradient(h[0]), 1.0]),
    lambda h: np.shape(h),
]
WAYS = {
    "forward": lambda f, x: fwdad.jacobian(f, x, mode="forward"),
    "grad": lambda f, x: fwdad.grad(f)(x),
    "vjp": lambda f, x: fwdad.vjp(f, x)[1](1.0),
}


def of_a_result(read):
    kept = []

    def f(x):
        if not kept:
            kept.append(x * 2.0)
            return np.sum(x)
        return np.sum(read(kept[0], x)) + np.sum(x)

    return f


def of_a_work_array(read):
    work, calls = np.zeros(3), []

    def f(x):
        calls.append(0)
        if len(calls) == 1:
            work[:] = x * 2.0
            return np.sum(x)
        return np.sum(read(work, x)) + np.sum(x)

    return f


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [of_a_result, of_a_work_array], ids=lambda make: make.__name__)
@pytest.mark.parametrize("read", ARRAYS)
def test_arrays(read, make, way):
    f = make(read)
    fwdad.jvp(f, X, X)
    with pytest.raises(fwdad.errors.StaleValueError):
        WAYS[way](f, X)
    f(X)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("read", LISTS)
def test_lists_of_numbers(read, way):
    history = []

    def f(x):
        history.append(np.sum(x**2))
        if len(history) == 1:
            return history[0]
        return read(history)

    fwdad.jvp(f, X, X)
    with pytest.raises(fwdad.errors.StaleValueError):
        WAYS[way](f, X)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("look", HARMLESS)
def test_what_loses_no_derivative(look, way):
    history = []

    def f(x):
        history.append(np.sum(x**2))
        if len(history) > 1:
            look(history)
        return history[-1]

    for _ in range(2):
        assert_array_equal(WAYS[way](f, X), 2 * X)


def test_work_arrays_that_are_written_again():
    """What only asks for a shape, or writes, reads nothing."""
    work = np.zeros(3)

    def f(x):
        assert np.shape(work) == x.shape
        assert isinstance(work, np.ndarray)
        like = np.zeros_like(work)
        rows = np.reshape(work, (3, 1))
        np.copyto(work, 1.0)
        np.asarray(work)[:] = x
        np.multiply(x, 2.0, out=work)
        return np.sum(rows[:, 0] + like)

    for way in WAYS.values():
        assert_array_equal(way(f, X), np.full(3, 2.0))


VIEWS = [
    lambda w: np.reshape(w, (3, 1)),
    lambda w: np.ravel(w),
    lambda w: np.transpose(w),
    lambda w: np.flip(w),
    lambda w: np.squeeze(w),
    lambda w: np.expand_dims(w, 0),
    lambda w: np.atleast_2d(w),
    lambda w: np.real(w),
    lambda w: np.split(w, 3)[1],
    lambda w: w.reshape(3, 1),
    lambda w: w.ravel(),
    lambda w: w.T,
    lambda w: w[::2],
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_that_are_taken_before_the_memory_is_written(view, way):
    work = np.zeros(3)

    def f(x):
        seen = view(work)
        work[:] = x * 2.0
        return np.sum(seen)

    expected = 2.0 * np.isin(np.arange(3), view(np.arange(3)))
    for _ in range(3):
        assert_array_equal(WAYS[way](f, X), expected)

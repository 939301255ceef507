"""An inner function stores what it differentiates into an array that carries outer tangents."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.53, 0.87, 0.31])

READS = {
    "x + w": lambda x, w, p: x + w,
    "w - x": lambda x, w, p: w - x,
    "w * 1.0": lambda x, w, p: w * 1.0,
    "3 / w": lambda x, w, p: 3.0 / w,
    "w * p": lambda x, w, p: w * p,
    "-w": lambda x, w, p: -w,
    "w**2": lambda x, w, p: w**2,
    "list": lambda x, w, p: w * [1.0, 2.0, 3.0],
    "int": lambda x, w, p: w * np.array([1, 2, 3]),
    "w @ p": lambda x, w, p: w @ p,
    "matrix": lambda x, w, p: np.outer(w, x) @ w,
    "np.sin": lambda x, w, p: np.sin(w),
    "np.multiply": lambda x, w, p: np.multiply(w, w),
    "np.sum": lambda x, w, p: np.sum(w) * x,
    "w.sum()": lambda x, w, p: w.sum() * w.max(),
    "w.copy()": lambda x, w, p: w.copy() * x,
    "copy.copy": lambda x, w, p: copy.copy(w) * x,
    "copy.deepcopy": lambda x, w, p: copy.deepcopy([w])[0] * x,
    "np.array": lambda x, w, p: np.array(w) * x,
    "np.asarray": lambda x, w, p: np.asarray(w) * x,
    "rows": lambda x, w, p: np.array([w, x, p]).sum(0),
    "stack": lambda x, w, p: np.stack([w, x]).prod(0),
    "astype": lambda x, w, p: w.astype(complex).real * x,
    "w": lambda x, w, p: w,
    "pair": lambda x, w, p: (w, w * x)[1],
    "w[1]": lambda x, w, p: x * w[1],
    "w[1:]": lambda x, w, p: w[1:] * x[:2],
    "w[::-1]": lambda x, w, p: w[::-1] * x,
    "w[[0, 2]]": lambda x, w, p: w[[0, 2]] * 2.0,
    "w[w > 0.0]": lambda x, w, p: w[w > 0.0] * x,
    "take": lambda x, w, p: np.take(w, [2, 0]) * x[0],
    "where": lambda x, w, p: np.where(x > 0.5, w, x * w),
    "iterated": lambda x, w, p: np.array([a * b for a, b in zip(w, x, strict=True)]),
    "reshaped": lambda x, w, p: (w.reshape(3, 1) * x).sum(0),
    "w.T": lambda x, w, p: w.T * x,
    "float": lambda x, w, p: float(w[0] > 0.0) * w,
    "clip": lambda x, w, p: np.clip(w, 0.0, 0.5) + w.clip(0.2, 3.0),
    "cumsum": lambda x, w, p: w.cumsum() * np.cumsum(w),
    "dot": lambda x, w, p: np.dot(w, x) * w,
    "einsum": lambda x, w, p: np.einsum("i,i->i", w, x),
    "norm": lambda x, w, p: np.linalg.norm(w) * x,
    "sorted": lambda x, w, p: np.sort(w) * x,
    "concatenate": lambda x, w, p: np.concatenate([w, x]) * 2.0,
    "out": lambda x, w, p: np.multiply(w, x, out=np.zeros(3)),
}


def into(target, w, p):
    """What stores w, which p was stored into, somewhere else."""
    other = np.ones(3) if target == "plain" else 1.0 * p
    if target == "added":
        other += w
    elif target == "subtracted":
        other -= w
    elif target == "multiplied":
        other *= w
    elif target == "part":
        other[1:] = w[:2]
    else:
        other[:] = w
    return other


READS |= {
    f"stored, {t}": lambda x, w, p, t=t: into(t, w, p) * x
    for t in ("plain", "dual", "added", "subtracted", "multiplied", "part")
}


def stored(read, inner):
    def f(x):
        w = 1.0 * x

        def g(p):
            w[:] = p
            return read(x, w, p)

        return inner(g)(x * x)

    return f


def functional(read, inner):
    """The same program, with p where w is read."""
    return lambda x: inner(lambda p: read(x, 1.0 * p, p))(x * x)


INNER = {
    "jacfwd": fwdad.jacfwd,
    "jacrev": fwdad.jacrev,
    "jvp": lambda g: lambda p: fwdad.jvp(g, p, p * 0.5 + 1.0)[1],
}


@pytest.mark.every(2)
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("read", READS)
def test_values_and_derivatives_are_those_of_the_program_without_the_store(read, inner):
    f = stored(READS[read], INNER[inner])
    wanted = functional(READS[read], INNER[inner])
    y = wanted(X)
    expected = central_differences(wanted, X)
    assert_allclose(f(X), y, rtol=1e-13)
    for chunk in (1, 2, 3):
        value, found = fwdad.value_and_jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(value, y, rtol=1e-13)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), found, rtol=1e-10, atol=1e-12)


def product_written(w, x, q):
    w[1:] *= np.sin(x + q)[:2]


def outer_product_written(w, x, q):
    w[1:] *= np.sin(x)[:2]


def element_written(w, x, q):
    w[1] = w[1] * q[0]


def values_written(w, x, q):
    w[1:] = q[:2]


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize(
    "write", [product_written, outer_product_written, element_written, values_written]
)
@pytest.mark.parametrize("read", [lambda w, p, d: w * 1.0, lambda w, p, d: w * p,
                                  lambda w, p, d: d * p], ids=["w", "w * p", "d"])  # fmt: skip
def test_tangents_of_tangents_stay_when_an_inner_call_ends(write, read):
    """Three levels: what the innermost writes stays, with the tangents of the calls around it."""

    def derivative(w, x):
        def h(q):
            write(w, x, q)
            return np.sum(w) * q[1]

        return fwdad.jacfwd(h)(x)

    def f(x):
        w = 1.0 * x

        def g(p):
            w[:] = p
            return read(w, p, derivative(w, x))

        return fwdad.jacfwd(g)(x * x)

    def wanted(x):
        def g(p):
            d, w = derivative(1.0 * p, x), 1.0 * p
            write(w, x, x)
            return read(w, p, d)

        return fwdad.jacfwd(g)(x * x)

    expected = central_differences(wanted, X)
    for chunk in (1, 2, 3):
        value, found = fwdad.value_and_jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(value, wanted(X), rtol=1e-13)
        assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("mode", ["forward", "plain", "jit"])
def test_a_direction_that_the_function_writes(mode):
    """The direction is what it was when the call began."""

    def f(x):
        w = 1.0 * x

        def g(p):
            y = np.sum(p * p) * p
            w[:] *= np.sum(p)
            return y * w[0]

        return fwdad.jvp(g, x, w)[1]

    def wanted(x):
        return fwdad.jvp(lambda p: np.sum(p * p) * p * (x[0] * np.sum(p)), x, 1.0 * x)[1]

    if mode == "forward":
        value, found = fwdad.value_and_jacobian(f, X, mode="forward")
        assert_allclose(found, fwdad.jacobian(wanted, X, mode="forward"), rtol=1e-12)
    else:
        value = (fwdad.jit(f) if mode == "jit" else f)(X)
    assert_allclose(value, wanted(X), rtol=1e-13)

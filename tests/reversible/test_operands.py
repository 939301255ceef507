"""What updates may read and write: ints, parts of complex numbers, attributes, gathers."""

import linecache

import numpy as np
import pytest

import fwdad
from fwdad.errors import InvertibilityError, IrreversibleError
from fwdad.reversible import check_gradient, reversible
from tests.reversible.programs import flat


def test_an_array_that_is_broadcast():
    @reversible
    def spread(y, x):
        y += x

    y, x = np.ones((4, 3)), np.array([[1.0, 2.0, 3.0]])
    gradient = fwdad.grad(lambda x: np.sum(spread(y, x)[0] ** 2))(x)
    np.testing.assert_allclose(gradient, 8 * (1 + x))


@reversible
def counted(n, m, a, k):
    n *= m
    a *= k
    n /= 3
    for i in range(2):
        a[i] *= m + i


def test_ints_are_multiplied_where_that_is_exact():
    args = (6, 5, np.array([4, -3]), np.array([2, 7]))
    for f, back in ((counted, ~counted), (fwdad.jit(counted), fwdad.jit(~counted))):
        there = f(*args)
        assert there[0] == 10
        assert list(there[2]) == [40, -126]
        again = back(*there)
        assert again[0] == 6
        assert list(again[2]) == [4, -3]
    assert "n *= 3" in fwdad.show(~counted)
    for bad, variable in (
        ((7, 5, *args[2:]), "n"),
        ((6, 0, *args[2:]), "m"),
        ((6, 5, np.array([2**62, 1]), args[3]), "a"),
        ((6, 5, args[2], np.array([0, 1])), "k"),
    ):
        with pytest.raises(InvertibilityError) as caught:
            counted(*bad)
        assert caught.value.variable == variable

    @reversible
    def halved(n, x):
        n *= x

    with pytest.raises(IrreversibleError, match="only ints"):
        halved(3, 0.5)


@reversible
def parts(z, w, x):
    z.real += x * w.imag[0]
    w[1].imag -= np.sin(x)
    z.imag += z.real * x
    w.real[:2] += z.imag * w.imag[:2]
    x += w.real.sum() * w.T[0].real


def test_real_and_imaginary_parts_are_places():
    args = (1.0 - 2j, np.array([0.3 + 1j, -0.7j, 2.0]), 0.4)
    there = parts(*args)
    z, w, x = args
    z += x * w[0].imag
    w = w - np.array([0.0, 1j * np.sin(x), 0.0])
    z = complex(z.real, z.imag + z.real * x)
    w = w + np.array([z.imag * w[0].imag, z.imag * w[1].imag, 0.0])
    x += w.real.sum() * w[0].real
    np.testing.assert_allclose(flat(there), flat((z, w, x)), rtol=1e-14)
    np.testing.assert_allclose(flat((~parts)(*there)), flat(args), rtol=1e-13, atol=1e-15)
    assert check_gradient(parts, *args) < 1e-8
    assert check_gradient(~parts, *there) < 1e-8

    def loss(x):
        z, w, y = parts(args[0] * x, args[1] + 1j * x, x)
        return z.real * w[1].imag + y

    for run in (fwdad.grad(loss), fwdad.jit(fwdad.grad(loss))):
        np.testing.assert_allclose(run(0.4), fwdad.derivative(loss, 0.4), rtol=1e-12)

    @reversible
    def wrong(z, w):
        z.real += w

    with pytest.raises(IrreversibleError, match="only real numbers"):
        wrong(1j, 2j)

    def own(z):
        z.real += z.real * z.imag

    with pytest.raises(IrreversibleError, match="own update"):
        reversible(own)


def test_attributes_and_methods_of_arrays_are_read():
    @reversible
    def reads(y, x):
        y += x.sum() * x.T[0] + x.mean() * x.max()

    x = np.array([1.0, 2.0, 4.0])
    expected = fwdad.jacobian(lambda x: x.sum() * x[0] + x.mean() * x.max(), x)
    np.testing.assert_allclose(fwdad.grad(reads, argnums=1)(0.0, x), expected, rtol=1e-14)

    def own(x):
        x[0] += x.sum()

    with pytest.raises(IrreversibleError, match="own update"):
        reversible(own)


def test_a_gather_is_read():
    @reversible
    def gathers(y, x, at):
        y += x[at]
        y -= x[at[0]] * x[at[::-1]]

    x, at = np.array([1.0, 2.0, 4.0]), np.array([2, 2])
    y, *_ = gathers(np.zeros(2), x, at)
    np.testing.assert_allclose(y, x[at] - x[2] * x[at[::-1]])
    assert check_gradient(gathers, y, x, at) < 1e-8

    def loss(x):
        return np.sum(np.array([1.0, 3.0]) * gathers(np.zeros(2), x, at)[0])

    expected = fwdad.jacobian(loss, x)
    for run in (fwdad.grad(loss), fwdad.jit(fwdad.grad(loss), backend="numpy")):
        np.testing.assert_allclose(run(x), expected, rtol=1e-14)


def test_a_namespace_without_a_name():
    """As ``exec`` makes one for code that is generated."""
    code = "def rotate(x, y):\n    x += np.sin(y)\n"
    name = "<generated rotation>"
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    namespace = {"np": np}
    exec(compile(code, name, "exec"), namespace)
    rotate = reversible(namespace["rotate"])
    gradient = fwdad.grad(lambda y: rotate(0.5, y)[0])(1.2)
    assert gradient == pytest.approx(np.cos(1.2), rel=1e-15)

"""Places: elements beside slices, parts of complex numbers, what cannot be updated."""

from dataclasses import dataclass

import numpy as np
import pytest

import fwdad
from fwdad.errors import InvertibilityError, IrreversibleError
from fwdad.reversible import (
    ancilla,
    check_gradient,
    check_inverse,
    compute,
    copy_out,
    free,
    reversible,
)

# -- an element beside a slice


@reversible
def forward_substitution(x, a):
    for i in range(len(x)):
        x[i] -= np.dot(a[i, :i], x[:i])


@reversible
def backward_substitution(x, a):
    for i in range(len(x) - 1, -1, -1):
        x[i] -= np.sum(a[i, i + 1 :] * x[i + 1 :])


@pytest.mark.parametrize(
    ("f", "triangle"),
    [(forward_substitution, np.tril), (backward_substitution, np.triu)],
    ids=["forwards", "backwards"],
)
def test_an_element_beside_a_slice(f, triangle):
    rng = np.random.default_rng(0)
    a, x = rng.normal(size=(4, 4)), rng.normal(size=4)
    m = triangle(a) - np.diag(np.diag(a)) + np.eye(4)
    np.testing.assert_allclose(f(x, a)[0], np.linalg.solve(m, x), rtol=1e-12)
    check_inverse(f, x, a)
    check_gradient(f, x, a)
    gradient = fwdad.jit(fwdad.grad(lambda x: np.sum(f(x, a)[0])))(x)
    np.testing.assert_allclose(gradient, np.linalg.solve(m.T, np.ones(4)), rtol=1e-12)


def test_an_element_that_a_slice_contains_raises():
    @reversible
    def behind(x, i):
        x[i] += np.sum(x[i + 1 :])

    @reversible
    def before(x, i):
        x[i + 2] += np.sum(x[:i])

    x = np.arange(4.0)
    for f, element, part in (
        (behind, lambda i: i, lambda i: slice(i + 1, None)),
        (before, lambda i: i + 2, lambda i: slice(None, i)),
    ):
        for i in range(-4, 4):
            if element(i) >= 4:
                continue
            if element(i) % 4 in range(4)[part(i)]:
                with pytest.raises(InvertibilityError, match="two different elements"):
                    f(x, i)
            else:
                np.testing.assert_allclose(f(x, i)[0][element(i)], x[element(i)] + sum(x[part(i)]))


def test_what_is_complex_is_not_added_to_real_elements():
    @reversible
    def f(x, z):
        x[0] += z

    with pytest.raises(IrreversibleError, match=r"'x\[0\]' is float64.*complex"):
        f(np.arange(2.0), 1j)


def test_an_array_of_indices_is_refused():
    @reversible
    def f(x):
        x[[0, 1]] += 1.0

    with pytest.raises(IrreversibleError, match="array for an index"):
        f(np.arange(2.0))


# -- parts of complex numbers


@dataclass
class Waves:
    z: complex
    w: np.ndarray


@reversible
def in_expressions(y, z, waves):
    t = ancilla(z.real)
    y += t * t
    free(t, z.real)
    if z.imag > 0:
        y += z.real**3
    else:
        y -= z.imag
    with compute():
        s = ancilla(0.0)
        s += waves.z.real * waves.w[1].imag
        with copy_out():
            y += np.sin(s)
    waves.z.real += waves.w[0].imag ** 2
    waves.w.imag[1] += waves.w.real[0]
    waves.w[0].imag -= z.real
    y += np.sum(waves.w.real**2)
    for v in waves.w:
        y += v.real * v.imag


def test_parts_of_complex_numbers_in_expressions():
    args = (0.3, 1.2 + 0.4j, Waves(0.2 - 0.7j, np.array([0.1 + 0.2j, 0.5 - 0.3j])))
    check_inverse(in_expressions, *args)
    check_gradient(in_expressions, *args)
    check_gradient(in_expressions, args[0], -args[1], args[2])


@reversible
def parts_of_real(y, x):
    y += x.real**2 + x.imag


def test_parts_of_real_numbers():
    assert parts_of_real(0.0, 3.0)[0] == 9.0
    assert fwdad.grad(parts_of_real, argnums=1)(0.0, 3.0) == 6.0


def test_a_part_is_not_swapped():
    @reversible
    def f(z, x):
        z.real, x = x, z.real

    with pytest.raises(
        fwdad.errors.UnsupportedTypeError, match=r"(?s)'z\.real'.*\+= and -=.*line \d+"
    ):
        f(1j, 1.0)

"""Arrays that are overwritten after a function of a library, or of the user's, has read them."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special
from numpy.testing import assert_allclose

import fwdad
from fwdad.transforms.reverse.structure import NotReversibleError
from tests.differences import central_differences

X = np.array([0.7, 1.1, 0.4])
V = np.array([1.0, 0.5, -0.7])


def cubed(a):
    return a**3


@fwdad.frule(cubed)
def cubed_frule(primals, tangents):
    (a,), (a_dot,) = primals, tangents
    return cubed(a), a_dot * (3 * a**2)


def cubed_somewhere(a):
    return a**3


fwdad.frule(cubed_somewhere, returns="either")(
    lambda primals, tangents: (primals[0] ** 3, 3 * primals[0] ** 2 * tangents[0])
)


FUNCTIONS = {
    "expm": scipy.linalg.expm,
    "solve": lambda a: scipy.linalg.solve(a, X),
    "logsumexp": lambda a: scipy.special.logsumexp(a, axis=0),
    "softmax": lambda a: scipy.special.softmax(a, axis=1),
    "einsum": lambda a: np.einsum("ij,jk->ik", a, a),
    "cumprod": lambda a: np.cumprod(a, axis=0),
    "outer": lambda a: np.outer(a[0], a[1]),
    "kron": lambda a: np.kron(a, a),
    "diagonal": lambda a: np.diagonal(a) ** 3,
    "cubed": cubed,
    "cubed_somewhere": cubed_somewhere,
}
RECORDED = {"diagonal", "cubed_somewhere"}


def overwritten(f):
    def g(x):
        a = np.empty((3, 3))
        a[:] = np.outer(x, x) + np.eye(3)
        a[1] *= x[2]
        y = f(a)
        a[0] = 5.0
        a[1:] *= 2.0
        return np.sum(y * y) + np.sum(np.cos(y))

    return g


@pytest.mark.every(2, first=1)
@pytest.mark.slow_cases("expm", "softmax", "solve")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_was_read(name):
    f = overwritten(FUNCTIONS[name])
    expected = central_differences(f, X)
    assert_allclose(fwdad.grad(f)(X), expected, rtol=1e-8)
    assert_allclose(fwdad.vjp(f, X)[1](1.0), expected, rtol=1e-8)

    def slope(x):
        return fwdad.jvp(f, x, V)[1]

    second = central_differences(lambda x: fwdad.jacobian(f, x, mode="forward"), X) @ V
    assert_allclose(fwdad.hvp(f, X, V), second, rtol=1e-8)
    assert_allclose(fwdad.grad(slope)(X), second, rtol=1e-8)
    if name not in RECORDED:
        assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(X), expected, rtol=1e-8)
        gradient = fwdad.jit(fwdad.grad(slope), backend="numpy")
        assert_allclose(gradient(X), second, rtol=1e-8)


def test_what_may_be_a_view_is_refused_by_a_tape():
    """A function of the user's that may return a view of its argument: `grad` records it."""
    f = overwritten(cubed_somewhere)
    with pytest.raises(NotReversibleError, match="cubed_somewhere returns may be a view"):
        fwdad.jit(fwdad.grad(f), backend="numpy")(X)
    assert "is recorded" in fwdad.explain(fwdad.grad(f), X)


def test_what_is_used_before_it_is_overwritten():
    """In a time loop the step is used by the update itself: that is a tape."""

    def f(x):
        u = x.copy()
        for _ in range(3):
            u += 0.1 * cubed(u)
            u[:] = u - 0.2 * cubed(u)
        return np.sum(u)

    expected = central_differences(f, X)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(X), expected, rtol=1e-9)


def powers_in_place(z):
    y = z.copy()
    y[0] = 1
    y **= 2
    return np.sum(np.real(y * 1.0) ** 2)


def products_in_place(z):
    y = z * 1.0
    y *= z[::-1]
    y[1] *= y[0]
    return np.sum(np.real(y * 1.0) * np.arange(3.0))


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("f", [powers_in_place, products_in_place])
def test_complex_arrays_of_which_the_real_part_is_used(f, backend):
    """Their cotangents begin as real ones."""
    z = X + 1j * V
    of_parts = central_differences(lambda p: f(p[0] + 1j * p[1]), np.stack([X, V]))
    expected = of_parts[0] + 1j * of_parts[1]
    assert_allclose(fwdad.grad(f)(z), expected, rtol=1e-8, atol=1e-8)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend=backend)(z), expected, rtol=1e-8, atol=1e-8)

"""Derivatives of reshapes that may be views or copies, of arrays that are written."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

FORMS = {
    "ravel of a transpose": lambda a: a.T.ravel(),
    "reshape of a transpose": lambda a: a.T.reshape(-1),
    "of every second column": lambda a: a[:, ::2].reshape(-1),
    "in order F": lambda a: a.ravel(order="F"),
    "reshape in order F": lambda a: a.reshape((4, 3), order="F"),
    "a view in order F": lambda a: a.T.reshape((3, 4), order="F"),
    "by rows": lambda a: a.ravel(),
    "patches": lambda a: a.reshape(3, 2, 2).transpose(1, 0, 2).reshape(2, -1),
    "from the end": lambda a: a[::-1].reshape(-1),
}
TRANSFORMS = {
    "hessian": fwdad.hessian,
    "forward over reverse": lambda f: fwdad.jacfwd(fwdad.grad(f)),
    "reverse over reverse": lambda f: fwdad.jacrev(fwdad.grad(f)),
    "forward over forward": lambda f: fwdad.jacfwd(fwdad.jacfwd(f)),
}


def program(form, when):
    """A function of three numbers; the array is written before the reshape, or again after it."""

    def f(w):
        a = np.zeros((3, 4))
        for i in range(4):
            a[:, i] = w * (i + 1)
        v = form(a)
        if when == "after":
            a[0, 1] = w[1] * w[0]
        y = np.tanh(v)
        return np.sum(y * y * (np.arange(1.0, y.size + 1).reshape(y.shape))) + a[0, 1]

    return f


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("form", FORMS)
def test_a_copy_gives_back_its_cotangent(form, when, transform, backend):
    f, w, h = program(FORMS[form], when), np.linspace(0.1, 1.0, 3), 1e-6
    slope = fwdad.grad(f)  # first derivatives are tested elsewhere, and are no tape's at first
    expected = [(slope(w + h * e) - slope(w - h * e)) / (2 * h) for e in np.eye(3)]
    found = fwdad.jit(TRANSFORMS[transform](f), backend=backend)(w)
    assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


def columns_filled(x):
    m = np.empty((2, 3), order="F")
    m[0] = x[1]
    m[1] = x[0] ** 2
    return m.ravel("K")


def added_to_zeros(x):
    u = np.zeros_like(x)
    u += x
    return u.ravel("K")


def filled_like(x):
    u = np.full_like(x, 2.0)
    u[0] = x[1] * x[0]
    return u.reshape(-1, order="A")


def written_through_a_copy(x):
    y = x.T * 2
    v = y.reshape(-1)
    v[1] = 9.0
    return y.ravel("K")


def written_in_rows(x):
    y = np.zeros((2, 3))
    y[0] = x[1]
    v = y.ravel("K")
    v[1] = x[0, 0] ** 2
    return y


def an_einsum_that_is_a_view(x):
    return np.einsum("ij->ij", x.T).ravel("K")


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize(
    "f",
    [
        columns_filled, added_to_zeros, filled_like, written_through_a_copy, written_in_rows,
        an_einsum_that_is_a_view,
    ],
)  # fmt: skip
def test_elements_read_in_the_order_of_memory(f, layout, backend):
    x = np.array(np.arange(6.0).reshape(2, 3) + 0.5, order=layout)
    expected = central_differences(f, x)
    assert_array_equal(fwdad.jit(lambda x: fwdad.jvp(f, x, 2 * x)[0], backend=backend)(x), f(x))
    for transformed in (fwdad.jacfwd(f), fwdad.jacfwd(f, chunk=2), fwdad.jacrev(f)):
        found = fwdad.jit(transformed, backend=backend)(x)
        assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_a_view_in_the_order_of_memory_is_not_written():
    def f(x):
        y = x.T * 2
        v = y.ravel("K")
        v[1] = 9.0
        return y

    for transformed in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        with pytest.raises(fwdad.errors.UntraceableError, match="written later"):
            fwdad.jit(transformed, backend="numpy")(np.ones((2, 3)))

"""Second derivatives of reshapes that may be views or copies, of arrays that are written."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

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

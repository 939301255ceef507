"""Floating-point numbers as options: compiled as any input, and no derivative by them is lost."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import MissingRuleError
from fwdad.transforms.reverse.structure import NotReversibleError
from tests.differences import difference_along

X = np.array([0.4, -1.3, 0.7, 2.2])
OPTIONS = {
    "ddof": lambda x, t: np.var(x, ddof=t),
    "ddof by position": lambda x, t: np.std(x, None, None, None, t),
    "ord": lambda x, t: np.linalg.norm(x, ord=t),
    "along an axis": lambda x, t: np.var(np.outer(x, x), axis=1, ddof=t).sum(),
}
WAYS = {
    "jvp": lambda f, t: fwdad.jvp(fwdad.jit(f), t, 1.0),
    "linearize": lambda f, t: fwdad.linearize(fwdad.jit(f), t)[1](1.0),
    "grad": lambda f, t: fwdad.grad(fwdad.jit(f))(t),
    "jacobian": lambda f, t: fwdad.jacobian(fwdad.jit(f), t),
    "jvp of a tape": lambda f, t: fwdad.jvp(fwdad.trace(f, t), t, 1.0),
    "grad of a tape": lambda f, t: fwdad.grad(fwdad.trace(f, t))(t),
    "compiled jvp": lambda f, t: fwdad.jit(lambda t: fwdad.jvp(f, t, 1.0))(t),
    "compiled grad": lambda f, t: fwdad.jit(fwdad.grad(f))(t),
}


@pytest.mark.every(2, of="numba")
@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("name", OPTIONS)
def test_values_and_derivatives_by_the_rest(name, backend):
    f = OPTIONS[name]
    compiled = fwdad.jit(f, backend=backend)
    compiled_grad = fwdad.jit(fwdad.grad(f), backend=backend)
    for t in (0.7, 1.5, np.float64(2.0)):
        assert_allclose(compiled(X, t), f(X, t), rtol=1e-14)
        wanted = difference_along(lambda s, t=t: f(X + s * X**2, t), 0.0, 1.0)
        assert_allclose(compiled_grad(X, t) @ X**2, wanted, rtol=1e-8)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OPTIONS)
def test_a_derivative_by_an_option_is_refused(name, way):
    with pytest.raises((MissingRuleError, NotReversibleError)):
        WAYS[way](lambda t: OPTIONS[name](X, t), 0.7)


def test_a_primal_with_the_name_of_an_option():
    ndimage = pytest.importorskip("scipy.ndimage")
    turn = np.array([[0.8, -0.5], [0.4, 0.9]])

    def f(t):
        return ndimage.affine_transform(np.outer(X, X), turn, offset=t, mode="reflect").sum()

    wanted = difference_along(f, 0.3, 1.0)
    assert abs(wanted) > 0.1
    for way in WAYS.values():
        found = way(f, 0.3)
        assert_allclose(found[1] if isinstance(found, tuple) else found, wanted, rtol=1e-8)

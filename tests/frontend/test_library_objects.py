"""Objects of libraries that f makes of constants: they are new at each run of a tape."""

import sys

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

X = np.array([2.0, 3.0])


def in_place(p):
    c = Chebyshev([1.0, 2.0, 3.0])
    c.coef *= p[0]
    c.coef[1] += p[1]
    return np.sum(c.coef**2)


def one_element(p):
    c = np.poly1d([1.0, 2.0, 3.0])
    c.coeffs[0] *= p[0]
    return np.sum(c.coeffs**2)


def in_a_loop(p):
    c = Chebyshev([1.0, 2.0, 3.0])
    for _ in range(3):
        c.coef = c.coef * p[0]
    return np.sum(c.coef**2)


def on_two_ways(p):
    c = Chebyshev([1.0, 2.0, 3.0])
    if p[0] > 1.0:
        c.coef = c.coef * p[1]
    return np.sum(c.coef**2)


DERIVATIVES = {
    in_place: np.array([68.0, 14.0]),
    one_element: np.array([4.0, 0.0]),
    in_a_loop: np.array([2688.0, 0.0]),
    on_two_ways: np.array([0.0, 84.0]),
}
MODES = {
    "jvp": lambda f: lambda x: fwdad.jvp(f, x, np.eye(2))[1],
    "forward": lambda f: lambda x: fwdad.jacobian(f, x, mode="forward", chunk=1),
    "grad": fwdad.grad,
    "jit(grad)": lambda f: fwdad.jit(fwdad.grad(f), backend="numpy"),
    "jit(jacfwd)": lambda f: fwdad.jit(fwdad.jacfwd(f), backend="numpy"),
    "jit": lambda f: lambda x: fwdad.jacobian(fwdad.jit(f), x, mode="reverse"),
}


@pytest.mark.every(3, of="jit", first=1)
@pytest.mark.slow_cases("in_a_loop-jit")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("f", DERIVATIVES, ids=lambda f: f.__name__)
def test_each_call_makes_its_own(f, mode):
    derivative = MODES[mode](f)
    for _ in range(3):
        assert_allclose(derivative(X), DERIVATIVES[f], rtol=1e-14)


@pytest.mark.parametrize("f", DERIVATIVES, ids=lambda f: f.__name__)
def test_values(f):
    compiled = fwdad.jit(f, backend="numpy")
    assert [compiled(X) for _ in range(3)] == [f(X)] * 3


LIBRARY = """
import numpy as np
from weakref import WeakKeyDictionary

class Inner:
    def __init__(self, n):
        self.array = np.ones(n)

class Nested:
    def __init__(self, n):
        self.untraceable = WeakKeyDictionary()
        self.blocks = [np.ones(n), np.ones(n)]
        self.twice = np.ones(n)
        self.again = self.twice
        self.inner = Inner(n)
"""


@pytest.fixture
def nested(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "nested_arrays.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(str(folder))
    yield __import__("nested_arrays").Nested
    del sys.modules["nested_arrays"]


def test_one_array_by_two_names(nested):
    def f(p):
        made = nested(2)
        made.twice *= p
        return np.sum(made.again**2)

    for derivative in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        assert_array_equal(derivative(X), 2 * X)
        assert_array_equal(derivative(X), 2 * X)


def item(made):
    return made.blocks[0]


def attribute(made):
    return made.inner.array


@pytest.mark.parametrize("part", [item, attribute], ids=lambda part: part.__name__)
def test_arrays_further_inside_are_written(nested, part):
    def f(p):
        a = part(nested(2))
        a *= p
        return np.sum(a**2)

    for derivative in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        assert_array_equal(derivative(X), 2 * X)
        assert_array_equal(derivative(X), 2 * X)

"""`chunk=N` of a Jacobian inside of a traced function: one loop, one program for all lengths."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.ops import Loop
from tests.differences import central_differences

BACKENDS = ["numpy", "numba"]


def field(x):
    return np.sin(x[1:]) * x[:-1] + np.sum(x)


def looped(x):
    y = x * 1.0
    for i in range(1, len(x)):
        y[i] = y[i] * 0.5 + y[i - 1] * x[i]
    return y


def branching(x):
    if x[0] > 0.5:
        return x**2
    return x[::-1] * 3.0


def writing(x):
    x[0] = x[1] * 2
    return x * x


def number(x):
    return np.sum(x * x[::-1])


def matrix(x):
    return np.outer(x, x[:2]) ** 2


FUNCTIONS = [field, looped, branching, writing, number, matrix]


def point(n):
    return np.linspace(0.2, 1.1, n)


@pytest.mark.every(6, of="numba", first=4)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_one_program_for_all_lengths(f, backend):
    """At 1, 2 and 3 lanes and more, with ragged last chunks, and fewer columns than lanes."""
    for width in (1, 2, 3, 60):
        J = fwdad.jit(lambda x, width=width: fwdad.jacobian(f, x, chunk=width), backend=backend)
        for n in (50, 51, 52, 53, 80):
            assert_allclose(J(point(n)), fwdad.jacobian(f, point(n)), rtol=1e-12, atol=1e-12)
        assert fwdad.cache_info(J).traces == 1
    assert_allclose(J(point(7)), central_differences(f, point(7)), rtol=1e-6, atol=1e-8)


@pytest.mark.slow_cases("numba")
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_way_to_ask(backend):
    """jacfwd, jacrev, value_and_jacobian, hessian; a chunk from outside; with `out`."""
    width = 4
    for J in (
        fwdad.jit(fwdad.jacfwd(field, chunk=3), backend=backend),
        fwdad.jit(fwdad.jacrev(field, chunk=3), backend=backend),
        fwdad.jit(lambda x: fwdad.jacobian(field, x, chunk=width), backend=backend),
        fwdad.jit(lambda x: fwdad.value_and_jacobian(field, x, chunk=2)[1], backend=backend),
    ):
        for n in (50, 51, 52, 53, 200):
            assert_allclose(J(point(n)), fwdad.jacobian(field, point(n)), atol=1e-13)
        assert fwdad.cache_info(J).traces == 1
    J = fwdad.jit(fwdad.jacobian(field, chunk=3), backend=backend)
    for n in (50, 51, 200, 50):
        out = np.full((n - 1, n), np.nan)
        assert J(point(n), out=out) is out
        assert_allclose(out, fwdad.jacobian(field, point(n)), atol=1e-13)
    assert fwdad.cache_info(J).traces == 1
    with pytest.raises(fwdad.errors.OutError, match="another shape"):
        J(point(50), out=np.empty((50, 50)))
    H = fwdad.jit(lambda x: fwdad.hessian(number, x, chunk=3), backend=backend)
    for n in (50, 51, 53):
        assert_allclose(H(point(n)), 2 * np.eye(n)[::-1], atol=1e-13)


def test_memory_grows_with_the_width():
    """Arrays of the loop have N lanes: no operation makes one of n by n beside J."""
    J = fwdad.jit(fwdad.jacfwd(field, chunk=3), backend="numpy")
    J(point(50))
    program = J.last.tape.program
    assert program.count(Loop) == 1
    free = [v for op in program.walk() for v in op.outputs if getattr(v.type, "ndim", 0) == 2]
    wide = [v for v in free if v.type.shape[0] != 3 and v.type.shape[1] != 3]
    assert len(wide) <= 2  # J, and the columns of it that are written


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_matrix_as_argument(backend):
    f = lambda a: np.sum(a**2, axis=0) * a[0]
    J = fwdad.jit(lambda a: fwdad.jacobian(f, a, chunk=4), backend=backend)
    for shape in ((30, 25), (31, 26)):
        a = np.linspace(0.1, 1.0, shape[0] * shape[1]).reshape(shape)
        assert_allclose(J(a), fwdad.jacobian(f, a), atol=1e-13)
    assert fwdad.cache_info(J).traces == 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_nested(backend):
    """Derivatives of such a Jacobian, by both modes."""
    x = point(7)
    inner = lambda x: np.sum(fwdad.jacobian(field, x, chunk=3) ** 2)
    wanted = central_differences(inner, x)
    f = fwdad.jit(inner, backend=backend)
    assert_allclose(fwdad.grad(f)(x), wanted, rtol=1e-6)
    assert_allclose(fwdad.jacfwd(f)(x), wanted, rtol=1e-6)
    assert_allclose(fwdad.jit(fwdad.grad(inner), backend=backend)(x), wanted, rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_goes_all_at_once(backend):
    """Composites, complex numbers and effects: as without a chunk."""
    f = lambda x: {"a": x**2, "n": 3, "b": np.sum(x)}
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, chunk=3)["b"], backend=backend)
    assert_allclose(J(point(8)), np.ones(8))
    g = lambda z: z**2 * z[::-1]
    z = point(5) * (1 + 0.5j)
    J = fwdad.jit(lambda z: fwdad.jacobian(g, z, chunk=2, holomorphic=True), backend=backend)
    assert_allclose(J(z), fwdad.jacobian(g, z, holomorphic=True))
    J = fwdad.jit(lambda x: fwdad.jacobian(lambda x: (x, np.sum(x)), x, chunk=2, stack=True))
    assert_allclose(J(point(5)), np.vstack([np.eye(5), np.ones(5)]))
    printing = fwdad.jit(lambda x: fwdad.jacobian(lambda x: x * np.exp(1j * x), x, chunk=2))
    assert_allclose(printing(point(5)), fwdad.jacobian(lambda x: x * np.exp(1j * x), point(5)))

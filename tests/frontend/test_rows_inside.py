"""Jacobians inside of compiled functions by the cheaper of columns and rows."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.linspace(0.3, 1.7, 12)
W = np.linspace(0.1, 0.9, 9)
pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")


def number(x):
    return np.sum(np.sin(x) * x)


def of_python(x):
    return float(x[0] * x[5])


def two(x):
    return np.array([x @ x, math.sin(x[0]) * math.cos(x[0]) * x[3]])


def structure(x):
    return {"s": x[0] * x[1], "v": x[2:4] ** 2, "n": 3, "t": ()}


def loop(x):
    total, out = 0.0, np.zeros(2)
    for i in range(len(x)):
        total = total + math.sin(x[i]) * math.cos(x[i])
        out[i % 2] += total * x[i]
    return out


def in_place(x):
    x *= 2.0
    x[0] = x[1] * x[2]
    return x[:2] * x[3]


def rotated(x):
    if x[0] > 0.2:
        angle = math.sqrt(x @ x)
        c, s = math.cos(angle), math.sin(angle)
        r = x[0] / angle * c + s * x[1]
    else:
        r = x[2]
    return np.array([r, r * x[4]])


def view(x):
    return x[3:5]


def until(x):
    y = x
    while np.sum(y) > 1.0:
        y = y * 0.7
    return np.array([np.sum(y**2), y[0]])


def none_moves(x):
    return np.array([1.0, 2.0])


def square(x):
    return x**2


def reshaped(x):
    y = x.reshape(3, 4).copy()
    for _ in range(3):
        y -= 0.3 * np.fft.ifft2(y).real
        y = np.tanh(y)
    return y.ravel()[::6]


PROGRAMS = [number, of_python, two, structure, loop, in_place, rotated, view, until, reshaped]


def goes_by_rows(compiled):
    program = compiled.specialisations()[0].tape.program
    return any(op.location is not None and op.location.reverse for op in program.walk())


def flat(tree):
    return fwdad.ravel(tree)[0]


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("static_shapes", [False, True])
@pytest.mark.parametrize("f", [*PROGRAMS, none_moves, square])
def test_all_modes_agree(f, static_shapes, backend):
    wanted = fwdad.jacobian(f, X.copy(), mode="forward")
    for mode in ("auto", "reverse", "forward"):
        compiled = fwdad.jit(
            lambda x, mode=mode: fwdad.value_and_jacobian(f, x, mode=mode),
            backend=backend,
            static_shapes=static_shapes,
        )
        for x in (X, X[::-1]):
            y, found = compiled(x.copy())
            assert_allclose(flat(y), flat(f(x.copy())), rtol=1e-13)
            if x is X:
                assert type(found) is type(wanted)
                assert np.shape(found) == np.shape(wanted)
                assert_allclose(flat(found), flat(wanted), rtol=1e-12, atol=1e-14)
        assert goes_by_rows(compiled) == (mode != "forward" and f in PROGRAMS)


@pytest.mark.parametrize("f", [number, two, loop, rotated, reshaped])
def test_against_differences(f):
    assert_allclose(fwdad.jit(fwdad.jacrev(f))(X), central_differences(f, X), rtol=1e-6, atol=1e-8)


def test_several_arguments_and_auxiliary_results():
    def f(x, w):
        return np.array([x @ x + w[0], w @ w]), {"k": x * 2.0}

    def of(f):
        return lambda x, w: fwdad.jacobian(f, x, args=(w,), argnums=(0, 1), has_aux=True)

    (by_x, by_w), aux = fwdad.jit(of(f))(X, W)
    assert_allclose(by_x, [2 * X, 0 * X])
    assert_allclose(by_w, [np.eye(9)[0], 2 * W])
    assert_allclose(aux["k"], 2 * X)


def test_derivatives_of_rows():
    def energy(x):
        return np.sum(fwdad.jacobian(two, x) ** 2)

    wanted = fwdad.grad(lambda x: np.sum(fwdad.jacobian(two, x, mode="forward") ** 2))(X)
    assert_allclose(fwdad.jit(fwdad.grad(energy))(X), wanted, rtol=1e-11)
    twice = fwdad.jit(lambda x: fwdad.jacobian(lambda x: fwdad.jacobian(number, x), x))
    assert_allclose(twice(X), fwdad.hessian(number)(X), rtol=1e-12)


def test_single_precision_and_one_matrix():
    x = X.astype(np.float32)
    found = fwdad.jit(lambda x: fwdad.jacobian(two, x))(x)
    assert found.dtype == np.float32
    assert_allclose(found, fwdad.jacobian(two, x), rtol=1e-6)
    stacked = fwdad.jit(lambda x: fwdad.jacobian(two, x, stack=True))(X)
    assert_allclose(stacked, fwdad.jacobian(two, X), rtol=1e-12)


def test_complex_numbers_go_by_columns():
    f = fwdad.jit(lambda x: fwdad.jacobian(lambda x: np.array([np.sum((x + 1j) ** 2)]), x))
    assert_allclose(f(X), 2 * (X + 1j)[None], rtol=1e-12)


def test_many_small_ones_in_a_loop():
    def blocks(points):
        out = np.empty((len(points), 2, 12))
        for k in range(len(points)):
            out[k] = fwdad.jacobian(rotated, points[k])
        return out

    points = np.array([X, X[::-1], -X])
    wanted = [fwdad.jacobian(rotated, p, mode="forward") for p in points]
    compiled = fwdad.jit(blocks)
    assert_allclose(compiled(points), wanted, rtol=1e-12, atol=1e-14)
    assert goes_by_rows(compiled)

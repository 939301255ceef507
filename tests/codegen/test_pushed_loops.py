"""Loops that are pushed forward, under Numba: products of rows, stacks of lanes, repeated scalings.

Each is compared with duals under NumPy and with differences.
"""

import math
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.tiers import every

pytest.importorskip("numba")

import fwdad
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Loop, walk
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.forward import push_forward
from tests.differences import difference_along


def cholesky(a):
    a = a.copy()
    for i in range(len(a)):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = math.sqrt(a[i, i])
    return np.sum(np.sin(a))


def solved(l):
    x = np.zeros(len(l))
    for i in range(len(l)):
        x[i] = (l[0, i] - l[i, :i] @ x[:i]) / l[i, i]
    return np.sum(x * x)


def orthogonal(a):
    a = a.copy()
    q = np.zeros_like(a)
    for k in range(a.shape[1]):
        q[:, k] = a[:, k] / math.sqrt(a[:, k] @ a[:, k])
        for j in range(k + 1, a.shape[1]):
            a[:, j] -= q[:, k] * (q[:, k] @ a[:, j])
    return np.sum(q[0] * q[1] ** 2)


def correlated(a):
    b = a - np.sum(a, axis=0) / len(a)
    b = b / np.sqrt(np.sum(b * b, axis=0))
    total = 0.0
    for i in range(len(a) - 1):
        total += np.sum((b[:, i] @ b[:, i + 1 :]) ** 3)
    return total


def scaled_rows(a):
    total = np.zeros(len(a))
    for i in range(len(a)):
        e = np.exp(a[i] - np.max(a[i]))
        total[i] = np.sum(a[:, i] * e / np.sum(e)) * a[i] @ a[0]
    return np.sum(total**2)


def number(a):
    x, y = a[0, 0], a[0, 1]
    for _ in range(7):
        x, y = math.tanh(x * y) - 0.5 * math.sin(x), y + 0.1 * x
    return x * y


def open_ended(a):
    x, k = a[1, 0], 0
    while k < len(a) + 3 and x < 1e6:
        x = math.sqrt(x) * a[2, 1] if x > 1.0 else x * x + a[0, 2]
        k += 1
    return x


def recursive(a, i=0):
    if i == len(a):
        return 1.0
    return math.sin(a[i, i]) * recursive(a, i + 1) + a[i, 0] ** 2


PROGRAMS = [
    cholesky, solved, orthogonal, correlated, scaled_rows, number, open_ended, recursive,
]  # fmt: skip


def matrix(n=5):
    a = np.random.default_rng(3).normal(size=(n, n))
    return a @ a.T / n + np.eye(n)


@pytest.mark.parametrize(("f", "n"), every(3, product(PROGRAMS, [1, 2, 3, 9])))
def test_directions(f, n):
    a = matrix()
    directions = np.random.default_rng(n).normal(size=(n, *a.shape))
    pushed = fwdad.jit(lambda a, v: fwdad.jvp(f, a, v))
    y, y_dot = pushed(a, directions)
    expected_y, expected = fwdad.jvp(f, a, directions)
    assert_allclose(y, expected_y, rtol=1e-12)
    assert_allclose(y_dot, expected, rtol=1e-10)
    slopes = [difference_along(lambda t, d=d: f(a + t * d), 0.0) for d in directions]
    assert_allclose(y_dot, slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", PROGRAMS)
def test_second_derivatives(f):
    a, rng = matrix(), np.random.default_rng(0)
    gradient = fwdad.grad(f)
    v = rng.normal(size=(2, *a.shape))
    moved = [(gradient(a + 1e-6 * d) - gradient(a - 1e-6 * d)) / 2e-6 for d in v]
    product = fwdad.jit(lambda a, v: fwdad.hvp(f, a, v))(a, v[0])
    assert_allclose(product, moved[0], rtol=1e-5, atol=1e-6)
    both = fwdad.jit(lambda a, v: fwdad.jvp(gradient, a, v)[1])(a, v)
    assert_allclose(both, moved, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_products_of_other_dtypes(dtype):
    def squared(a):
        total = np.zeros(len(a), a.dtype)
        for i in range(len(a)):
            total[i] = a[i, ::2] @ a[::2, i]
        return np.sum(total * total)

    a = (matrix() + (0.3j if dtype is np.complex128 else 0)).astype(dtype)
    v = np.stack([a.T, a * a, np.ones_like(a)])
    options = {"holomorphic": dtype is np.complex128}
    found = fwdad.jit(lambda a, v: fwdad.jvp(squared, a, v, **options)[1])(a, v)
    assert found.dtype == dtype
    expected = fwdad.jvp(squared, a, v, **options)[1]
    assert_allclose(found, expected, rtol=1e-5 if dtype is np.float32 else 1e-12)


def test_a_row_that_is_written_while_its_product_is_used():
    def f(a):
        a = a.copy()
        for i in range(1, len(a)):
            row = a[i, :i]
            t = row @ a[0, :i]
            a[i, :i] = t
            a[0, :i] += row
        return np.sum(a**2)

    a = matrix()
    for n in (1, 2, 3):
        v = np.random.default_rng(n).normal(size=(n, *a.shape))
        found = fwdad.jit(lambda a, v: fwdad.jvp(f, a, v)[1])(a, v)
        slopes = [difference_along(lambda t, d=d: f(a + t * d), 0.0) for d in v]
        assert_allclose(found, slopes, rtol=1e-6)


def test_what_a_loop_repeats_is_multiplied_out_before_it():
    program, _ = push_forward(trace(correlated, matrix()).program, 1, [1])
    (loop,) = (op for op in program.block.ops if isinstance(op, Loop))
    inside = {v for op in walk(loop.body) for v in op.outputs}
    scalings = [
        op for op in walk(loop.body)
        if getattr(op, "function", None) is scale_lanes and not set(op.args) & inside
    ]  # fmt: skip
    assert not scalings


def test_no_call_of_numpy_where_lengths_may_be_one():
    def f(x, w):
        for k in range(3):
            x = np.tanh(x * w[k] + w[0])
        return np.sum(x)

    x, w = np.array([0.3, -0.2, 0.9]), np.linspace(0.1, 0.9, 9).reshape(3, 3)
    product = fwdad.jit(lambda x, v, w: fwdad.hvp(lambda x: f(x, w), x, v))
    v = np.array([1.0, -2.0, 0.5])
    gradient = fwdad.grad(lambda x: f(x, w))
    moved = (gradient(x + 1e-6 * v) - gradient(x - 1e-6 * v)) / 2e-6
    assert_allclose(product(x, v, w), moved, rtol=1e-6)
    assert "NumPy" not in str(fwdad.explain(product, x, v, w))

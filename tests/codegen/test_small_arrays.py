"""Loops whose state is a small array, compiled: their lanes live in registers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.api.jit import cache_info, explain, jit
from fwdad.ir.ops import Loop

pytest.importorskip("numba")

P = np.array([1.0, 2.0, 20.0, 10.0, 28.0, 8.0 / 3.0])
A = np.array([[0.1, -0.2, 0.3], [0.25, 0.5, -0.1], [-0.3, 0.2, 0.15]])


def lorenz(p, n):
    s = p[:3]
    for _ in range(n):
        x, y, z = s[0], s[1], s[2]
        rate = np.array([p[3] * (y - x), x * (p[4] - z) - y, x * y - p[5] * z])
        s = s + 1e-3 * rate
    return s


def products(p, n):
    s, scratch = p[:3], np.zeros(3)
    for k in range(n):
        scratch[0] = s[2] * p[3]
        scratch[1:] += np.sin(s[:2]) ** 2
        s = A @ s + np.where(scratch > 0.5, scratch, -s) / (k + 1.0)
        if s[-1] > 2.0:
            s[-1] = p[4] * 0.1
    return s


@pytest.mark.every(2)
@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
def test_directions_of_a_small_state(lanes):
    def push(p, v, n):
        return fwdad.jvp(lorenz, p, v, args=(n,))

    v = np.random.default_rng(lanes).standard_normal((lanes, 6))
    compiled = jit(push)
    for n in (50, 0, 1):
        for found, wanted in zip(compiled(P, v, n), push(P, v, n), strict=True):
            assert_allclose(found, wanted, rtol=1e-12)
    assert "run by Numba" in explain(compiled)
    (loop,) = (op for op in compiled.last.tape.program.block.ops if isinstance(op, Loop))
    held = [*loop.carried, *(v for op in loop.body.ops for v in op.outputs)]
    assert {v.type.shape for v in held} == {(), (lanes,)}


@pytest.mark.slow_cases("products")
@pytest.mark.parametrize("f", [lorenz, products])
def test_jacobian_of_a_small_state(f):
    J, value = jit(fwdad.jacfwd(f)), jit(f)
    for n in (20, 0, 1):
        assert_allclose(J(P, n), fwdad.jacobian(f, P, args=(n,)), rtol=1e-12, atol=1e-14)
        assert_allclose(value(P, n), f(P, n), rtol=1e-13)
        pushed = fwdad.jacobian(value, P, args=(n,))  # the traced program, pushed forward
        assert_allclose(pushed, fwdad.jacobian(f, P, args=(n,)), rtol=1e-12, atol=1e-14)
    assert "run by Numba" in explain(J)


def test_small_arrays_have_tapes_of_their_own_where_loops_gain():
    def f(s, n):
        for _ in range(n):
            s = s * 0.5 + 1.0
        return s

    def g(s, n):
        return np.sum(s) * n

    compiled, plain = jit(f), jit(g)
    for size in (100, 3, 200, 3, 4, 17, 4):
        s = np.linspace(0.0, 1.0, size)
        assert_allclose(compiled(s, 3), f(s, 3), rtol=1e-15)
        assert_allclose(plain(s, 3), g(s, 3), rtol=1e-15)
    assert cache_info(plain) == (1, 6)
    assert cache_info(compiled) == (3, 4)  # for all lengths, for 3 and for 4


def test_small_arrays_do_not_multiply_tapes_without_end():
    def f(s, n):
        for _ in range(n):
            s = s * 0.5 + 1.0
        return s

    compiled = jit(f)
    for size in range(2, 17):
        assert compiled.find((np.ones(size), 1), {})
    assert cache_info(compiled).traces == 8  # the others share one

"""Stacks of arrays that are longer than a cache: what lies next is asked for before its turn."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.call_entry import compile_program
from fwdad.frontend.trace import trace
from fwdad.transforms.passes import optimise


def orthonormal(a):
    """Gram and Schmidt's process, column by column, which overwrites columns."""
    a = a.copy()
    n = a.shape[1]
    q = np.zeros_like(a)
    for k in range(n):
        q[:, k] = a[:, k] / math.sqrt(a[:, k] @ a[:, k])
        for j in range(k + 1, n):
            a[:, j] -= q[:, k] * (q[:, k] @ a[:, j])
    return np.sum(q * np.cos(q))


def repeated(x, times):
    """Views of whatever length, of which each keeps its old content."""
    y = x.copy()
    for k in range(times):
        y[1:] = np.sin(y[1:]) * y[:-1] + 0.1 * k / times
    return np.sum(y)


def lines(f, *args):
    program = trace(fwdad.grad(f), *args).program
    optimise(program)
    return [line.strip() for line in compile_program(program).source.text.splitlines()]


def test_each_way_asks_ahead():
    found = [line for line in lines(orthonormal, np.eye(3)) if line.startswith("ahead(")]
    assert sorted(line[-2] + line[-3:-2] for line in found) == ["1 ", "1-"], found


@pytest.mark.slow_cases("shape0", "shape1")
@pytest.mark.parametrize("shape", [(90, 70), (300, 40), (3, 3)])  # 1.7 and 1.9 MB, 216 B
def test_gradient_of_columns(shape):
    rng = np.random.default_rng(0)
    a = rng.normal(size=shape)
    v = rng.normal(size=shape)
    found = np.sum(fwdad.jit(fwdad.grad(orthonormal))(a) * v)
    _, wanted = fwdad.jvp(orthonormal, a, v)
    assert_allclose(found, wanted, rtol=1e-8)


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize(("n", "times"), [(8, 30_000), (40, 5_000), (900, 300), (6000, 60)])
def test_gradient_of_views(n, times):
    """Views shorter than what is asked for, as long, and longer; stacks longer than 1 MB."""
    rng = np.random.default_rng(1)
    x, v = rng.normal(size=(2, n))
    assert n * times * 8 > 2**20
    found = fwdad.jit(fwdad.grad(repeated))(x, times) @ v
    _, wanted = fwdad.jit(lambda x, v: fwdad.jvp(lambda x: repeated(x, times), x, v))(x, v)
    assert_allclose(found, wanted, rtol=1e-9)

"""Stacks have room for what loops over ranges push before these begin, no more than that."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")

X = np.linspace(0.3, 1.2, 7)
M = np.outer(X, X + 0.5)[:6, :5].copy()


def rectangle(m, steps):
    u = m.copy()
    for _ in range(steps):
        for j in range(1, m.shape[1] - 1):
            u[1:-1, j] = np.sin(u[1:-1, j - 1]) * u[1:-1, j + 1]
    return np.sum(u)


def triangle(x, steps):
    """Windows that grow with the counter, upwards and downwards, by steps of two, too."""
    u = x.copy()
    for _ in range(steps):
        for k in range(1, len(u)):
            u[:k] = u[:k][::-1] * np.cos(u[k])
        for k in range(len(u) - 1, 0, -2):
            u[k:] *= np.sin(u[k])
    return np.sum(u)


def numbers(x, steps):
    total = x[0]
    for k in range(steps):
        for i in range(k, len(x)):
            total = total * x[i] + np.sin(total)
    return total


def leaves(x, steps):
    u = x.copy()
    for k in range(steps):
        for i in range(1, len(x)):
            u[i:] = u[i:] * np.sin(u[i - 1])
            if u[i] < 0.05:
                break
        u = u + 0.1 * k
    return np.sum(u)


def until(x, steps):
    """Nobody knows how often this runs."""
    u = x.copy()
    while np.sum(u) > 0.1 and steps > 0:
        u[1:] = u[1:] * np.sin(u[:-1])
        steps -= 1
    return np.sum(u)


def source(f, *args):
    return fwdad.show(fwdad.value_and_grad(f), *args, backend="numba")


@pytest.mark.parametrize(
    ("f", "x"),
    [(rectangle, M), (triangle, X), (numbers, X), (leaves, X), (until, X)],
)
def test_gradient(f, x):
    g = fwdad.jit(fwdad.grad(f), backend="numba")
    for steps in (3, 0, 40):
        wanted = fwdad.jacobian(f, x, args=(steps,), mode="forward")
        assert_allclose(g(x, steps), wanted, rtol=1e-10, atol=1e-12)
    short = x[: x.shape[0] // 2].copy()
    wanted = fwdad.jacobian(f, short, args=(3,), mode="forward")
    assert_allclose(g(short, 3), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("f", "x"), [(rectangle, M), (triangle, X), (numbers, X)])
def test_room_is_made_before_the_loops(f, x):
    code = source(f, x, 3)
    for stack in re.findall(r"^    (\w+) = growing", code, re.MULTILINE):
        made = rf"^        {stack} = grown\({stack}, (room\w*|.*8192)\)"
        assert re.search(made, code, re.MULTILINE), stack


def test_room_is_what_is_pushed():
    (line,) = re.findall(r"room\w* = saved_u_old_top.*", source(rectangle, M, 3))
    factors = re.findall(r"larger\(.*?, 0\)", line)
    assert len(factors) == 3, line  # steps, columns, and what is pushed of a column
    assert factors[0] == "larger(steps, 0)"
    assert factors[2] == "larger(m.shape[0] - 2, 0)" or "shape[0] - 2" in factors[2], line


def test_no_room_where_nobody_knows():
    assert "room = " not in source(until, X, 3)

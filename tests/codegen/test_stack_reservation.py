"""Stacks have room for what loops over ranges push before these begin, no more than that."""

import cmath
import re
import textwrap

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.loops import stack_reservation

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
    """Views that grow with the counter, upwards and downwards, by steps of two, too."""
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


@pytest.mark.every(2)
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


@pytest.mark.fast_code
@pytest.mark.parametrize(("f", "x"), [(rectangle, M), (triangle, X), (numbers, X)])
def test_room_is_made_before_the_loops(f, x):
    code = source(f, x, 3)
    for stack in re.findall(r"^    (\w+) = growing", code, re.MULTILINE):
        made = rf"^        {stack} = grown\({stack}, (room\w*|.*8192)\)"
        assert re.search(made, code, re.MULTILINE), stack


@pytest.mark.fast_code
def test_room_is_what_is_pushed():
    (line,) = re.findall(r"room\w* = saved\w*_top.*", source(rectangle, M, 3))
    factors = re.findall(r"larger\(.*?, 0\)", line)
    assert len(factors) == 3, line  # steps, columns, and what is pushed of a column
    assert factors[0] == "larger(steps, 0)"
    assert factors[2] == "larger(m.shape[0] - 2, 0)" or "shape[0] - 2" in factors[2], line


def test_no_room_where_nobody_knows():
    assert "room = " not in source(until, X, 3)


def pairs(x, steps):
    total = x[0]
    for _ in range(steps):
        for i in range(len(x)):
            for j in range(i + 1, len(x)):
                total = np.sin(total * x[i] * x[j])
    return total


def triples(x, steps):
    total = x[0]
    for _ in range(steps):
        for i in range(len(x) - 1, -1, -1):
            for j in range(i):
                for k in range(j, i):
                    total = np.sin(total * x[i] * x[j] + x[k])
    return total


def views(x, steps):
    """By steps of two, downwards; no view is as long as the array."""
    u = x.copy()
    for _ in range(steps):
        for k in range(len(u) - 1, 0, -2):
            u[:k] = u[:k] * np.sin(u[:k])
    return np.sum(u)


@pytest.mark.fast_code
@pytest.mark.parametrize("f", [pairs, triples, views])
@pytest.mark.parametrize("steps", [3, 0])
def test_much_room_is_counted(f, steps, monkeypatch):
    """To the element, as a run of the program under NumPy has it."""
    code = source(f, X, steps)
    bounded = run_lines(code, "wanted", steps)
    monkeypatch.setattr(stack_reservation, "_LARGE", -1)
    found = run_lines(source(f, X, steps), "wanted", steps)
    lines = fwdad.memory_report(f, X, steps).lines
    pushed = sum(k.number if f is not views else k.nbytes // 8 for k in lines if is_pushed(k))
    assert found == (pushed // 2 if f is views else pushed)  # there are two stacks of views
    assert bounded > found or not steps  # what is little is not counted


def test_much_room_is_made():
    """Compiled, where it is counted: as much as is pushed, not what a rectangle would hold."""
    x = np.linspace(0.3, 1.2, 60)
    steps = 1 + 2 * stack_reservation._LARGE // x.size**2
    g = fwdad.jit(fwdad.grad(pairs), backend="numba")
    h, x_dot = 1e-20, np.cos(x)
    numbers, last = [complex(a, h * b) for a, b in zip(x, x_dot, strict=True)], len(x) - 1
    total = numbers[0]
    for _ in range(steps):
        for i in range(last):
            for j in range(i + 1, last + 1):
                total = cmath.sin(total * numbers[i] * numbers[j])
    assert_allclose(g(x, steps) @ x_dot, total.imag / h, rtol=1e-9, atol=1e-12)


def behind(x, steps):
    """The inner loop begins before the outer one's counter, or ends before it."""
    total = x[0]
    while steps > 0:
        for i in range(2, len(x)):
            for j in range(i - 2, len(x)):
                total = np.sin(total * x[j])
            for j in range(len(x), i - 1, -1):
                total = np.cos(total * x[j - 1])
        steps -= 1
    return total


def test_room_of_loops_that_begin_before_a_counter():
    """Room for what they push, and no less: what lies behind a stack is somebody else's."""
    tests = re.findall(r"if (\w+)_top \+ (.*) > \1\.size", source(behind, X, 3))
    rooms = [eval(n, {"t": len(X), "i": 2}) for _, n in tests if "i" in n]
    assert rooms == [len(X), len(X) - 1]


def run_lines(code, name, steps):
    """The value of a variable, from the lines that make it."""
    lines = code.splitlines()
    made = [k for k, line in enumerate(lines) if re.match(rf"    {name} = ", line)]
    end = next(k for k, line in enumerate(lines) if line.startswith("    room"))
    values = {"larger": max, "x": X, "a": X, "n": len(X), "t": len(X), "steps": steps}
    exec(textwrap.dedent("\n".join(lines[made[0] : end])), values)
    return values[name]


def is_pushed(kept):
    return kept.kind == "saved" and "range(len(u)" not in kept.text

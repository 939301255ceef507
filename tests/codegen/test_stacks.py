"""Stacks in compiled gradients: who shares one, and where room for a loop is made beforehand."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

pytest.importorskip("numba")


def counted(x, n):
    """Numbers that are kept in loops over ranges, in one inside, and in a branch."""
    a, b = x[0], x[1]
    for i in range(n, 0, -1):
        if i % 3:
            a = a * math.sin(b) + x[2]
        for _ in range(i):
            b = math.sin(b * (a + 0.1)) - math.cos(a * b)
            a = a * 0.5 + 0.1 * b * b
        b = b / (1.0 + a * a)
    return a + b


def open_ended(x, n):
    """Loops whose iterations nobody knows beforehand."""
    a, b = x[0], x[1]
    for i in range(0, 10**9, 2):
        a = a * math.sin(b) + x[2]
        if i >= n:
            break
    k = 0
    while k < n:
        b = b * math.cos(a) * 0.9
        k += 1
    return a * b


def singular(x):
    """A partial that is infinite where the cotangent is zero, and one that is nan."""
    return 0.0 * math.sqrt(x[0]) + x[1] * x[1] + (x[2] - x[2]) * x[1]


def _same_as_forward(f, x, *args):
    y, gradient = fwdad.jit(fwdad.value_and_grad(f))(x, *args)
    assert_allclose(y, f(x, *args), rtol=1e-13)
    expected = fwdad.jacobian(f, x, args=args, mode="forward")
    assert_allclose(gradient, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.every(2)
@pytest.mark.parametrize("n", [0, 1, 2, 17])
def test_numbers_on_stacks(n):
    x = np.array([0.3, 0.8, -0.4])
    _same_as_forward(counted, x, n)
    _same_as_forward(open_ended, x, n)


def test_a_known_loop_makes_room_once():
    gradient = fwdad.jit(fwdad.value_and_grad(counted))
    x = np.array([0.3, 0.8, -0.4])
    lines = fwdad.show(gradient, x, 3, backend="numba").splitlines()
    inner = next(k for k, line in enumerate(lines) if line.strip() == "for _ in range(i):")
    indent = len(lines[inner]) - len(lines[inner].lstrip())
    deep = " " * (indent + 1)
    end = next(k for k in range(inner + 1, len(lines)) if not lines[k].startswith(deep))
    inside, before = "\n".join(lines[inner:end]), "\n".join(lines[inner - 9 : inner])
    assert "saved" in inside
    assert "grown" not in inside
    assert "grown" in before


def test_an_endless_range_takes_no_memory():
    gradient = fwdad.jit(fwdad.value_and_grad(open_ended))
    source = fwdad.show(gradient, np.ones(3), 3, backend="numba")
    assert "1000000000 >" not in source
    assert "+ 1 > saved" in source


def test_zero_cotangents_stay_zero():
    x = np.array([0.0, 1.5, math.inf])
    _, gradient = fwdad.jit(fwdad.value_and_grad(singular))(x)
    assert gradient[0] == 0.0


def test_second_order():
    x = np.array([0.3, 0.8, -0.4])

    def slope(x):
        return np.sum(fwdad.grad(lambda x: counted(x, 3))(x) * np.array([1.0, 2.0, -0.5]))

    found = fwdad.jit(fwdad.grad(slope))(x)
    assert_allclose(found, fwdad.jacobian(slope, x, mode="forward"), rtol=1e-10)


def iterated(x, n):
    """One number an iteration is kept; nobody knows beforehand how many."""
    k = 0
    while k < n:
        x = math.sin(x)
        k += 1
    return x


def _resident(word):
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(word))


@pytest.mark.fast_code
@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux for the pages in use")
def test_a_stack_that_grows_is_in_memory_once():
    gradient = fwdad.jit(fwdad.grad(iterated))
    gradient(1.0, 10)
    n = 8_500_000  # just over a power of two: copied into twice the memory, the peak is 2.0
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts again
    except OSError:
        pytest.skip("this system does not forget a peak")
    start = _resident("VmRSS")
    gradient(1.0, n)
    peak = _resident("VmHWM") - start
    assert 0.9 * 8 * n < peak < 1.5 * 8 * n


def layers(x, n):
    """Several arrays are kept in each iteration; one of them in a branch, and one of a view."""
    u, m = x * 1.0, np.outer(x, np.cos(x))
    for k in range(n):
        t = np.exp(-u * u)
        if k % 2:
            t = t * np.sin(u)
        u = np.tanh(t + m @ u) + u * t
        for _ in range(k):
            m = np.sin(m * t)
    return np.sum(u) + np.sum(m)


def seldom_there(x, n):
    """What a side of a branch keeps is not there on the other: its length is not known."""
    u, w = x * 1.0, np.cos(x)
    for _ in range(n):
        if np.sum(u) > 0.0:
            u = np.sin(u) * w
        u = w * u
    return np.sum(u * np.cos(u))


def of_other_lengths(x, n):
    """Of each array the lengths are known, of some products only when they are made."""
    u = x * 1.0
    for k in range(n):
        v = np.sin(u[k:]) * u[: u.size - k]
        u = u * np.sum(v * v) * 0.1 + np.cos(u)
    return np.sum(u)


@pytest.mark.slow_cases("False-seldom_there", "True-layers", "True-of_other_lengths")
@pytest.mark.parametrize("f", [layers, seldom_there, of_other_lengths])
@pytest.mark.parametrize("parallel", [False, True])
def test_arrays_on_stacks(f, parallel):
    """One compiled program for all lengths; short ones, and loops that do not run."""
    gradient = fwdad.jit(fwdad.value_and_grad(f), parallel=parallel)
    for size, n in [(5, 4), (2, 1), (3, 0), (41, 3), (5, 2)]:
        x = np.linspace(-0.4, 0.9, size)
        y, found = gradient(x, n)
        assert_allclose(y, f(x, n), rtol=1e-13)
        expected = fwdad.jacobian(f, x, args=(n,), mode="forward")
        assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.slow  # see test_second_order
def test_arrays_that_two_stacks_keep():
    """The gradient and its own gradient keep the same arrays: each on its stack."""

    def slope(x):
        return np.sum(fwdad.grad(layers)(x, 3) * np.cos(x))

    x = np.linspace(0.2, 0.9, 4)
    found = fwdad.jit(fwdad.grad(slope))(x)
    assert_allclose(found, fwdad.jacobian(slope, x, mode="forward"), rtol=1e-10)


@pytest.mark.fast_code
def test_arrays_that_are_kept_are_made_on_the_stack():
    """No shapes are kept that are known, and what is only made to be kept is not copied."""

    def f(x, n):
        u, m = x * 1.0, np.outer(x, np.cos(x))
        for _ in range(n):
            t = np.exp(-u * u)
            u = np.tanh(t + m @ u) + u * t
        return np.sum(u)

    x = np.linspace(0.2, 0.9, 40)
    source = fwdad.show(fwdad.value_and_grad(f), x, 3, backend="numba")
    assert "part_of_stack(" in source
    assert "_shapes" not in source
    source = fwdad.show(fwdad.value_and_grad(seldom_there), x, 3, backend="numba")
    assert "part_of_stack(" not in source

"""Ints that a loop adds to are computed backwards, and not kept."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.linspace(0.4, 1.3, 10)


def packed(x):
    """The rows of a triangle, one after the other."""
    y, at = x[:4] * 1.0, 0
    for column in range(3):
        for i in range(column + 1, 4):
            y[i] = y[i] * x[at] + y[column]
            at += 1
    return np.sum(y)


def downwards(x):
    total, at = x[0], 9
    for i in range(5, 1, -1):
        total = total * x[at] + x[i]
        at -= 2
    return total * x[at + 1]


def by_a_length(x):
    total, at, step = x[0], 1, len(x) // 4
    for _ in range(4):
        total = np.sin(total * x[at])
        at = step + at
    return total * at


def from_a_value(x, first):
    total, at = x[0], first
    for i in range(first, 6):
        total = total * x[at] - x[i]
        at += 1
    return total * at


def not_at_all(x):
    total, at = x[0], 0
    for i in range(len(x) - 9, 1):
        total = total * x[i]
        at += 3
    return total * x[at]


def left_early(x):
    total, at = x[0], 0
    for i in range(9):
        total = total * x[at]
        if total < 0.05:
            break
        at += 1
    return total * x[at] * at


def now_and_then(x):
    total, at = x[0], 0
    for i in range(9):
        if x[i] > 0.77:
            at += 1
        total = np.sin(total * x[at])
    return total


CASES = [
    (packed, ()), (downwards, ()), (by_a_length, ()), (from_a_value, (2,)), (from_a_value, (7,)),
    (not_at_all, ()), (left_early, ()), (now_and_then, ()),
]  # fmt: skip


@pytest.mark.every(6, of="auto", first=3)
@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize(("f", "args"), CASES)
def test_gradient(f, args, backend):
    wanted = central_differences(lambda x: f(x, *args), X)
    value, found = fwdad.jit(fwdad.value_and_grad(f), backend=backend)(X, *args)
    assert value == pytest.approx(f(X, *args), rel=1e-14)
    assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    twice = fwdad.jit(fwdad.hessian(f), backend=backend)(X, *args)
    assert_allclose(twice, fwdad.hessian(f, X, args=args), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("f", [packed, downwards, by_a_length])
def test_no_counter_is_kept(f):
    kept = fwdad.memory_report(f, X).lines
    assert not [k for k in kept if k.kind == "saved" and k.text.strip().startswith("at ")]
    source = str(fwdad.trace(fwdad.grad(f), X))
    assert "saved_at" not in source

"""Which loops can run in any order: each verdict beside a program."""

import inspect

import numpy as np
import pytest

import fwdad
from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.analysis.dependence import is_independent
from fwdad.ir.ops import Loop
from fwdad.transforms.passes import optimise

X, A = np.linspace(0.5, 2.0, 5), np.linspace(0.5, 2.0, 15).reshape(5, 3)


def elements(x, a):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        s = x[i]
        for k in range(3):
            s = np.sin(s) * a[i, k]
        y[i] = s
    return y


def rows(x, a):
    y = np.empty((x.shape[0], 3))
    for i in range(x.shape[0]):
        row = y[i]
        row[:] = a[i] * x[i]
        for k in range(1, 3):
            row[k] += row[k - 1]
    return y


def columns_from_the_last(x, a):
    y = np.zeros((2, 5))
    for i in range(4, -1, -1):
        y[1:, i] = x[i]
        y[0, i] += y[1, i]
    return y


def scratch(x, a):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        t = np.empty(3)
        for k in range(3):
            t[k] = a[i, k] * x[i]
        y[i] = t[0] * t[2]
    return y


def under_a_condition(x, a):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 1.0:
            y[i] = a[i, 0]
    return y


def kept_by_each(x, a):
    """The reverse pass pops what the forward pass of the same iteration has pushed."""
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = fwdad.grad(cascade)(x[i], a.shape[0])
    return y


def cascade(s, n):
    for _ in range(n):
        s = np.sin(s) * s
    return s


def scratch_of_a_function(x, a):
    y = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        t = np.zeros(3)
        np.add.at(t, [0, 0, 2], a[i] * x[i])
        y[i] = t[0]
    return y


def neighbours(x, a):
    y = np.zeros(x.shape[0])
    for i in range(1, x.shape[0]):
        y[i] = y[i - 1] + x[i]
    return y


def carried(x, a):
    y, s = np.zeros(x.shape[0]), 0.0
    for i in range(x.shape[0]):
        s = s + x[i]
        y[i] = s
    return y


def two_axes(x, a):
    y = np.zeros((5, 5))
    for i in range(5):
        y[i, 0] = x[i]
        y[0, i] += x[i]
    return y


def through_a_view(x, a):
    y = np.zeros(6)
    later = y[1:]
    for i in range(5):
        y[i] = x[i]
        later[i] += x[i]
    return y


def from_the_end(x, a):
    y = np.zeros(10)
    for i in range(-2, 3):
        y[i] = x[i]
    return y


def into_an_argument(x, a):
    for i in range(x.shape[0]):
        x[i] = a[i, 0]
    return x


def summed_into_one_place(x, a):
    y = np.zeros(2)
    for i in range(x.shape[0]):
        y[0] += x[i]
    return y


def whole_array_is_read(x, a):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        y[i] = np.sum(y) + x[i]
    return y


def added_by_a_function(x, a):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        np.add.at(y, [0, 0, 2], a[i] * x[i])
    return y


def scratch_of_all(x, a):
    y, t = np.empty(x.shape[0]), np.empty(3)
    for i in range(x.shape[0]):
        for k in range(3):
            t[k] = a[i, k]
        y[i] = t[0]
    return y


def left_early(x, a):
    y = np.zeros(x.shape[0])
    for i in range(x.shape[0]):
        if x[i] > 1.0:
            break
        y[i] = x[i]
    return y


def named_by_an_index(x, a):
    y, at = np.zeros(x.shape[0]), np.array([0, 1, 1, 0, 2])
    for i in range(x.shape[0]):
        y[at[i]] = x[i]
    return y


INDEPENDENT = [
    elements, rows, columns_from_the_last, scratch, under_a_condition, kept_by_each,
    scratch_of_a_function,
]  # fmt: skip
NOT = [
    neighbours, carried, two_axes, through_a_view, from_the_end, into_an_argument, left_early,
    summed_into_one_place, whole_array_is_read, added_by_a_function, scratch_of_all,
    named_by_an_index,
]  # fmt: skip


def verdicts(f):
    program = fwdad.trace(f, X.copy(), A).program
    optimise(program)
    roots, params = memory_of(program), program.block.params
    loops = [op for op in program.block.ops if isinstance(op, Loop)]
    return [is_independent(op, roots, params) for op in loops]


@pytest.mark.parametrize("f", INDEPENDENT)
def test_iterations_can_run_at_once(f):
    assert verdicts(f) == [True]


@pytest.mark.parametrize("f", NOT)
def test_iterations_have_to_wait(f):
    assert verdicts(f) == [False]


@pytest.mark.parametrize("f", INDEPENDENT)
def test_the_order_does_not_matter(f):
    """The loop from the last iteration to the first, by another program."""
    text = inspect.getsource(f).replace("for i in range(", "for i in backwards(")
    names = {
        "np": np,
        "fwdad": fwdad,
        "cascade": cascade,
        "backwards": lambda *span: reversed(range(*span)),
    }
    exec(text, names)
    np.testing.assert_array_equal(names[f.__name__](X, A), f(X, A))

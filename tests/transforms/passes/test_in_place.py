"""Copies that nobody needs go, and with them the stores that stood before their last reader."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.check import checked
from fwdad.transforms.passes import read_in_place
from tests.ir.running import run, traced

X = np.array([1.0, -2.0, 3.0, 0.5])


def copied(program):
    return sum(getattr(op, "function", None) is np.ndarray.copy for op in program.walk())


def left(f, *args):
    """How many copies are left; the results are the same."""
    tape = traced(f, *args)
    before = run(tape, args)
    checked(read_in_place, tape.program)
    assert run(tape, args) == before
    return copied(tape.program)


def taken(x):
    a = x * 2.0
    old = a[1:].copy()
    a[1:] = 0.0
    b = x + 1.0
    b[:-1] += old * 3.0
    return a, b


def test_what_is_read_before_the_next_store():
    assert left(taken, X) == 0

    def unwritten(x):
        a = x * 2.0
        old = a.copy()
        return a * old, old + 1.0

    assert left(unwritten, X) == 0


def two_in_turn(x):
    a = x * 2.0
    first = a[1:].copy()
    a[1:] = 0.0
    b = first * 3.0
    a[2:] += 1.0
    second = a[1:].copy()
    a[1:] = 0.0
    return a, b, second * 5.0, first[0]


def overwritten(x):
    a = x * 2.0
    old = a[1:].copy()
    a[1:] = x[1:]
    return a, old * 3.0


def zeros_are_read(x):
    a = x * 2.0
    old = a[1:].copy()
    a[1:] = 0.0
    total = np.sum(a)
    return a, total, old * 3.0


def answered(x):
    a = x * 2.0
    old = a.copy()
    a[1] = 0.0
    return a, old


def written(x):
    a = x * 2.0
    old = a.copy()
    old[0] = 7.0
    return a, old * 2.0


def through_a_view(x):
    a = x * 2.0
    old = a.copy()
    part = old[::2]
    a[0] = 0.0
    return a, part * 2.0


def of_an_argument(x):
    old = x.copy()
    x[1] = 0.0
    return x * 1.0, old * 3.0


def read_in_a_loop(x):
    a = x * 2.0
    old = a.copy()
    b = x * 0.0
    for _ in range(3):
        b = b + old * a
        a[0] = 0.0
    return a, b


@pytest.mark.parametrize(
    ("f", "kept"),
    [(overwritten, 1), (zeros_are_read, 1), (answered, 1), (written, 1), (through_a_view, 1),
     (of_an_argument, 1), (read_in_a_loop, 1), (two_in_turn, 1)],
)  # fmt: skip
def test_what_has_to_be_copied(f, kept):
    assert left(f, X) == kept


def test_stencil_backwards():
    """The cotangent of a view is read where it is, and only then made zero."""

    def f(x):
        a, b = x.copy(), x.copy()
        for _ in range(3):
            b[1:-1] = a[:-2] + 0.5 * a[2:]
            a[1:-1] = b[:-2] * b[2:]
        return np.sum(a * a)

    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    x = np.linspace(0.1, 1.0, 9)
    expected = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(gradient(x), expected, rtol=1e-13)

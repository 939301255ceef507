"""New arrays that are stored whole into an argument are computed there."""

import numpy as np
import pytest

from fwdad.ir.check import checked
from fwdad.ir.ops import Store
from fwdad.transforms.passes.destinations import compute_in_destination
from tests.ir.running import run, traced

X = np.array([1.0, -2.0, 3.0, 0.5])


def left(f, *args):
    """How many new arrays are left; the results are the same."""
    tape = traced(f, *args)
    before = run(tape, args)
    checked(compute_in_destination, tape.program)
    assert run(tape, args) == before
    assert any(isinstance(op, Store) for op in tape.program.walk())
    made = (np.empty, np.zeros, np.ones)
    return sum(getattr(op, "function", None) in made for op in tape.program.walk())


def test_it_is_computed_there():
    def zeros(x, out):
        a = np.zeros(len(out))
        a[1:] += x[1:] * 2
        a[:-1] += x[1:]
        out[...] = a

    def looped(x, out):
        a = np.ones(len(out))
        for k in range(4):
            a[k] = a[k] * x[k] + a[k - 1]
        out[:] = a

    def empty(x, out):
        a = np.empty(len(out))
        a[:2] = x[2:]
        a[2:] = x[0]
        out[...] = a

    for f in (zeros, empty):
        assert left(f, X, np.zeros(4)) == 0
    assert left(looped, X, np.zeros(4)) <= 1


@pytest.mark.parametrize("use", ["before", "after", "returned", "view", "shape", "other"])
def test_where_it_would_be_seen(use):
    """What is read, kept or written elsewhere stays an array of its own."""

    def f(x, out):
        a = np.zeros(len(out))
        a[1:] += x[1:]
        if use == "before":
            a[0] = out[1]
        b = a[1:3]
        out[...] = a
        if use == "after":
            out[0] = a[1] + np.sum(a)
            out[0] += a[0]
        if use == "returned":
            return a
        return b if use == "view" else x

    def broadcast(x, out):
        a = np.zeros(4)
        a[1:] += x[1:]
        out[...] = a
        return x

    if use == "shape":
        assert left(broadcast, X, np.zeros((2, 4))) == 1
    elif use == "other":
        assert left(broadcast, X, np.zeros(4, np.float32)) == 1
    else:
        assert left(f, X, np.arange(4.0)) == 1

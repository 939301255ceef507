"""Compiled programs whose bounds are checked, and mistakes put into the compiler on purpose.

Run by ``test_check_bounds.py`` in a process of its own: ``FWDAD_CHECK_BOUNDS`` is read once.
"""

import contextlib
import pickle
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.loops import elementwise
from fwdad.codegen.loops.arrays import stacks
from fwdad.codegen.runtime import libmvec
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.stacks import push

X = np.linspace(0.3, 1.2, 13)


def minors(a):
    """A determinant by minors; the lists of the rows and columns that are left are linked."""
    n = a.shape[0]
    rows, columns = np.arange(1, n + 2), np.arange(1, n + 2)
    rows[n] = columns[n] = 0
    return minor(a, n, rows, columns)


def minor(a, m, rows, columns):
    n = a.shape[0]
    row, column = rows[n], columns[n]
    if m == 1:
        return a[row, column]
    total, sign = 0.0, 1.0
    rows[n] = rows[row]
    before = n
    for _ in range(m):
        columns[before] = columns[column]
        total += sign * a[row, column] * minor(a, m - 1, rows, columns)
        columns[before] = column
        before = column
        column = columns[column]
        sign = -sign
    rows[n] = row
    return total


def matrix(n):
    return np.random.default_rng(n).normal(size=(n, n))


def numbers(x):
    t = x[0]
    for k in range(len(x)):
        t = np.sin(t) * x[k]
    return t


def steps(x):
    t = x.copy()
    for k in range(len(x)):
        t[1:] = np.sin(t[:-1]) * x[k] + 0.3 * t[1:]
    return np.sum(t)


def fields(x):
    """Arrays of known lengths, made where they are pushed; two loops, and a branch."""
    u, m = x * 1.0, np.outer(x, x)
    for k in range(5):
        for _ in range(k):
            u = np.sin(u) * np.exp(-(u**2)) * x
            m = np.cos(m * u)
        if x[k] > 0.5:
            u = u * np.tanh(u + m[k])
    return np.sum(u) + np.sum(m)


def exponentials(x):
    total = 0.0
    for k in range(len(x)):
        total += np.exp(x[k])
    return total


def lists(x, counts):
    out = []
    for k in range(len(x)):
        out.append(x[k] * 2.0)
        for j in range(counts[k]):
            out.append(x[k] + j)  # noqa: PERF401
    total = 0.0
    for v in out:
        total += v * v
    return total


def logarithms(x):
    y = np.zeros(len(x))
    total = 0.0
    for k in range(len(x)):
        y[k] = np.log(x[k]) * np.exp(x[k])
        total += y[k] * y[k]
    return total


def compiled(f, *args):
    """A gradient, compared with forward mode on Python's own run."""
    found = fwdad.jit(fwdad.grad(f), backend="numba")(*args)
    wanted = fwdad.jacobian(f, args[0], args=args[1:], mode="forward")
    assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def sound():
    """What is right raises nothing, however little room there is."""
    compiled(minors, matrix(4))
    compiled(numbers, X)
    compiled(steps, X)
    compiled(fields, X)
    compiled(logarithms, X)
    compiled(exponentials, X)
    compiled(lists, X[:4], np.array([3, 0, 61, 1]))


def raises(f, *args):
    """The error of a program that would leave its memory."""
    with pytest.raises(fwdad.errors.BoundsError, match="mistake in fwdad") as caught:
        compiled(f, *args)
    error = caught.value
    _, first, count, length, text = error.given
    assert first < 0 or first + count > length
    assert text
    assert error.filename == __file__
    again = pickle.loads(pickle.dumps(error))
    assert (again.msg, again.lineno) == (error.msg, error.lineno)
    return error


@contextlib.contextmanager
def instead(module, name, mistake):
    kept = getattr(module, name)
    setattr(module, name, mistake(kept))
    try:
        yield
    finally:
        setattr(module, name, kept)


def mistaken():
    """Each of these would corrupt the heap."""

    def one_less(grow):
        return lambda w, held, more: grow(w, held, f"({more}) - 1")

    with instead(stacks, "_grow", one_less):
        error = raises(numbers, X)
        assert "t = np.sin(t) * x[k]" in error.text
        raises(steps, X)
        text = raises(exponentials, X).given[-1]
        assert "vector_write" in text or not libmvec.register_bits()
        raises(lists, X[:4], np.array([3, 0, 61, 1]))

    def own_pushes(_):
        return lambda w, loop: Counter(
            w.stacks.held[op.args[0]]
            for op in loop.body.ops
            if isinstance(op, Apply) and op.function is push
        )

    with instead(stacks, "_pushes_in", own_pushes):
        raises(minors, matrix(4))  # the call pushes
        raises(lists, X[:4], np.array([3, 0, 61, 1]))  # the loop inside does

    def one_longer(lengths):
        def found(w, leaves, ndim):
            own, steps_taken = lengths(w, leaves, ndim)
            return [f"({n} + 1)" for n in own], steps_taken

        return found

    with (
        instead(elementwise.Elementwise, "lengths", one_longer),
        instead(elementwise.Elementwise, "compare", lambda _: lambda *_: None),
    ):
        raises(two_arrays, X, X * 1j)


def two_arrays(x, y):
    return np.sum((np.sin(x) * y).real)


if __name__ == "__main__":
    sound()
    mistaken()
    print("all checked")

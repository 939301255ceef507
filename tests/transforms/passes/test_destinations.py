"""New arrays that are stored whole into an argument, or as rows, are computed there."""

import numpy as np
import pytest

import fwdad
from fwdad.codegen.numba_support import have_numba
from fwdad.ir.check import check_program, checked
from fwdad.ir.ops import Loop, Store, walk
from fwdad.transforms.passes import optimise
from fwdad.transforms.passes.destinations import compute_in_destination, computed_in_rows
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


def in_rows(f, *args):
    """How many new arrays less a program's loops make; it returns the same, compiled, too."""
    tape = traced(f, *args)
    before = run(tape, args)
    optimise(tape.program)
    program = computed_in_rows(tape.program)
    check_program(program)
    left = new_arrays(tape.program) - new_arrays(program)
    tape.program = program
    assert run(tape, args) == before
    expected = f(*args)
    if have_numba():
        np.testing.assert_array_equal(fwdad.jit(f)(*args), expected)
    return left


def new_arrays(program):
    """How many new arrays are made in loops."""
    loops = [op for op in program.walk() if isinstance(op, Loop)]
    made = (np.empty, np.zeros, np.ones)
    inside = {id(op): op for loop in loops for op in walk(loop.body)}.values()
    return sum(getattr(op, "function", None) in made for op in inside)


def row(x, k):
    """A new array, made in several steps."""
    a = np.zeros(x.size)
    a[1:] += x[1:] * k
    a[:-1] += x[1:]
    return a


def test_rows_of_its_own():
    def rows(x):
        out = np.empty((3, x.size))
        for k in range(3):
            out[k] = row(x, k)
        return out

    def blocks(x):
        out = np.empty((2, x.size, x.size))
        for k in range(2):
            for j in range(1, x.size, 2):
                out[k, j] = row(x, k + j)
            for j in range(0, x.size, 2):
                out[k, j] = row(x, k - j)
        return out

    def both(x):
        out, more = np.zeros((3, x.size)), np.zeros((3, x.size))
        for k in range(3):
            a, b = np.ones(x.size), np.empty(x.size)
            a[1:] -= x[1:] * k
            b[:] = a[::-1]
            out[k] = a
            more[2 - k] = b
        return out + more

    assert in_rows(rows, X) == 1
    assert in_rows(blocks, X) == 2
    assert in_rows(both, X) == 1


@pytest.mark.parametrize("use", ["before", "after", "carried", "end", "column", "wide", "kind"])
def test_rows_that_stay_arrays(use):
    def f(x):
        out = np.zeros((4, 4), np.float32 if use == "kind" else float)
        last = x
        for k in range(-1 if use == "end" else 0, 3):
            a = np.zeros(1 if use == "wide" else 4)
            a[:] += x[0] * k
            if use == "before":
                a[0] += out[k - 1, 0] + 1
            if use == "column":
                out[:, k] = a
            else:
                out[k] = a
            if use == "after":
                a[0] = 7.0
                out[3, k] = np.sum(a)
            if use == "carried":
                last = a
        return out + last if use == "carried" else out

    assert in_rows(f, X) == 0


def test_a_row_that_is_out_of_bounds():
    def f(x):
        out = np.empty((2, 4))
        for k in range(int(x[2])):
            out[k] = row(x, k)
        return out

    assert in_rows(f, np.array([1.0, 2.0, 2.0, 3.0])) == 0
    with pytest.raises(IndexError):
        fwdad.jit(f)(X)


def arrays_of_numbers(f, *args):
    """How many arrays of numbers compiled code makes; what it returns is what f returns."""
    tape = traced(f, *args)
    before = run(tape, args)
    optimise(tape.program)
    program = computed_in_rows(tape.program)
    check_program(program)
    tape.program = program
    assert run(tape, args) == before
    if have_numba():
        np.testing.assert_array_equal(fwdad.jit(f)(*args), f(*args))
        x = args[0]
        J = fwdad.jacobian(f, x, mode="forward")
        np.testing.assert_allclose(fwdad.jit(fwdad.jacfwd(f))(x), J, rtol=1e-14)
        np.testing.assert_allclose(fwdad.jit(fwdad.jacrev(f))(x), J, rtol=1e-14)
    return sum(getattr(op, "function", None) is np.array for op in program.walk())


def test_rows_of_numbers():
    def euler(x):
        out = np.empty((6, 3))
        out[0] = np.array([x[0], x[1] * x[2], x[3]])
        for k in range(5):
            a, b, c = out[k]
            out[k + 1] = np.array([a + 0.1 * b, b - 0.1 * a * c, 0.9 * c])
        return out

    def rotated(x):
        """What is read lies where the row is written."""
        out = np.zeros((2, 3))
        for k in range(4):
            out[k % 2] = np.array([out[k % 2, 1] + x[k], out[k % 2, 2], out[k % 2, 0]])
            out[-1] = np.array([out[0, 2], out[0, 1] * x[0], out[-1, 0]])
        return out

    def columns(x):
        out = np.zeros((2, 5, 3))
        for k in range(4):
            out[0, k] = np.array([x[k], x[0], x[k] * x[1]])
            out[1, :, 2] = np.asarray([x[0], x[1], x[k], out[1, 0, 2], 2.0 * out[1, 1, 2]])
            out[1, k, :] = np.array([out[1, k, 1], out[1, k, 2] + x[k], out[1, k, 0]])
        return out

    def updated(x):
        out = np.ones((5, 3))
        for k in range(4):
            out[k + 1] = out[k]
            out[k + 1] += np.array([out[k, 1], x[k] * out[k + 1, 0], x[0]])
            out[k] *= np.array([x[k], out[k, 0], out[k, 1]])
            out[1:4, 0] -= np.array([out[2, 0], out[1, 0], x[1]])
        return out

    for f in (euler, rotated, columns):
        assert arrays_of_numbers(f, X) == 0
    assert arrays_of_numbers(updated, X) == 1  # of a part of a column


@pytest.mark.every(2)
@pytest.mark.parametrize("use", ["kept", "wide", "float32", "part", "places", "long"])
def test_numbers_that_stay_an_array(use):
    def f(x):
        out = np.zeros((4, 20 if use == "long" else 3), np.float32 if use == "float32" else float)
        total = 0.0
        for k in range(3):
            numbers = [x[0] * k] * 20 if use == "long" else [x[k], x[0] * k, 2.0 * x[1]]
            row = np.array(numbers[:1] if use == "wide" else numbers)
            if use == "part":
                out[k, ::-1] = row
            elif use == "places":
                out[k, [0, 1, 2]] = row
            else:
                out[k] = row
            if use == "kept":
                total += np.sum(row)
        return out * (1.0 + total)

    if use == "float32":
        assert np.array_equal(fwdad.jit(f)(X), f(X))
    else:
        assert arrays_of_numbers(f, X) == 1

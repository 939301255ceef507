"""Rows of few elements become numbers, in loops that are written out: no bit changes by it."""

import copy
import linecache
import random
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.arguments import Flattened, Lengths
from fwdad.frontend.specialise import gaining, trace_optimised
from fwdad.frontend.trace import trace_flat
from fwdad.ir.check import checked
from fwdad.ir.ops import Loop, is_array, walk
from fwdad.transforms.passes import SMALL, optimise, split_arrays
from fwdad.transforms.reverse.structure import NotReversibleError
from tests.ir.running import run

A = np.random.default_rng(1).normal(size=(7, 3))
W = np.random.default_rng(2).normal(size=(7, 6))
AXES = Lengths(SMALL, frozenset({(0, 1), (1, 1)}))


def split(f, *runs, lengths=AXES):
    """The tape of f with its small arrays split, which returns what it did before, bit by bit."""
    tape = trace_flat(f, Flattened(copy.deepcopy(runs[0]), {}), lengths)
    wanted = [run(tape, args) for args in runs]
    checked(split_arrays, tape.program)
    assert [run(tape, args) for args in runs] == wanted
    optimise(tape.program, checked)
    assert [run(tape, args) for args in runs] == wanted
    return tape


def arrays_in_loops(tape):
    loops = [op for op in walk(tape.program.block) if isinstance(op, Loop)]
    return sum(
        is_array(v) for loop in loops for op in walk(loop.body) for v in op.outputs
    ), len(loops)  # fmt: skip


# -- programs whose loops keep no array


def triangle(a, w):
    total, q = 0.0, np.empty(3)
    for i in range(len(a)):
        centred = a[i] - w[i, 3:]
        q[:] = w[i, :3] * centred
        at = 0
        for c in range(2):
            q[c + 1 :] += w[i, at : at + 2 - c] * centred[c]
            at += 2 - c
        total += np.sum(q * q)
    return total


def substitution(a, w):
    total = 0.0
    for i in range(len(a)):
        x = a[i] * 1.0
        for r in range(3):
            for c in range(r):
                x[r] -= w[i, 2 * r + c - 1] * x[c]
            x[r] /= 3.0 + x[r] ** 2
        for r in range(2, -1, -1):
            x[r] += r * x[-1]
        total += x[0] - x[1] * x[2]
    return total, r, c


@pytest.mark.parametrize("f", [triangle, substitution])
def test_loop_keeps_no_array(f):
    tape = split(f, (A, W), (A[:2], W[:2]))
    assert arrays_in_loops(tape) == (0, 1)


def test_lengths_differ_from_one_iteration_to_the_next():
    def f(a, w):
        total = np.zeros(3)
        for i in range(len(a)):
            u = a[i] * 1.0
            for c in range(3):
                total[c:] += u[: 3 - c] * w[i, c]
        return total

    split(f, (A, W))
    assert_allclose(f(A, W), fwdad.jit(f, backend="numpy")(A, W))


def test_loop_is_left_as_it_is_if_its_arrays_stay_arrays():
    def f(a, w, k):
        u = np.zeros(3)
        for i in range(len(a)):
            for c in range(3):
                u[c] = u[c] * 0.5 + a[i, c]
            u[k] += 1.0
        return u

    tape = split(f, (A, W, 1), (A, W, -1))
    assert arrays_in_loops(tape)[1] == 2


def test_rows_of_what_is_written_are_read_where_they_were():
    def f(a, w):
        b = a.copy()
        total = np.zeros(3)
        for i in range(len(a) - 1):
            row = b[i]
            b[i + 1] = row * 0.5
            b[i, 0] += 1.0
            total = total + row * b[i + 1]
        return total

    split(f, (A, W), (A[:2], W[:2]))


def test_index_out_of_bounds_raises_where_it_did():
    def f(a, w, k):
        total = 0.0
        for i in range(len(a)):
            row = a[i + k] * 2.0
            total += row[0] * row[1]
        return total

    split(f, (A, W, 0), (A, W, 1), (A, W, -9))


def test_length_that_is_not_the_example_s_is_another_tape():
    f = fwdad.jit(fwdad.value_and_grad(triangle_of_any))
    for d in (3, 20, 3):
        a, w = np.random.default_rng(d).normal(size=(2, 6, d))
        found, wanted = f(a, w), fwdad.jvp(triangle_of_any, a, np.ones_like(a), args=(w,))
        assert_allclose(found[0], wanted[0], rtol=1e-12)
        assert_allclose(np.sum(found[1]), wanted[1], rtol=1e-11)


def triangle_of_any(a, w):
    total = 0.0
    for i in range(len(a)):
        q = a[i] * w[i]
        for c in range(a.shape[1] - 1):
            q[c + 1 :] += w[i, c + 1 :] * q[c]
        total += np.sum(q * q)
    return total


def test_which_axes_loops_gain_from():
    def lengths_of(f, *args):
        tape = trace_flat(f, Flattened(args, {}), equal=True)
        return gaining(tape.program, tape.leaves(list(args)))

    long = np.ones((6, 40))
    assert lengths_of(triangle_of_any, A, A) == Lengths(SMALL, frozenset({(0, 1), (1, 1)}))
    assert lengths_of(triangle_of_any, long, long) == Lengths(SMALL)
    assert lengths_of(lambda a: np.sum(a), A) is None


# -- random programs

LINES = [
    "u = a[i] - v", "v[:] = w[i, :3] * u", "u = w[i, 1:4]", "v = u + w[i, ::2]", "u, v = v, u",
    "for c in range(2): u[c + 1:] += w[i, c : 2] * v[c]",
    "for c in range(3): v[c] = u[c - 1] * 0.5 + s",
    "for c in range(2, -1, -1): s += u[c] * w[i, c + 2]",
    "for r in range(3):\n    for c in range(r): v[r] -= u[c] * w[i, r + c]",
    "for r in range(1, 3):\n    t = b[i, r - 1] * 1.0\n    u[r:] = v[: 3 - r] + t",
    "b[i] = u * v", "b[i, 1:] += v[:2]", "u = b[i] * 1.0", "v = b[i - 1]",
    "s = 0.25 * np.sum(u * v)",
    "s = np.sum(u)", "u = np.where(u > s, v, u)", "if s > 0.0: v = u * 0.5",
    "if u[1] > v[0]:\n    u[0] = s\nelse: v[1:] = a[i, :2]", "s -= c", "u = a[i] + c",
    "u = np.empty(3); u[:] = s", "m = a[i - 1]; v = m * v", "w[i, 2] = s", "v = w[i, 3:]",
    "for c in range(3):\n    if u[c] > s: break\n    s += v[c]",
    "for c in range(3):\n    if u[c] > s: v[c] = s",
]  # fmt: skip


def program(seed):
    """A random program of rows, and its source."""
    pick = random.Random(seed)
    lines = ["def f(a, w):", "    w = w.copy()", "    b = a.copy(); c = 1; s = 0.5; total = 0.0"]
    lines += ["    u = np.zeros(3); v = np.ones(3)", "    for i in range(len(a)):"]
    for _ in range(pick.randrange(3, 9)):
        lines += ["        " + line for line in pick.choice(LINES).split("\n")]
    lines += ["        total += u[0] * v[2] + s", "        u = np.sin(u); s = np.cos(s)"]
    # no u @ v: of numbers, a product is summed in another order than by BLAS
    lines += ["        v = np.tanh(v)"]
    lines += ["    return total + np.sum(b * b) + np.sum(u * v) + np.sum(w)"]
    text = "\n".join(lines) + "\n"
    filename = f"<random rows {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["f"], text


SEEDS = [*range(8), *(pytest.param(k, marks=pytest.mark.slow) for k in range(100, 200))]


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_program(seed):
    f, text = program(seed)
    flat = Flattened((A, W), {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        split(f, (A, W), (A[:2], W[:2]))
        try:
            tape = trace_optimised(fwdad.value_and_grad(f, argnums=(0, 1)), flat, lengths=AXES)
        except NotReversibleError:
            pytest.skip("an array that is written may be another one")
        y, (a_bar, w_bar) = tape(A.copy(), W.copy())
    wanted = fwdad.jvp(f, A, np.eye(21).reshape(21, 7, 3), args=(W,))
    assert_allclose(y, wanted[0], rtol=1e-12, err_msg=text)
    assert_allclose(a_bar.ravel(), wanted[1], rtol=1e-10, atol=1e-11, err_msg=text)
    lanes = np.eye(42).reshape(42, 7, 6)
    _, w_dot = fwdad.jvp(lambda w: f(A, w), W, lanes)
    assert_allclose(w_bar.ravel(), w_dot, rtol=1e-10, atol=1e-11, err_msg=text)

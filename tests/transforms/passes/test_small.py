"""Small arrays become numbers: what is split, what is not, and that no bit changes."""

import copy
import linecache
import random
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.frontend.arguments import Flattened, Lengths
from fwdad.frontend.trace import trace_flat
from fwdad.ir.check import checked
from fwdad.ir.ops import Branch, Loop, Store, Update, is_array, walk
from fwdad.transforms.passes import SMALL, optimise, split_arrays
from tests.frontend import test_random_tapes
from tests.ir.running import run

P = np.array([0.5, -1.25, 2.0])
A = np.array([[0.1, -0.2, 0.3], [0.25, 0.5, -0.1], [-0.3, 0.2, 0.15]])


def arrays(program):
    """How many arrays operations make."""
    return sum(is_array(v) for op in walk(program.block) for v in op.outputs)


def split(f, *runs):
    """The tape of f with its small arrays split, and how many arrays it made before."""
    tape = trace_flat(f, Flattened(copy.deepcopy(runs[0]), {}), Lengths(SMALL))
    optimise(tape.program, checked)
    wanted, before = [run(tape, args) for args in runs], arrays(tape.program)
    checked(split_arrays, tape.program)
    assert [run(tape, args) for args in runs] == wanted
    optimise(tape.program, checked)
    assert [run(tape, args) for args in runs] == wanted
    return tape, before


def loop_of(tape):
    (loop,) = (op for op in walk(tape.program.block) if isinstance(op, Loop))
    return loop


# -- programs whose loops keep no array


def carried(p, n):
    s = p.copy()
    for _ in range(n):
        rate = np.array([s[1] - s[0], s[0] * s[2], -s[-1]])
        s = s + 0.25 * rate
    return s


def crossed(p, n):
    s, axis = p.copy(), np.array([0.3, -0.2, 0.5])
    for _ in range(n):
        s = s + np.cross(axis, s) - np.linalg.cross(s * s, p)
    return s


def scratch(p, n):
    rate, s = np.empty(3), np.zeros(3)
    s[:] = p
    for k in range(n):
        rate[0] = s[1] * k
        rate[1:] = s[:-1] - 0.5
        rate[-1] *= s[2]
        s += 0.25 * rate
    return s


def through_views(p, n):
    s = np.array([1.0, 2.0, 3.0, 4.0])
    head, back = s[:2], s[::-1]
    for _ in range(n):
        head[0] += p[0]
        back[0] -= head[1]
        s[1:3] = back[:2]
    return s[0] + s[3], s


def under_branches(p, n):
    s = np.zeros(3)
    for k in range(n):
        if s[0] > 1.0:
            s[0] = -s[0]
            t = s * 2.0
        elif k == 2:
            break
        else:
            t = np.array([p[0], s[1], 0.5])
        s[0] += p[0] * p[0]
        s[1] = t[2] + t[0]
    return s


def elementwise(p, n):
    s = np.array([p[0], 0.5, 1.5])
    for _ in range(n):
        s = np.where(s > 0.75, np.sin(s) * s**2 - s**3, abs(s) / (1.0 + np.exp(s[::-1])) % 0.7)
        s = np.maximum(s, -0.5) // 0.125 + np.roll(s, 1) * np.stack([p, s])[0]
    return s


def sums(p, n):
    m = np.zeros((2, 3))
    for k in range(n):
        m[1] = p * k
        m[0, 1:] += np.sum(m, axis=0)[:2] + m.mean()
        m[1, 0] = np.sum(m) + m[:, 2].sum()
    return m


def narrow_types(p, n):
    s, flags = np.zeros(3, np.float32), np.zeros(2, bool)
    z = np.zeros(2, complex)
    for _ in range(n):
        s[1:] += p[:2]
        s[0] = s[1] * 0.1
        flags[0] = s[2] > 0.25
        z = z * 0.5 + np.array([1, 2])
        z[1] = (p[0] + 1j) * s[2]
    return s, flags, z


def while_small(p, n):
    s = p.copy()
    while np.sum(s * s) > 0.5 * n + 0.25:
        s = s * 0.5
    return s


LOOPS = [carried, crossed, scratch, through_views, under_branches, elementwise, sums, narrow_types,
         while_small]  # fmt: skip


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_loop_keeps_no_array_and_no_bit_changes(f):
    tape, before = split(f, *[(P, n) for n in (3, 0, 1, 4)])
    loop = loop_of(tape)
    assert arrays(tape.program) < before
    made = [v for b in loop.blocks() for op in walk(b) for v in op.outputs if is_array(v)]
    assert not any(v.type.ndim for v in made)
    assert not any(map(is_array, loop.body.params))
    assert not [op for b in loop.blocks() for op in walk(b) if isinstance(op, (Store, Update))]


def test_counts_of_operations():
    tape, before = split(carried, (P, 2))
    assert before == 5  # the copy; rate, its multiple, the sum; what the loop returns
    assert arrays(tape.program) == 1  # the result
    assert len(loop_of(tape).outputs) == 3
    assert len(loop_of(tape).body.ops) == 9  # −, ·, −, and twice three for s + 0.25 rate


def test_matrix_products():
    def f(p, n):
        s = p.copy()
        for _ in range(n):
            s = A @ s + np.dot(s, p) * (p @ A) - A.T @ (A[:, 1] * s[0])
        return s, A[:2] @ A

    tape = trace_flat(f, Flattened((P, 3), {}), Lengths(SMALL))
    optimise(tape.program, checked)
    assert split_arrays(tape.program).in_loops > 5
    optimise(tape.program, checked)
    assert not any(is_array(v) for b in loop_of(tape).blocks() for op in walk(b)
                   for v in op.outputs)  # fmt: skip
    for n in (0, 1, 5):
        for found, wanted in zip(tape(P, n), f(P, n), strict=True):
            assert_allclose(found, wanted, rtol=20 * 3 * np.finfo(float).eps)


# -- programs that stay as they are, wholly or where it matters


def test_index_that_is_not_known():
    def f(p, n):
        s = np.zeros(3)
        for k in range(n):
            s[k % 3] += p[0]
        return s

    tape, before = split(f, (P, 3), (P, 0))
    assert arrays(tape.program) == before


def test_index_out_of_bounds_raises_where_it_did():
    def f(p, n):
        s = np.zeros(3)
        for k in range(n):
            s[0] += p[0]
            if k == 1:
                s[3] = 1.0
        return s

    tape, _ = split(f, (P, 1), (P, 2))
    with pytest.raises(IndexError, match="out of bounds"):
        tape(P, 2)


def test_what_is_written_under_another_name_later():
    def f(p, n):
        s = np.array([p[0], p[1], 1.0])
        t = s
        for k in range(n):
            if k == 1:
                t = s * 2.0
            s[0] += 1.0
        return t[0], s

    split(f, *[(P, n) for n in (0, 1, 2, 3)])


def test_arrays_that_change_names():
    def f(p, n):
        y, z = np.zeros(3), np.array([p[0], p[1], p[2]])
        for _ in range(n):
            y[0] = z[1] + 1.0
            y, z = z, y
        return y, z

    split(f, *[(P, n) for n in (0, 1, 2, 3)])


def test_arguments_that_are_written():
    def f(p, n):
        s = p[:2]
        for _ in range(n):
            p[0] += 1.0
            s = s + p[1:]
        return s, p

    split(f, (P, 3), (P, 0))


def test_result_stays_a_view_on_the_argument():
    def f(p):
        s = p[:2]
        return s, s[0] + s[1]

    tape, _ = split(f, (P,))
    given = P.copy()
    assert np.shares_memory(tape(given)[0], given)


def test_two_results_are_one_array():
    def f(p, n):
        s = np.array([p[0], 1.0])
        for _ in range(n):
            s = s * 2.0
        return s, s

    tape, _ = split(f, (P, 2))
    first, second = tape(P, 2)
    assert first is second


@pytest.mark.parametrize(("size", "wanted"), [(SMALL, 1), (SMALL + 1, 3)])
def test_sixteen_elements_are_small_and_seventeen_are_not(size, wanted):
    def f(s, n):
        for _ in range(n):
            s = s * 0.5 + 1.0
        return s

    tape, before = split(f, (np.ones(size), 2), (np.ones(size), 0))
    assert before == 3
    assert arrays(tape.program) == wanted


def test_what_is_only_handed_on_is_not_taken_apart():
    def f(p, n):
        y = p
        for _ in range(n):
            y = np.linalg.solve(A, np.array([y[0], 1.0, y[2]]))
        return y

    tape, before = split(f, (P, 2))
    assert arrays(tape.program) == before


def test_branch_that_returns_nothing_on_one_side():
    def f(p, n):
        for k in range(n):
            if k == 0:
                s = np.array([p[0], 2.0])
            s = s * 0.5
        return s if n else p[:2]

    tape, _ = split(f, (P, 2), (P, 0))
    assert tape.program.count(Branch) >= 1


# -- random programs

STATEMENTS = ["y, z = z, y", "y = z * 0.5", "z = x + y", "y = x.copy()", "y[1:] = z[:2]", "y = z",
              "y += z", "z[::-1] -= y", "z = np.array([a, y[0], 1.0])", "w = z[1:]; w[0] = b",
              "z = np.where(y > 0.0, y, z)", "y = np.flip(z)", "z = y[[2, 0, 1]]",
              "y = z.reshape(3, 1)[:, 0]", "z = np.stack([y, z])[1]", "z = np.cos(z) - y ** 2",
              "y[:] = a", "z[1:] *= y[:-1]", "y = x[::-1] + 0.5"]  # fmt: skip
RESULTS = ["y[1]", "np.sum(z)", "c", "c, y, z", "c, y", "c, z, z", "c, y[1:]"]


class Maker(test_random_tapes.Maker):
    """Random programs with constant indices."""

    def index(self):
        return self.pick("0", "1", "2", "-1")

    def statement(self, depth, *, in_loop):
        if self.random.random() < 0.3:
            self.line(depth, self.pick(*STATEMENTS))
        else:
            super().statement(depth, in_loop=in_loop)

    def source(self):
        super().source()
        a, b = (self.pick(*test_random_tapes.NUMBERS) for _ in range(2))
        self.lines[-1] = f"    return {a} + {b} + {self.pick(*RESULTS)}"
        early = ["return " + k for k in test_random_tapes.NUMBERS]
        return "\n".join(
            line[: len(line) - len(line.lstrip())] + "pass" if line.strip() in early else line
            for line in self.lines
        )


SEEDS = [*range(16), *(pytest.param(k, marks=pytest.mark.slow) for k in range(100, 1000))]


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_program_keeps_every_bit(seed):
    maker = Maker(seed)
    maker.random = random.Random(seed)
    text = maker.source() + "\n"
    filename = f"<random small {seed}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = {"np": np}
    exec(compile(text, filename, "exec"), namespace)
    runs = test_random_tapes.RUNS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tape = trace_flat(namespace["f"], Flattened(copy.deepcopy(runs[0]), {}), Lengths(SMALL))
        if seed % 2:
            optimise(tape.program, checked)
        wanted = [run(tape, args) for args in runs]
        checked(split_arrays, tape.program)
        assert [run(tape, args) for args in runs] == wanted, text
        optimise(tape.program, checked)
        assert [run(tape, args) for args in runs] == wanted, text


# -- derivatives


@pytest.mark.parametrize("lanes", [1, 2, 3, 8])
@pytest.mark.parametrize("f", LOOPS[:6], ids=lambda f: f.__name__)
def test_derivatives_are_those_of_the_plain_function(f, lanes):
    v = np.random.default_rng(lanes).standard_normal((lanes, 3))

    def first(p, n):
        y = f(p, n)
        return y[1] if isinstance(y, tuple) else y

    pushed = fwdad.jit(lambda p, v, n: fwdad.jvp(first, p, v, args=(n,)), backend="numpy")
    for n in (4, 0, 1):
        for found, wanted in zip(pushed(P, v, n), fwdad.jvp(first, P, v, args=(n,)), strict=True):
            assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("f", LOOPS[:4], ids=lambda f: f.__name__)
def test_jacobian_has_lanes_of_numbers_only(f):
    def first(p):
        y = f(p, 3)
        return y[1] if isinstance(y, tuple) else y

    J = fwdad.jit(fwdad.jacfwd(first), backend="numpy")
    assert_allclose(J(P), fwdad.jacobian(first, P), rtol=1e-12, atol=1e-13)
    loops = [op for op in walk(J.last.tape.program.block) if isinstance(op, Loop)]
    held = [v for op in loops for b in op.blocks() for v in (*b.params, *(
        o for inner in walk(b) for o in inner.outputs)) if is_array(v)]  # fmt: skip
    assert loops
    assert all(v.type.ndim == 1 for v in held)


def test_second_derivatives():
    def f(p):
        return np.sum(carried(p, 3) ** 2)

    H = fwdad.jit(fwdad.jacfwd(fwdad.jacfwd(f)), backend="numpy")
    assert_allclose(H(P), fwdad.hessian(f, P), rtol=1e-11, atol=1e-12)

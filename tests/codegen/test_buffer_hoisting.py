"""Arrays that iterations make and forget are allocated once; what an iteration leaves is not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

pytest.importorskip("numba")

from fwdad.codegen.loops.source import numba_source
from fwdad.frontend.trace import trace
from fwdad.transforms.passes import optimise

X = np.linspace(0.1, 1.3, 6)
M = np.arange(36.0).reshape(6, 6) / 50 + np.eye(6)


def lines_inside_loops(f, *args):
    """The lines of a program's source that allocate inside its loops."""
    program = trace(f, *args).program
    optimise(program)
    deep, found = None, []
    for line in numba_source(program)[0].code.splitlines():
        indent = len(line) - len(line.lstrip())
        if deep is not None and indent <= deep:
            deep = None
        if deep is not None and any(new in line for new in ("np.empty(", "np.zeros(", "growing(")):
            found.append(line.strip())
        if deep is None and line.strip().startswith(("for ", "while ")):
            deep = indent
    return found


def forgotten(x, m, n):
    total = 0.0
    for k in range(n):
        t = np.sin(x) * k + x
        d = t[1:] - t[:-1]
        w = np.zeros_like(x)
        w[1:] += d
        for j in range(3):
            p = m @ (w + j)
            c = p.copy()
            c[0] = j
            total += (c * t).sum() + p[0]
        total += m.sum(axis=0)[k % 6] + np.outer(t, w)[1, 1]
    return total


def literals(x, n):
    """What NumPy makes of numbers, shapes and other arrays."""
    total = 0.0
    for k in range(n):
        a = np.array([x[k % 6], 2.0, k])
        b = np.ones(3) * k
        b[1] += a[0]
        e = np.eye(3)
        e[k % 3, 0] += a[1]
        u = np.empty(3)
        u[0], u[1], u[2] = a[2], x[0], k
        t = np.linspace(0.0, x[1], 3)
        i = np.array([1, 2, 0]).astype(np.float64)
        i[k % 3] = a[0]
        d = np.diag(u)
        d[0, 1] = t[1]
        o = np.ones_like(x)
        o[k % 6] = b[1]
        w = np.tri(3)
        w[0, 2] = k
        f = np.full(3, x[2])
        f[0] = d[0, 1]
        total += e @ a @ b + t @ i + (d @ u).sum() + (w @ f).sum() + o @ x
    return total


def left_behind(x, n):
    """What the next iteration, or who comes after the loop, still needs."""
    before, u, kept = np.zeros_like(x), x, x[1:]
    for k in range(n):
        new = u * 0.5 + before * k
        if k % 2 == 0:
            kept = new[1:]
        before, u = u, new
    return before, u, kept


def left_by_break(x, n):
    t = x
    for k in range(n):
        t = x * (k + 1.0)
        if t[0] > 0.25:
            break
    return t


def left_in_a_loop_inside(x, n):
    rows = np.zeros((n, len(x)))
    total = x * 0.0
    for k in range(n):
        u = x + k
        for _ in range(3):
            u = np.sqrt(u) + x
        rows[k] = u
        total = total + u
    return rows, total


def cleared(x, n):
    out = np.zeros(n)
    for k in range(n):
        z = np.zeros(len(x))
        z[k % len(x)] = x[k % len(x)]
        out[k] = z.sum()
    return out


def kept_by_each(x, n):
    """What the reverse pass of an iteration pops: numbers, arrays, arrays of several lengths."""
    out = np.zeros((n, len(x)))
    for k in range(n):
        out[k] = fwdad.grad(shrinking)(x + 0.1 * k, 1 + k % 4)
    return out


def shrinking(x, n):
    s, y = 1.0, x
    for k in range(n):
        y = np.sin(y) * s
        s = np.exp(-s) * y[k % 3]
        for j in range(3):
            s = s + 0.1 * np.sum(np.cos(x[j:] * s) * x[j:])
    return s * y[0]


def popped_and_left(x, n):
    """A cotangent that was on a stack is what the iteration leaves."""
    first = last = g = np.zeros_like(x)
    for k in range(n):
        first, last = last, g
        g = fwdad.grad(weighted)(x, k)
    return first, last, g


def weighted(x, k):
    s = 0.0
    for j in range(2):
        w = np.cos(x + j + k)
        w[0] = j + k
        s = s + np.dot(w, x) if j else s
    return s


PROGRAMS = [
    (forgotten, (X, M, 4)), (left_behind, (X, 5)), (left_by_break, (X, 9)),
    (left_in_a_loop_inside, (X, 4)), (cleared, (X, 9)), (kept_by_each, (X, 7)),
    (popped_and_left, (X, 5)), (literals, (X, 5)),
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_results_are_the_same(program):
    f, args = program
    g = fwdad.jit(f)
    for _ in range(2):
        found, wanted = g(*args), f(*args)
        pairs = zip(found, wanted, strict=True) if type(wanted) is tuple else [(found, wanted)]
        for a, b in pairs:
            assert_allclose(a, b, rtol=1e-13)
    assert fwdad.explain(g).endswith("run by Numba")


def test_nothing_is_allocated_in_an_iteration():
    assert lines_inside_loops(forgotten, X, M, 4) == []
    assert lines_inside_loops(cleared, X, 9) == []
    assert lines_inside_loops(literals, X, 4) == []
    assert "growing" not in str(lines_inside_loops(kept_by_each, X, 7))


def test_what_is_left_is_allocated_each_time():
    assert len(lines_inside_loops(left_behind, X, 5)) == 1
    assert len(lines_inside_loops(left_by_break, X, 5)) == 1


def test_lengths_that_change_are_allocated_each_time():
    def f(x):
        total = 0.0
        for k in range(1, len(x)):
            t = x[:k] * 2.0
            total += t.sum() + (t + 1.0).max()
        return total

    assert lines_inside_loops(f, X)
    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-14)


def test_lanes_of_forgotten_arrays():
    J = fwdad.jit(fwdad.jacfwd(forgotten))
    assert_allclose(J(X, M, 4), fwdad.jacobian(lambda x: forgotten(x, M, 4), X), rtol=1e-12)


def test_results_do_not_share_memory_between_calls():
    g = fwdad.jit(left_in_a_loop_inside)
    first = [a.copy() for a in g(X, 4)]
    held = g(X, 4)
    g(2 * X, 4)
    for a, b in zip(held, first, strict=True):
        assert_array_equal(a, b)


def test_lengths_that_a_loop_leaves_smaller_are_asked_for_inside_the_reverse_pass():
    def f(x):
        return np.sum(np.sin(np.diff(x, 2)))

    g = fwdad.jit(fwdad.grad(f))
    assert_allclose(g(X**3), fwdad.jacobian(f, X**3, mode="forward"), rtol=1e-12)
    assert fwdad.explain(g).endswith("run by Numba")


def three(x):
    return np.einsum("i,ij,j", x, M, x)


def two(x):
    y = np.einsum("ij,j->i", M, x, optimize=True)
    return np.einsum("i,i", x, y, optimize=True) * np.einsum("ij,ij->", M, x[None] * 1.0)


@pytest.mark.parametrize("f", [three, two])
def test_gradients_of_einsum_are_compiled(f):
    gradient = fwdad.jit(fwdad.grad(f))
    assert_allclose(gradient(X), fwdad.jacobian(f, X, mode="forward"), rtol=1e-12)
    assert fwdad.explain(gradient).endswith("run by Numba")

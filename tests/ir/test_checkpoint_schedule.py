"""How many states checkpoints keep, and how often an iteration runs: no more work than is said."""

import math
import types

import numpy as np
import pytest

import fwdad
from fwdad.codegen.numpy_backend.source import numpy_source
from fwdad.ir.primitives import checkpoint_schedule
from fwdad.ir.primitives.stacks import new_stack, push


class Counting:
    """NumPy with a counted ``sin``."""

    def __init__(self):
        self.calls = 0

    def __getattr__(self, name):
        return getattr(np, name)

    def sin(self, x):
        self.calls += 1
        return np.sin(x)


class Counted(list):
    """A stack that knows how high it has been."""

    highest = 0

    def append(self, x):
        super().append(x)
        self.highest = max(self.highest, len(self))


def run_counted(f, *args):
    """How many states were kept at once, iterations kept together, and sines computed."""
    program = fwdad.trace(fwdad.grad(f), *args).program
    source = numpy_source(program)
    stacks, np_counted = [], Counting()

    def new():
        stacks.append(Counted())
        return stacks[-1]

    names = {v: k for k, v in source.namespace.items() if isinstance(v, types.FunctionType)}
    namespace = {**source.namespace, names[new_stack]: new, "np": np_counted}
    exec(source.code, namespace)
    namespace[source.name](*args)
    assert names[push] in namespace
    heights = [s.highest for s in stacks]
    return heights[0], max(heights[1:]), np_counted.calls


def over_range(x, n):
    r = np.float64(0.1)
    for _ in range(n):
        r = np.sin(r * x)
    return r


def until(x, n):
    r, k = np.float64(0.1), 0
    while k < n:
        r = np.sin(r * x)
        k += 1
    return r


@pytest.mark.parametrize(("f", "most"), [(over_range, 4), (until, 5)])
def test_states_and_repetitions(f, most):
    n = 1000
    kept, _, calls = run_counted(fwdad.checkpoint(f), 0.7, n)
    assert kept <= 3 * 10
    assert calls <= most * n
    kept, _, calls = run_counted(fwdad.checkpoint(f, snapshots=9), 0.7, n)
    assert kept <= 9
    kept, _, calls = run_counted(fwdad.checkpoint(f, memory=9 * 16), 0.7, n)
    assert kept <= 9


def repetitions(n, places, leaf, *, known=True):
    """What the forward pass and back do, on positions alone: (most, all, states at once)."""
    runs, stack, following, spacing, most = [0] * n, [], 0, 1, 0
    for i in range(n):
        if i == following:
            full = (
                len(stack) >= checkpoint_schedule.most_of_unknown(i, places) and len(stack) % 2 == 0
            )
            if not known and full:
                del stack[1::2]
                spacing *= 2
            stack.append(i)
            following = i + spacing
            if known:
                following = checkpoint_schedule.next_snapshot(i, n, len(stack), places, leaf)
        runs[i] += 1
        most = max(most, len(stack))
    end = n
    while end > 0:
        p = stack[-1]
        while end - p > leaf:
            stop = checkpoint_schedule.next_stop(p, end, len(stack), places, leaf)
            assert p < stop < end
            for j in range(p, stop):
                runs[j] += 1
            p = stop
            if len(stack) < places and end - p > leaf:
                stack.append(p)
                most = max(most, len(stack))
        for j in range(p, end):
            runs[j] += 1
        end = p
        if stack[-1] == p:
            stack.pop()
    return max(runs), sum(runs), most


def fewest(n, s, known):
    """The fewest iterations that have to be run again: by trying all places."""
    if n <= 1:
        return 0
    if s == 1:
        return n * (n - 1) // 2
    if (n, s) not in known:
        known[n, s] = min(m + fewest(n - m, s - 1, known) + fewest(m, s, known)
                          for m in range(1, n))  # fmt: skip
    return known[n, s]


def reach(n, s):
    return next(t for t in range(math.ceil(n) + 1) if math.comb(s + t, t) >= n)


@pytest.mark.parametrize("s", [1, 2, 3, 7, 20])
def test_schedule_is_the_best(s):
    known = {}
    for n in (1, 2, 3, 10, 47, 100):
        most, runs, kept = repetitions(n, s, 1)
        assert kept <= s
        assert most <= reach(n, s) + 2
        # the forward pass goes to the end; what it runs up to the last leaf is the first repetition
        assert runs - 2 * n <= fewest(n, s, known) - (n - 1) + reach(n, s) + 1


@pytest.mark.parametrize("s", [4, 10, 60, 300])
def test_unknown_length(s):
    for n in (1, 2, 3, 100, 1000, 20_000):
        most, _, kept = repetitions(n, s, 1, known=False)
        assert kept <= s
        assert most <= reach(8 * n / s, s // 2) + 2


def test_a_million():
    assert checkpoint_schedule.default_snapshots(10**6) == 300
    assert reach(10**6, 300) == 3
    most, _, kept = repetitions(10**6, 200, 100)
    assert kept <= 200
    assert most <= 4

"""Lists that grow and shrink, and whose items change, while the program runs."""

import bisect
import heapq
import pickle
import warnings
from collections import deque
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.syntax.growing_lists import changing
from fwdad.frontend.syntax.growing_lists.changing import NoRoomError
from tests.differences import central_differences
from tests.frontend.random_lists import Writer
from tests.written_programs import defined

X = np.array([0.523, 1.257, 0.311, 0.919, 0.737, 1.131])
Y = np.array([-0.417, 0.229, 1.123, 0.641, 0.353, 0.829])
LONG = np.random.default_rng(3).uniform(0.1, 1.4, 30)

pytestmark = pytest.mark.filterwarnings("ignore:.*this loop is unrolled")


def hull(x):
    """The lower hull of points: a monotone chain, which looks at the last two."""
    lower = []
    for k in range(len(x) // 2):
        p = (x[2 * k] + k, x[2 * k + 1])
        while len(lower) > 1:
            (ax, ay), (bx, by) = lower[-2], lower[-1]
            if (bx - ax) * (p[1] - ay) - (by - ay) * (p[0] - ax) > 0:
                break
            lower.pop()
        lower.append(p)
    area = 0.0
    for k in range(len(lower) - 1):
        area += lower[k][0] * lower[k + 1][1] - lower[k + 1][0] * lower[k][1]
    return area


def monotone(x):
    """What is larger than a later one is taken off."""
    stack, total = [], 0.0
    for v in x:
        while stack and stack[-1] > v:
            total += stack.pop() ** 2
        stack.append(v)
    return total + sum(stack) * x[0]


def window(x):
    """The latest three."""
    latest, total = [], 0.0
    for v in x:
        latest.append(v)
        if len(latest) > 3:
            latest.pop(0)
        total += max(latest) * min(latest)
    return total


def tree(x):
    """The nodes of a tree, the deepest first."""
    waiting, total = [0], 0.0
    while waiting:
        k = waiting.pop()
        total += x[k] ** 2 / (1 + k)
        for j in (2 * k + 1, 2 * k + 2):
            if j < len(x):
                waiting.append(j)
    return total


def quadrature(x):
    """Intervals that are halved until two rules agree."""
    waiting, total = [(0.0, 1.0)], 0.0
    while waiting:
        a, b = waiting.pop()
        m = (a + b) / 2
        fa, fm, fb = np.exp(-x[0] * a), np.exp(-x[0] * m), np.exp(-x[0] * b)
        coarse, fine = (b - a) * (fa + fb) / 2, (b - a) * (fa + 2 * fm + fb) / 4
        if abs(coarse - fine) < 1e-3:
            total += fine * x[1]
        else:
            waiting.append((a, m))
            waiting.append((m, b))
    return total


class Span(NamedTuple):
    start: float
    end: float


def joined(x):
    """Intervals that overlap are one."""
    spans = []
    for k in range(len(x)):
        start, end = 0.6 * k, 0.6 * k + x[k]
        if spans and start <= spans[-1].end:
            spans[-1] = Span(spans[-1].start, max(spans[-1].end, end))
        else:
            spans.append(Span(start, end))
    return sum((s.end - s.start) ** 2 for s in spans) * len(spans)


def both_ends(x):
    row = [x[0]]
    for k, v in enumerate(x):
        if v > 0.6:
            row.append(v * k)
        else:
            row.insert(0, v)
        row.insert(1, v * x[1])
        row.insert(-1, 0.5 * v)
        row.insert(100, v)
        del row[k % 2]
    row.reverse()
    total = row.pop(0)
    for k, v in enumerate(row):
        total = total * 0.7 + (k + 1) * v
    return total + sorted(row)[2]


def found_and_removed(x):
    held = [x[0], 2.0]
    for k, v in enumerate(x):
        held.append(v)
        held.append(2.0)
        if v > 0.6 and 2.0 in held:
            held.remove(2.0)
        if held.count(2.0) > 2:
            held[held.index(2.0)] = v * k
    held.sort()
    return held[0] + held[-1] * held[len(held) // 2] + held[-2] * 0.1


def emptied(x):
    parts, total = [], 0.0
    for v in x:
        parts.append(v)
        if sum(parts) > 1.5:
            total += np.prod(np.array(parts))
            parts.clear()
    return total + len(parts) + np.sum(np.array(parts) ** 2)


def insertion_sort(x):
    items = list(x)
    for k in range(1, len(items)):
        v, j = items[k], k - 1
        while j >= 0 and items[j] > v:
            items[j + 1] = items[j]
            j -= 1
        items[j + 1] = v
    total = 0.0
    for k, v in enumerate(items):
        total += (k + 1) * v
    return total


def spanning_tree(x):
    """The edges of a ring with chords, the shortest first, joined by representatives."""
    n, cost = len(x), 0.0
    parent = [k for k in range(n)]
    edges = sorted((x[k] * x[(k + 2) % n], k, (k + 2) % n) for k in range(n))
    for weight, a, b in edges:
        while parent[a] != a:
            a = parent[a]
        while parent[b] != b:
            b = parent[b]
        if a != b:
            parent[a] = b
            cost += weight
    return cost


def merged_codes(x):
    """Huffman's: the two least become one."""
    heap, cost = [abs(v) for v in x], 0.0
    heapq.heapify(heap)
    while len(heap) > 1:
        least = heapq.heappop(heap)
        both = least + heap[0]
        heapq.heapreplace(heap, both)
        cost += both
    return cost + heapq.heappushpop(heap, 0.5)


def events(x):
    """Each event makes others; the earliest is next."""
    waiting, total, weight = [], 0.0, 1.0
    for k, v in enumerate(x):
        heapq.heappush(waiting, (abs(v), k))
    while waiting and weight > 1e-2:
        time, k = heapq.heappop(waiting)
        total += weight * time * (k + 1)
        weight *= 0.8
        if time < 0.9:
            heapq.heappush(waiting, (time * 1.3 + 0.11, k))
    return total


def ranks(x):
    """What comes in is put in its place."""
    held, total = [], 0.0
    for v in x:
        bisect.insort(held, v)
        total += held[len(held) // 2] * (1 + bisect.bisect_left(held, 0.7))
    return total


def largest_of_four(x):
    """A window, whose places are on a queue."""
    places, total = deque(), 0.0
    for k in range(len(x)):
        while places and x[places[-1]] < x[k]:
            places.pop()
        places.append(k)
        if places[0] <= k - 4:
            places.popleft()
        if k >= 3:
            total += x[places[0]] ** 2
    return total + len(places)


def latest_large_ones(x):
    kept, total = deque([0.1], maxlen=3), 0.0
    for v in x:
        if v > 0.5:
            kept.append(v * v)
        elif kept:
            kept.appendleft(v)
        for j, w in enumerate(kept):
            total += (j + 1) * w
    return total + kept[-1] * len(kept)


def counted_in_bins(x):
    """What is in a bin is changed at places that values decide."""
    total, bins, counts = 0.0, [0.0] * 4, [0] * 4
    for k in range(len(x)):
        place = 0
        while place < 3 and x[k] > 0.3 * (place + 1):
            place += 1
        bins[place] += x[k] ** 2
        counts[place] += 1
    for k in range(4):
        total += bins[k] / (1 + counts[k]) * (k + 1)
    return total


PROGRAMS = [
    hull, monotone, window, tree, quadrature, joined, both_ends, found_and_removed, emptied,
    insertion_sort, spanning_tree, merged_codes, events, ranks, largest_of_four, latest_large_ones,
    counted_in_bins,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_all_modes(f):
    tapes = {
        derivative: fwdad.jit(derivative(f), backend="numpy")
        for derivative in (fwdad.value_and_grad, fwdad.jacfwd)
    }
    fast = fwdad.jit(f, backend="numpy")
    for x in (X, Y, X[::-1].copy(), Y[:4], LONG[:11]):
        y, J = f(x), fwdad.jacobian(f, x, mode="forward")
        assert_allclose(J, central_differences(f, x, least=0.1), rtol=1e-5, atol=1e-6)
        found = fast(x)
        assert type(found) is type(y)
        assert_allclose(found, y, rtol=1e-13)
        found, gradient = tapes[fwdad.value_and_grad](x)
        assert_allclose(found, y, rtol=1e-13)
        assert_allclose(gradient, J, rtol=1e-11, atol=1e-13)
        assert_allclose(tapes[fwdad.jacfwd](x), J, rtol=1e-11, atol=1e-13)
        for n in (1, 2, 3) if x is X else ():
            v = np.cos(np.arange(n * x.size)).reshape(n, -1)
            assert_allclose(fwdad.jvp(fast, x, v)[1], v @ J, rtol=1e-11, atol=1e-13)
            assert_allclose(fwdad.grad(f)(x), J, rtol=1e-11, atol=1e-13)
            assert_allclose(fwdad.vjp(fast, x)[1](2.0), 2 * J, rtol=1e-11, atol=1e-13)


@pytest.mark.every(3)
@pytest.mark.parametrize("f", PROGRAMS)
def test_compiled(f):
    pytest.importorskip("numba")
    fast = fwdad.jit(fwdad.value_and_grad(f))
    for x in (X, Y, LONG):
        y, gradient = fast(x)
        assert_allclose(y, f(x), rtol=1e-13)
        assert_allclose(gradient, fwdad.jacobian(f, x, mode="forward"), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("f", [monotone, quadrature, joined])
def test_second_derivatives(f):
    found = fwdad.jit(fwdad.hessian(f), backend="numpy")(X)
    assert_allclose(found, central_differences(fwdad.grad(f), X), rtol=1e-5, atol=1e-6)


def recursive(x):
    """A list that calls of a function inside share."""
    parts = []

    def halved(k, a):
        if k > 5 or a < 0.1:
            parts.append(a)
            return
        halved(k + 1, a * x[0])
        if parts and parts[-1] > 0.2:
            parts.pop()
        halved(k + 1, a * x[1])

    halved(0, 1.0)
    return sum(parts)


def checkpointed(x):
    def marked(y):
        held.append(y[0] * 2)
        held[0] = y[1]
        if y[2] > 0.5:
            held.pop()
        return held[-1] * y[1]

    held = [x[0], x[1]]
    return fwdad.checkpoint(marked)(x) * fwdad.checkpoint(marked)(2 * x) + sum(held)


class Stack:
    def __init__(self):
        self.items = []

    def __len__(self):
        return len(self.items)

    @property
    def top(self):
        return self.items[-1]


def of_a_class(x):
    stack, total = Stack(), 0.0
    for v in x:
        while len(stack) and stack.top > v:
            total += stack.items.pop()
        stack.items.append(v)
    return total * len(stack)


def one_or_the_other(x):
    low, high, total = [], [], 0.0
    for v in x:
        if v > 0.6:
            high.append(v)
        else:
            low.append(v)
        if len(high) > 2:
            total += high.pop(0) * high.pop()
    return total + sum(low) * sum(high)


def what_is_not_there(x):
    held, total = [], 0.0
    for v in x:
        if v > 0.6:
            held.append(v)
        try:
            total += held.pop() * held.pop()
        except IndexError:
            total += v
    return total


@pytest.mark.parametrize(
    "f", [recursive, checkpointed, of_a_class, one_or_the_other, what_is_not_there]
)
def test_where_lists_are_kept_and_changed(f):
    fast, reverse = (fwdad.jit(g, backend="numpy") for g in (f, fwdad.grad(f)))
    forward = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    for x in (X, X[::-1].copy(), X * 0.9):
        assert_allclose(fast(x), f(x), rtol=1e-13)
        J = central_differences(f, x, least=0.1)
        assert_allclose(reverse(x), J, rtol=1e-5, atol=1e-6)
        assert_allclose(forward(x), J, rtol=1e-5, atol=1e-6)
    batch = np.stack([X, X[::-1], X * 0.9])
    assert_allclose(fwdad.vmap(f)(batch), [f(x) for x in batch], rtol=1e-13)


def test_one_tape_for_all_values():
    fast = fwdad.jit(monotone, backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no loop is unrolled
        for seed in range(6):
            x = np.random.default_rng(seed).random(50 + seed)
            assert_allclose(fast(x), monotone(x), rtol=1e-13)
    assert len(fast.specialisations()) == 1


def test_more_items_than_there_is_room(monkeypatch):
    monkeypatch.setattr(changing, "_ROOM", 4)
    monkeypatch.setattr(changing, "rooms", {})
    fast, slope = fwdad.jit(monotone, backend="numpy"), fwdad.jit(fwdad.grad(monotone))
    for n in (3, 5, 200, 4, 1500, 10):
        x = np.linspace(0.1, 1.0, n)
        assert_allclose(fast(x), monotone(x), rtol=1e-12)
        assert_allclose(slope(x), fwdad.grad(monotone)(x), rtol=1e-11)
        assert_allclose(fwdad.vjp(fast, x)[1](1.0), slope(x), rtol=1e-11)
    assert 3 <= len(fast.specialisations()) <= 4
    (room,) = changing.rooms.values()
    assert room == 4 * 16**3


def test_the_error_can_be_pickled():
    error = NoRoomError(2, "file.py", 3, 4, "")
    with pytest.raises(NoRoomError, match="more than 2 items"):
        raise pickle.loads(pickle.dumps(error))


ERRORS = {
    "pop from empty list": "x = a[0]\n    while x < 9:\n        x += l.pop()\n    l.append(x)",
    "pop index out of range": "l.pop(1 + len(l))",
    "list index out of range": "s = l[len(l)]",
    "list assignment index out of range": "l[-1 - len(l)] = 1.0",
    "list.remove(x): x not in list": "l.remove(77.0)",
}


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("message", ERRORS)
def test_errors_are_those_of_a_list(message, backend, tmp_path):
    lines = [
        "l, s = [], 0.0",
        "for v in a:",
        "    l.append(v)",
        "    if v > 1.0:",
        "        l.pop()",
    ]
    text = "\n    ".join(
        ["def f(a):", *lines, *ERRORS[message].split("\n    "), "return s + len(l)"]
    )
    f = defined(text, tmp_path)
    kind = ValueError if "remove" in message else IndexError
    for g in (f, fwdad.jit(f, backend=backend)):
        with pytest.raises(kind) as caught:
            g(X)
        assert str(caught.value).splitlines()[0] in (message, "77.0 is not in list")


def test_lists_that_are_returned_and_copied():
    def kept(x):
        out = []
        for k, v in enumerate(x):
            out.append((k, v))
            if v < 0.6:
                out.pop()
        copy = out.copy()
        out.append((7, x[0]))
        return out, copy, [v for _, v in copy]

    for backend in ("numpy", "auto"):
        found, wanted = fwdad.jit(kept, backend=backend)(X), kept(X)
        assert found == wanted
        assert [type(v) for p in found[0] for v in p] == [type(v) for p in wanted[0] for v in p]


def test_what_is_changed_in_a_loop_over_it():
    def f(x):
        held = []
        for v in x:
            held.append(v)
            if v > 1:
                held.pop()
        for k, v in enumerate(held):
            held[-1 - k] = v * 2
        total = 0.0
        for v in held:
            total = total * 0.5 + v
        return total

    for x in (X, Y):
        assert_allclose(fwdad.jit(f, backend="numpy")(x), f(x), rtol=1e-14)
        gradient = fwdad.jit(fwdad.grad(f), backend="numpy")(x)
        assert_allclose(gradient, central_differences(f, x), rtol=1e-6, atol=1e-8)


def test_what_prints_cannot_run_again():
    def f(x):
        stack = []
        for v in x:
            print("v")
            while stack and stack[-1] > v:
                stack.pop()
            stack.append(v)
        return sum(stack)

    with pytest.raises(UntraceableError, match="could not be run again"):
        fwdad.jit(f, backend="numpy")(X)


def agrees(seed, backend, folder):
    source = Writer(seed).source()
    f = defined(source, folder)
    runs = [(X[:5], 9), (Y[:5], 9), (X[:5], 0), (X[4::-1].copy(), 30)]
    fast, reverse, forward = (
        fwdad.jit(g, backend=backend) for g in (f, fwdad.value_and_grad(f), fwdad.jacfwd(f))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fwdad.TraceWarning)
        for x, n in runs:
            with np.errstate(all="ignore"):
                y = f(x, n)
                if not abs(y) < 1e6:
                    return
            J = fwdad.jacobian(f, x, args=(n,), mode="forward")
            found = fast(x, n)
            assert type(found) is type(y), source
            assert_allclose(found, y, rtol=1e-11, err_msg=source)
            found, gradient = reverse(x, n)
            assert_allclose(found, y, rtol=1e-11, err_msg=source)
            assert_allclose(gradient, J, rtol=1e-9, atol=1e-10, err_msg=source)
            assert_allclose(forward(x, n), J, rtol=1e-9, atol=1e-10, err_msg=source)
            assert_array_equal(x, x.copy())


SEEDS = [*range(24), *(pytest.param(k, marks=pytest.mark.slow) for k in range(2000, 2300))]


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed, tmp_path):
    agrees(seed, "numpy", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3000, 3040))
def test_random_programs_compiled(seed, tmp_path):
    pytest.importorskip("numba")
    agrees(seed, "auto", tmp_path)

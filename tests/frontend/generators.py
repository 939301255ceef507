"""Programs with generators, iterators and context managers."""

import contextlib
import functools
import itertools
import types
import warnings

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.125, -4.0, 1.0])


def scaled(a, k=2.0):
    for x in a:
        yield x * k


@program((V,), (W,))
def generators_are_consumed_by_everything(a):
    first, *rest = scaled(a)
    total = 0.0
    for k, (x, y) in enumerate(zip(scaled(a, 3.0), a)):
        total += k * x * y
    return (
        first, rest, total, list(scaled(a)), tuple(scaled(a)), sum(scaled(a)), max(*scaled(a)),
        np.array(list(scaled(a))), np.fromiter(scaled(a), float), dict(zip("ab", scaled(a))),
        functools.reduce(lambda x, y: x * y, scaled(a)), list(itertools.islice(scaled(a), 1, 3)),
        min(scaled(a)), [x + 1 for x in scaled(a)], any(x > 3 for x in scaled(a)),
    )  # fmt: skip


@program((V,), (W,))
def generators_run_when_they_are_asked(a):
    b, seen = a * 1.0, []

    def sums():
        for k in range(1, 4):
            b[k] = b[k - 1] + a[k]
            yield b[: k + 1].sum()

    for total in sums():
        seen.append(total)
        b *= 0.5
    later = (b[k] for k in range(2, 4))
    b[3] = 9.0
    for x in (b[k] for k in range(3)):
        b[2] = x
    return seen, b, list(later), [x for x in map(lambda k: b[k], range(2))]


@program((V,), (W,))
def generators_with_all_statements(a):
    log = []

    def numbers(n):
        k = 0
        while True:
            sent = yield a[k % 4] * k
            k += 1 if sent is None else sent
            if k % 2:
                continue
            if k > n:
                break
        else:
            yield 100.0
        for j in range(2):
            if j == n:
                break
            yield from (a[j], 2.0)
        else:
            yield 7.0
        try:
            yield a[3]
        finally:
            log.append(k)
        got = yield from inner()
        yield got
        if n > 2:
            return a[0]

    def inner():
        yield a[1]
        return a[2]

    def outer():
        last = yield from numbers(5)
        yield last

    it = numbers(3)
    first, second, third = next(it), it.send(2), next(it)
    return list(numbers(1)), list(outer()), (first, second, third), next(it, 0.0), log


@program((V,), (W,))
def iterators_by_hand(a):
    it = iter(a)
    pairs = list(zip(it, it))
    z, e, r = zip(a, a[::-1]), enumerate(a), reversed(a)
    first, second = next(z), next(e)
    left = iter([1, 2, 3])
    some = [k for k in zip((1, 2), left)]
    items = [4, 3, 2, 1]
    counted = itertools.count(3)
    return (
        pairs, next(it, a[0]), first, sum(x * y for x, y in z), second, [k * x for k, x in e],
        next(r) - next(r), next(left), some, list(iter(items.pop, 2)), items,
        (next(counted), next(counted)), list(left),
    )  # fmt: skip


@program((V, 3), (W, 9))
def itertools_of_everything(a, n):
    total = a[0] * a[0]
    for k in itertools.count(1):
        total += 1.0 / k
        if total > n:
            break
    x, y = itertools.tee(scaled(a))
    return (
        total, k, sum(k * x for k, x in zip(itertools.count(10, -2), a)),
        [x * k for x, k in zip(a, itertools.count(0.5, 0.25))],
        [x * y for x, y in zip(a, itertools.cycle([a[1], 2.0]))],
        [x * y for x, y in zip(a, itertools.repeat(a[1]))],
        list(itertools.takewhile(lambda k: k < 3, itertools.count())),
        list(itertools.dropwhile(lambda k: k < 3, range(5))),
        list(itertools.compress(a, [1, 0, 1, 1])), list(itertools.filterfalse(bool, [0, 1])),
        [(k, sum(a[i] for i in g)) for k, g in itertools.groupby(range(4), lambda i: i // 2)],
        [p * q for p, q in zip(x, y)], list(itertools.accumulate(scaled(a), max)),
        list(itertools.chain(scaled(a), [1.0])), list(itertools.starmap(pow, [(a[0], 2)])),
    )  # fmt: skip


class Countdown:
    def __init__(self, n, a):
        self.n, self.a = n, a

    def __iter__(self):
        return self

    def __next__(self):
        if self.n == 0:
            raise StopIteration
        self.n -= 1
        return self.a[self.n] * self.n


class Tree:
    def __init__(self, *items):
        self.items = items

    def __iter__(self):
        for item in self.items:
            if isinstance(item, Tree):
                yield from item
            else:
                yield item

    def __contains__(self, x):
        return any(x == item for item in self)


@program((V,), (W,))
def objects_that_are_iterated_over(a):
    tree = Tree(a[0], Tree(a[1], Tree(a[2])), a[3])
    x, y = Tree(a[0], a[1])
    down = Countdown(3, a)
    return list(tree), x * y, [*tree], next(down), sum(down), a[2] in tree, 9.0 in tree


@program((V,), (W,))
def an_iterator_that_ends_with_a_branch(a):
    it = iter(a)
    if a[0] > 1:
        y = next(it) * next(it)
    else:
        y = a[3]
    total = 0.0
    for x in scaled(a):
        if x > 5:
            break
        total += x
    return y + total


class Kept:
    """Puts an attribute back."""

    def __init__(self, o, log):
        self.o, self.log = o, log

    def __enter__(self):
        self.old = self.o.x
        self.log.append(1)
        return self.o

    def __exit__(self, kind, error, place):
        self.o.x = self.old
        self.log.append(0 if kind is None else kind.__name__)


@contextlib.contextmanager
def doubled(a, log):
    a *= 2
    try:
        yield a.sum()
    finally:
        a /= 2
        log.append("left")


class Swallowing:
    def __enter__(self):
        return 2.0

    def __exit__(self, kind, error, place):
        return kind is KeyError


@program((V,), (W,))
def context_managers(a):
    o, log, b = types.SimpleNamespace(x=a[0]), [], a * 1.0

    def inside():
        with Kept(o, log) as held, doubled(b, log) as total:
            held.x = held.x * total
            if a[1] > 0:
                return held.x
            b[0] = 9.0
        return o.x * 3

    y = inside()
    with contextlib.suppress(KeyError), Swallowing() as two:
        y = y * two
        raise KeyError
    with contextlib.nullcontext(a[2]) as z, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = y + z
    try:
        with Kept(o, log), doubled(b, log):
            log.append(1.0 / 0)
    except ZeroDivisionError:
        y = y * 2

    @contextlib.contextmanager
    def here(k):
        yield k * 2

    with here(a[3]) as k, np.printoptions(precision=3):
        y = y + k
    return y, o.x, b, log


@program((V,), (W,))
def finally_and_raise_again(a):
    log = []

    def jumps(k):
        try:
            if a[0] > 1:
                return a[0]
            log_length = len(log)
        finally:
            a[1] = 5.0
        return log_length * a[2]

    def again():
        try:
            {}["a"]
        except KeyError:
            try:
                raise
            except LookupError:
                return 1.0

    def overridden():
        try:
            return a[0]
        finally:
            log.append(1)

    try:
        y = a[0] * a[1] + np.sin(a[2])
    except (ZeroDivisionError, KeyError):
        y = 0.0
    else:
        y = y * 2
    for k in range(3):
        try:
            if k == 1:
                break
        finally:
            y = y + 1
    return y, jumps(0), again(), overridden(), log, a[1]


@program((V,), (W,))
def a_work_list(a):
    todo, seen, graph = [0], [], {0: [1, 2], 1: [3], 2: [3], 3: []}
    while todo:
        k = todo.pop(0)
        if k not in seen:
            seen.append(k)
            todo.extend(graph[k])
    return [a[k] * n for n, k in enumerate(seen)], range(len(a))[-1], a[1] in a, 77.0 in a


@program((1.5, 2.0), (2.0, 1.5), (1.5, 1.5))
def tuples_are_compared_by_values(x, y):
    return (x, 1) < (y, 0), [x, y] <= [y, x], min((x, 1.0), (y, 2.0)), (x, y) > (1.5,)

"""Programs that are refused for a statement, an iterator, an exception or a `with`."""

import asyncio
import contextlib
import math
import os
import threading
import warnings

import numpy as np

from tests.frontend.refused.table import Refused, V

PROGRAMS = refuses = Refused()


# -- syntax


@refuses("`async` functions", 1.0, part="async def")
def asynchronous(x):
    async def g():  # here
        return x

    return asyncio.run(g())


_PUTS_OUT = (
    "a `finally` or an `__exit__` that prints or logs, stores into an array from outside, "
    "raises, returns, breaks or continues, around `raise` or `assert` under a condition that they "
    "do not catch"
)


@refuses(_PUTS_OUT, 1.0, part="would be missing")
def output_in_a_finally(x):
    try:  # here
        if x > 5:
            raise KeyError
    finally:
        print("left")
    return x


@refuses("`class` statements", 1.0, part="`class`")
def local_class(x):
    class Local:  # here
        held = x

    return Local.held


@refuses("`type` with three arguments", 1.0, part="`type`")
def made_class(x):
    return type("C", (), {"k": 3}).k * x  # here


@refuses("`except*`", 1.0, part="except*")
def except_star(x):
    try:  # here
        y = x
    except* ValueError:
        y = 0.0
    return y


# -- generators and iterators


@refuses("a generator that goes on, or yields, by a value", V, part="depends on a value")
def generator_by_value(a):
    def large():
        for x in a:
            if x > 1:  # here
                yield x

    return sum(large())


@refuses("a generator that goes on, or yields, by a value", 1.0, part="depends on a value")
def generator_while(x):
    def doubled(t):
        while t < 9:  # here
            yield t
            t = t * 2

    return sum(doubled(x))


@refuses("`yield` inside an expression", 1.0, part="inside an expression")
def yield_inside(x):
    def g():
        y = 2 * (yield x)  # here
        yield 1.0 if y is None else y

    it = g()
    return next(it) + it.send(3.0)


_OUTSIDE = (
    "an iterator that is made outside of the loop or branch that uses it, or used again after it"
)


_LEFT = (
    "a generator that is left inside a `try` with `finally`, or a `with` that does something at "
    "its end, but by the loop `for v in g()` over its call"
)


@refuses(_LEFT, 1.0, part="a generator is left")
def generator_dropped(x):
    log = []

    def own():
        try:  # here
            yield x
        finally:
            log.append(x)

    return next(own()) + sum(log)


@refuses("one that is left there by a value", 1.0, part="whether a generator is left")
def generator_left_by_a_value(x):
    log = []

    def own():
        try:
            yield x
            yield 2 * x
        finally:
            log.append(x)

    for v in own():  # here
        if v > 0.5:
            break
    return v + sum(log)


@refuses("one that is left there and may raise an exception at its end", 1.0, part="reports that")
def generator_that_raises_at_its_end(x):
    def own():
        try:
            yield x
        finally:
            if x > 5:
                raise KeyError

    for v in own():  # here
        break
    return v


@refuses(
    "`any`, `all` or `in` of more than 64 tests that bind names, write, print or may raise, each "
    "by a value",
    np.ones(70),
    part="more than 64 tests",
)
def many_witnesses(a):
    if any((w := v) > 1.5 for v in a):  # here
        return w
    return 0.0


@refuses(
    "an iterator that is used again after `any`, `all` or `in` of it",
    V,
    part="its position would depend",
)
def rest_after_any(a):
    it = iter(a)
    found = any(v > 1.0 for v in it)
    return sum(it) + found  # here


@refuses(_OUTSIDE, np.ones(65), part="its position would depend")
def iterator_from_outside(a):
    it = iter(a)
    total = 0.0
    for x in a:
        total += next(it) * x  # here
    return total


@refuses(_OUTSIDE, V, part="its position would depend")
def iterator_behind_a_branch(a):
    it = iter(a)
    first = next(it) if a[0] > 0 else 1.0
    return first * next(it)  # here


@refuses(
    "two loops over one `zip`, `enumerate`, `map` or generator, the first of which is left early",
    V,
    part="second time",
)
def zip_used_twice(a):
    pairs = zip(a, a)
    total = 0.0
    for x, y in pairs:
        if x > 9:
            break
        total += x * y
    for x, y in pairs:  # here
        total += x + y
    return total


@refuses(
    "two loops over one `zip`, `enumerate`, `map` or generator, the first of which is left early",
    V,
    part="second time",
)
def enumerate_used_twice(a):
    k, r = enumerate(a), reversed(a)
    total = 0.0
    for _, x in k:
        if x > 9:
            break
        total += x
    for x in r:
        total *= x
    for _, x in k:  # here
        total += x
    return total


class Until:
    def __init__(self, x):
        self.x = x

    def __iter__(self):
        return self

    def __next__(self):
        self.x = self.x * 2
        if self.x > 9:
            raise StopIteration
        return self.x


@refuses("an object whose `__next__` ends by a value", 1.0, part="ends depends on a value")
def own_iterator(x):
    return sum(Until(x))  # here


class Items:
    def __init__(self, a):
        self.a = a

    def __getitem__(self, k):
        return self.a[k]


@refuses("a loop over an object with `__getitem__` and no `__iter__`", V, part="loop over an Items")
def sequence_protocol(a):
    return sum([x for x in Items(a)])  # here


# -- exceptions and `with`

_CATCHES = "`try` around operations that may raise what it catches at run time"
_SUPPRESSES = (
    "`with` of a manager of the program's own that may suppress exceptions around such operations"
)
_LIBRARY = (
    "`with` of files, locks (but a package's own, around its compiled code: a tape does not hold "
    "it) and other objects of Python's library, but `contextmanager`, `nullcontext`, `suppress`, "
    "`ExitStack` (but `pop_all`), `catch_warnings`, `np.errstate`"
)


@refuses(_CATCHES, 1.0, part="may raise at run time")
def division(x):
    try:  # here
        return 1 / x
    except ZeroDivisionError:
        return 0.0


@refuses(_CATCHES, V, 1, part="may raise at run time")
def index(a, n):
    try:  # here
        return a[n]
    except IndexError:
        return 0.0


@refuses(_CATCHES, 1.0, part="may raise at run time")
def suppressed(x):
    y = 0.0
    with contextlib.suppress(ValueError):  # here
        y = math.sqrt(x)
    return y


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, place):
        return kind is ValueError


@refuses(_SUPPRESSES, 1.0, part="may suppress exceptions")
def swallowed(x):
    y = 0.0
    with Swallow():  # here
        y = math.sqrt(x)
    return y


_BEFORE = (
    "an exception that is made before it is raised, and holds values, raised in a loop or branch "
    "inside of the `try` that catches it"
)


@refuses(_BEFORE, 1.0, part="created before it is raised")
def made_before_it_is_raised(x):
    error = ValueError(x)
    try:
        if x > 0:
            y = x * x
            if y > 4:
                raise error  # here
    except ValueError:
        x = 0.0
    return x


LOCK = threading.Lock()


@refuses(_LIBRARY, 1.0, part="`with` of a lock")
def locked(x):
    with LOCK:  # here
        return x * 2


@refuses(_LIBRARY, 1.0, part="`pop_all` of an ExitStack")
def stack_is_handed_on(x):
    with contextlib.ExitStack() as stack:
        stack.pop_all()  # here
    return x * 2


@refuses(_LIBRARY, 1.0, part="at trace time")
def a_file(x):
    with open(os.devnull) as f:  # here
        f.read()
    return x


@refuses(
    "`np.errstate` that raises at underflow (as with `all=`), or calls",
    1.0,
    part="raises at underflow, or calls",
)
def errors_that_raise(x):
    with np.errstate(all="raise"):  # here
        return x / 2


_RAISES = (
    "`np.errstate` that raises around a loop, a branch, arithmetic of integers, or functions other "
    "than ufuncs"
)


@refuses(_RAISES, V, part="numpy.linalg.norm inside of `np.errstate` that raises")
def errors_that_raise_around_a_norm(x):
    with np.errstate(divide="raise"):
        return np.linalg.norm(x)  # here


@refuses(_RAISES, V, np.array([2, 4, 1, 3]), part="numpy.floor_divide of integers inside of")
def integers_in_an_errstate_that_raises(x, n):
    six = np.full(4, 6)
    with np.errstate(divide="raise"):
        k = six // n  # here
    return np.sum(x * k)


@refuses(_RAISES, V, part="a loop or a branch inside of `np.errstate` that raises")
def errors_that_raise_around_a_branch(x):
    with np.errstate(divide="raise"):
        if x[0] > 0:  # here
            x = 1 / x
        return x


@refuses(_LIBRARY, 1.0, part="`with` of an errstate cannot be traced")
def errors_that_raise_on_a_stack(x):
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(divide="raise"))  # here
        return x * 2


@refuses("warnings that are recorded", 1.0, part="recording warnings")
def recorded_warnings(x):
    with warnings.catch_warnings(record=True):  # here
        return x / 2


@refuses("a context manager that decorates a function", 1.0, part="decorates")
def manager_as_decorator(x):
    @contextlib.contextmanager
    def manager():
        yield

    @manager()  # here
    def f(a):
        return a * 2

    return f(x)


@refuses(
    "`__cause__`, `__context__` or `__traceback__` of an exception that the program raises",
    2.0,
    part="an attribute of your own",
)
def cause_read(x):
    try:
        try:
            raise KeyError(x)
        except KeyError as inner:
            raise ValueError(x) from inner
    except ValueError as outer:
        return outer.__cause__.args[0] * x  # here

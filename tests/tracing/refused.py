"""A program for each item of the first column of ``fwdad/tracing/limits.md``."""

import asyncio
import collections
import contextlib
import copy
import dataclasses
import decimal
import functools
import heapq
import itertools
import math
import os
import sys
import threading
import time
import warnings

import numpy as np

import fwdad

V = np.array([0.5, 1.25, 2.0, 3.5])
TABLE = []
"""Program, its arguments, the item of the page, and a part of the message."""


def refuses(item, *args, part=""):
    """Enter a program; the line that is marked by ``# here`` is the one that is named."""

    def enter(f):
        TABLE.append((f, args, item, part))
        return f

    return enter


# -- syntax


@refuses("`async` functions", 1.0, part="async def")
def asynchronous(x):
    async def g():  # here
        return x

    return asyncio.run(g())


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
    "an iterator that is made outside of the loop or branch that uses it, or used again behind it"
)


@refuses(_OUTSIDE, V, part="how far it stands")
def iterator_from_outside(a):
    it = iter(a)
    total = 0.0
    for x in a:
        total += next(it) * x  # here
    return total


@refuses(_OUTSIDE, V, part="how far it stands")
def iterator_behind_a_branch(a):
    it = iter(a)
    first = next(it) if a[0] > 0 else 1.0
    return first * next(it)  # here


@refuses("two loops over one `zip`, `enumerate` or `reversed`", V, part="second time")
def zip_used_twice(a):
    pairs = zip(a, a)
    total = 0.0
    for x, y in pairs:
        total += x * y
    for x, y in pairs:  # here
        total += x + y
    return total


@refuses("two loops over one `zip`, `enumerate` or `reversed`", V, part="second time")
def enumerate_used_twice(a):
    k, r = enumerate(a), reversed(a)
    total = 0.0
    for _, x in k:
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


@refuses("a loop over an object with `__getitem__` and no `__iter__`", V, part="loop over a Items")
def sequence_protocol(a):
    return sum([x for x in Items(a)])  # here


# -- exceptions and `with`

_CATCHES = "`try` around operations that may raise what it catches when the program runs"
_SUPPRESSES = "`with` of a manager that may suppress exceptions around such operations"
_LIBRARY = (
    "`with` of files, locks and other objects of Python's library, but `contextmanager`, "
    "`nullcontext`, `suppress`, `catch_warnings`, `np.errstate`"
)


@refuses(_CATCHES, 1.0, part="may raise when the program runs")
def division(x):
    try:  # here
        return 1 / x
    except ZeroDivisionError:
        return 0.0


@refuses(_CATCHES, V, 1, part="may raise when the program runs")
def index(a, n):
    try:  # here
        return a[n]
    except IndexError:
        return 0.0


@refuses(_SUPPRESSES, 1.0, part="may suppress exceptions")
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


@refuses("`else` of a `try` that some ways jump out of", 1.0, part="`else` of a `try`")
def else_after_a_jump(x):
    try:  # here
        if x > 0:
            return x
    except KeyError:
        return 1.0
    else:
        x = x * 2
    return x


LOCK = threading.Lock()


@refuses(_LIBRARY, 1.0, part="`with` of a lock")
def locked(x):
    with LOCK:  # here
        return x * 2


@refuses(_LIBRARY, 1.0, part="`with` of a ExitStack")
def exit_stack(x):
    with contextlib.ExitStack():  # here
        return x * 2


@refuses(_LIBRARY, 1.0, part="when the program is traced")
def a_file(x):
    with open(os.devnull) as f:  # here
        f.read()
    return x


@refuses("`np.errstate` that raises or calls", 1.0, part="floating-point errors")
def errors_that_raise(x):
    with np.errstate(all="raise"):  # here
        return x / 2


@refuses("warnings that are recorded", 1.0, part="recorded")
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


# -- lengths that depend on values


@refuses("a list or dict that grows in a loop", 1.0, 100, part="grows or shrinks")
def list_in_a_loop(x, n):
    found = []
    for k in range(n):
        found.append(x * k)  # here
    return found


@refuses("a list or dict that grows on one side of a branch", 3.0, part="grows or shrinks")
def list_on_one_side(x):
    found = [x]
    if x > 1:
        found.append(x)
    return found


@refuses("a list or dict that grows on one side of a branch", 3.0, part="grows or shrinks")
def dict_on_one_side(x):
    found = {}
    if x > 1:
        found["a"] = x
    return found


@refuses("a loop over a list of more than 1280 items", 1.0, part="too large")
def long_list(x):
    total = x
    for k in [2.0] * 1300:  # here
        total += k
    return total


@refuses("comprehensions of which a value decides the length", V, part="depends on values")
def comprehension(a):
    return [x for x in a if x > 1]  # here


@refuses("`filter` by values", V, part="`filter`")
def filtered(a):
    return list(filter(lambda x: x > 1, a))  # here


@refuses("`itertools.takewhile` and the like by values", V, part="takewhile")
def taken(a):
    return list(itertools.takewhile(lambda x: x < 1, a))  # here


@refuses("sets of values", 1.0, part="key of a dict or set")
def set_of_values(x):
    return len({x, 2 * x})  # here


@refuses("dict keys that are values", V, part="computed when the program runs")
def key_by_value(a):
    return {3: a[0]}[int(np.argmax(a))]  # here


@refuses(
    "an item of a list, tuple or dict at a computed place", V, part="computed when the program runs"
)
def item_of_a_list(a):
    return [a[0], a[1], a[2], a[3]][int(np.argmax(a))]  # here


# -- by values


@refuses("`sorted` of arrays, lists or objects by values", V, part="numpy.argsort")
def sorted_rows(a):
    rows = sorted(np.outer(a, a), key=lambda row: row[0])  # here
    return rows[0]


@refuses("`heapq` of values", V, part="numpy.sort")
def heap(a):
    held = []
    for x in (a[0], a[1]):
        heapq.heappush(held, x)  # here
    return held[0]


@refuses("`index`, `count` and `remove` of values in a list", V, part="decide a branch")
def place_of_a_value(a):
    return [a[0], a[1]].index(a[1])  # here


@refuses("`index`, `count` and `remove` of values in a list", V, part="decide a branch")
def removed(a):
    held = [a[0], a[1]]
    held.remove(a[1])  # here
    return held


@refuses("`index`, `count` and `remove` of values in a list", V, part="decide a branch")
def counted(a):
    return [a[0], a[1]].count(a[1])  # here


class Body:
    held = 0.0

    def __init__(self, x):
        self.x = x


@refuses("`max` and `min` of objects by values", V, part="one Body or another")
def largest_object(a):
    return max(Body(a[0]), Body(a[1]), key=lambda b: b.x).x  # here


@refuses("`functools.cmp_to_key`", V, part="cmp_to_key")
def compared(a):
    places = sorted([2, 1], key=functools.cmp_to_key(lambda j, k: j - k))  # here
    return places[0] * a


# -- the world outside

COUNT = 0.0
HISTORY = []
_NOT_ARGUMENT = "changing an object, list or dict that is not an argument"


@refuses("assigning to a global name", 1.0, part="is a global name")
def global_name(x):
    global COUNT
    COUNT = x  # here
    return x


@refuses(_NOT_ARGUMENT, 1.0, part="existed before the call")
def global_list(x):
    HISTORY.append(0)  # here
    return x


BODY = Body(1.0)


@refuses(_NOT_ARGUMENT, 1.0, part="existed before the call")
def global_object(x):
    BODY.x = 2.0  # here
    return x


@refuses("setting an attribute of a class", 1.0, part="attributes of a type")
def class_attribute(x):
    Body.held = 1.0  # here
    return x


# -- kinds

_ONE_OF_TWO = (
    "a name that is one list, dict or object on one way and another on another way, where both "
    "are seen elsewhere"
)
_KINDS = "a name that has values of different kinds (a float or a tuple, rank 1 or rank 2)"


@refuses(_ONE_OF_TWO, 1.0, part="it is one list or another")
def one_of_two_lists(x):
    a, b = [x], [2.0]
    c = a if x > 0 else b
    c[0] = 5.0  # here
    return a, b


@refuses(_ONE_OF_TWO, 1.0, part="it is one Body or another")
def one_of_two_objects(x):
    a, b = Body(x), Body(2.0)
    c = a if x > 0 else b
    c.x = 5.0  # here
    return a.x, b.x


@refuses(_KINDS, 1.0, part="on one way")
def a_float_or_a_tuple(x):
    y = x if x > 0 else (x, x)
    return y * 2  # here


@refuses(_KINDS, V, 3, part="on one way")
def another_rank(a, n):
    for _ in range(n):
        a = a[None]  # here
    return a.sum()


@refuses("`is` between two values that may be one object", 1.0, 2.0, part="use `==`")
def identity(x, y):
    return (x > 0) is (y > 0)  # here


@refuses("`id`, `hash` and `dir` of values", 1.0, part="hash")
def hash_of_a_value(x):
    return hash(x)  # here


@refuses("`id`, `hash` and `dir` of values", V, part="id has no rule")
def id_of_a_value(a):
    return float(id(a) > 0)  # here


@refuses("`id`, `hash` and `dir` of values", V, part="dir has no rule")
def dir_of_a_value(a):
    return float("sum" in dir(a))  # here


@refuses("`match` of a value that may be None", V, part="may be None")
def match_of_an_optional(a):
    best = None
    if a[0] > 0:
        best = a[0]
    match best:
        case 0.0:  # here
            return 1.0
        case _:
            return 2.0


@refuses(
    "alternatives of a pattern that bind names and compare values", 1.0, 2.0, part="alternatives"
)
def alternatives(x, y):
    match (x, y):
        case (0.0, z) | (z, 2.0):  # here
            return z
    return y


_DRAWS = (
    "random draws, but those of a generator that is made from a seed in the same place "
    "(`np.random.default_rng(0)`, not from outside a loop or branch that draws)"
)
RNG = np.random.default_rng(0)


@refuses(_DRAWS, 1.0, part="random numbers")
def draw(x):
    return x + np.random.rand()  # here


@refuses(_DRAWS, 1.0, part="random numbers")
def draw_of_a_generator(x):
    return x + RNG.normal()  # here


@refuses("clocks", 1.0, part="when the program is traced")
def clock(x):
    return x + time.time()  # here


@refuses("files and the environment", 1.0, part="when the program is traced")
def environment(x):
    return x * len(os.getcwd())  # here


_TEXT = "the text of a number, other than in the message of an exception or in `print`"


@refuses(_TEXT, 1.0, part="the message of an error")
def text(x):
    return 1.0 if f"{x}" == "1.0" else 0.0  # here


_IN_C = "functions and classes in C without a rule, but NumPy's and SciPy's (no derivatives then)"


@refuses(_IN_C, 1.0, part="Decimal")
def c_class(x):
    return float(decimal.Decimal(x))  # here


@refuses(_IN_C, 1.0, part="no rule")
def c_function(x):
    return float(sys.getsizeof(x))  # here


EXECUTED = {}
exec("def plus_one(x):\n    return x + 1\n", EXECUTED)  # a function without source
plus_one = EXECUTED["plus_one"]


@refuses("functions without source, called on values", 1.0, part="no source")
def without_source(x):
    return plus_one(x)  # here


@refuses("`np.vectorize` and `np.frompyfunc`", V, part="np.vectorize")
def vectorized(a):
    return np.vectorize(lambda x: x * x)(a)  # here


@refuses("`np.vectorize` and `np.frompyfunc`", V, part="used as a value")
def from_python(a):
    return np.frompyfunc(lambda x: x * x, 1, 1)(a).astype(float)  # here


_DTYPES = (
    "functions whose result's dtype depends on values (`np.linalg.eig`, `np.roots`, "
    "`np.real_if_close`, `np.emath` of real numbers)"
)


@refuses(_DTYPES, V, part="depends on values")
def eigenvalues(a):
    return np.linalg.eig(np.outer(a, a))[0].real  # here


@refuses(_DTYPES, V, part="depends on values")
def roots(a):
    return np.roots(a).real  # here


@refuses(_DTYPES, V, part="depends on values")
def real_if_close(a):
    return np.real_if_close(a + 0j)  # here


@refuses(_DTYPES, V, part="")
def square_roots(a):
    return np.emath.sqrt(a)  # here


# -- arrays


@refuses("`.view(dtype)`", V, part="use astype")
def viewed(a):
    return a.view(np.int64)  # here


@refuses("`.resize` in place", V, part="in place")
def resized(a):
    b = a * 1.0
    b.resize((2, 2), refcheck=False)  # here
    return b


@refuses("setting `.shape`", V, part="`shape`")
def shape_set(a):
    b = a * 1.0
    b.shape = (2, 2)  # here
    return b


@refuses("`.strides`, `.flags` and `.base`", V, part="'strides'")
def strides(a):
    return a.strides[0] * a  # here


@refuses("`.strides`, `.flags` and `.base`", V, part="'flags'")
def flags(a):
    return a if a.flags.c_contiguous else 2 * a  # here


@refuses("`.strides`, `.flags` and `.base`", V, part="'base'")
def base(a):
    return a if a.base is None else 2 * a  # here


@refuses("`np.nditer`", V, part="nditer")
def nditer(a):
    return sum(float(x) for x in np.nditer(a))  # here


@refuses("`np.r_` with a directive", V, part="directive")
def directive(a):
    return np.r_["0,2", a, a]  # here


@refuses("`np.broadcast`", V, part="broadcast_arrays")
def broadcast(a):
    return np.broadcast(a, a).shape[0] * a  # here


@refuses("`np.pad` with a function", V, part="numpy.pad")
def padded(a):
    return np.pad(a, 1, lambda row, width, axis, options: None)  # here


@refuses("arrays of objects", V, part="dtype object")
def objects(a):
    return np.array([a[0], None], object)[0] * 2  # here


RECORDS = np.zeros(2, [("x", float)])


@refuses("arrays of records", V)
def records(a):
    return a[:2] + RECORDS["x"]  # here


@refuses("arrays of text", V, part="dtype <U1")
def texts(a):
    return a * (np.array(["a"]) == "a")  # here


class Own(np.ndarray):
    pass


@refuses("arrays of a subclass", V, part="dtype or class")
def subclass(a):
    return a.view(Own) * 2  # here


# -- objects


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x):
        self.x = x


@refuses("objects with `__slots__`, made inside", 1.0, part="__slots__")
def slots(x):
    return Slotted(x).x  # here


class OwnList(list):
    def __init__(self, *items):
        super().__init__(items)


_OF_C = (
    "objects of classes that C code makes (`Counter`, subclasses of `list`) with an `__init__` in "
    "Python, made inside"
)


@refuses(_OF_C, 1.0, part="__new__")
def counter(x):
    return collections.Counter("aab")["a"] * x  # here


@refuses(_OF_C, 1.0, part="__new__")
def own_list(x):
    return OwnList(x, x)[0]  # here


@dataclasses.dataclass
class WithInitVar:
    x: float
    k: dataclasses.InitVar[float] = 2.0

    def __post_init__(self, k):
        self.x *= k


@refuses("dataclasses with `InitVar`, made inside", 1.0, part="InitVar")
def init_var(x):
    return WithInitVar(x).x  # here


class Reading:
    def __init__(self, x):
        self.x = x

    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


@refuses("a class with its own `__getattribute__`", 1.0, part="__getattribute__")
def getattribute(x):
    return Reading(x).x  # here


class Deleting:
    def __delattr__(self, name):
        object.__delattr__(self, name)


@refuses("`del` of an attribute that the class defines", 1.0, part="`del` of `x`")
def delattr_of_its_own(x):
    o = Deleting()
    o.x = x
    del o.x  # here
    return x


class Reduced:
    def __init__(self, x):
        self.x = x

    def __reduce__(self):
        return Reduced, (self.x,)


@refuses(
    "copies of objects with their own `__reduce__` or `__getstate__`", 1.0, part="has __reduce__"
)
def copied(x):
    return copy.copy(Reduced(x)).x  # here


# -- stores

_FLAT = (
    "`a.flat[1:] = a[:-1]`, `np.place(a, m, a[1:])`: values stored one by one into the memory that "
    "they are in"
)


@refuses(_FLAT, V, part="store a copy")
def flat_into_itself(a):
    b = a * 1.0
    b.flat[1:] = b[:-1]  # here
    return b


@refuses(
    "`np.multiply.at` and other ufuncs' `at`, but `add` and `subtract`, on arrays that carry "
    "derivatives",
    V,
    part="Write it as an assignment",
)
def derivative_of_at(a):
    def f(x):
        y = x * 1.0
        np.multiply.at(y, [0, 1], 2.0)  # here
        return y

    return fwdad.jacobian(f, a)


# -- answers


@refuses(
    "an answer that is a `deque`, `defaultdict` or set of values", V, part="a deque that holds"
)
def answers_a_deque(a):
    return collections.deque([a[0]])  # here


@refuses(
    "an answer that is a `deque`, `defaultdict` or set of values",
    V,
    part="a defaultdict that holds",
)
def answers_a_defaultdict(a):
    found = collections.defaultdict(list)
    found["a"].append(a[0])
    return found  # here


@refuses(
    "an answer that is an iterator, or a function defined inside", V, part="cannot be returned"
)
def answers_an_iterator(a):
    return (x for x in a)  # here


@refuses(
    "an answer that is an iterator, or a function defined inside", V, part="cannot be returned"
)
def answers_a_function(a):
    return lambda: a  # here


def into_both(x, y):
    y[:] = x
    x *= 2


@refuses(
    '`outputs="mutated"` or `"both"` of a derivative, of a function that also writes into an '
    "argument that is not differentiated",
    V,
    part="argument",
)
def mutated_beside(a):
    return fwdad.jacfwd(into_both, outputs="mutated")(a * 1, a * 1)  # here


@refuses("`functools.lru_cache` of a function that is defined inside", 1.5, part="a cache of calls")
def cached_inside(x):
    @functools.lru_cache  # here
    def power(n):
        return x if n == 1 else x * power(n - 1)

    return power(3)


MANY = [float(k) for k in range(600)]


@refuses("more than 512 numbers in a list or dict from outside", 1.0, part="make it an array")
def many_numbers(x):
    return x * MANY[3]  # here

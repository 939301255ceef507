"""The outside world as one plain call leaves it: objects, caches, globals, history, exceptions."""

import collections
import copy
import heapq
import itertools
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.check import call_on_copy
from tests.cases.worlds import (
    WithProperty,
    attribute_deleted,
    cache_in_a_dict,
    cached_method,
    cached_property,
    first_call_wins,
    lru_cached,
    simulation,
    slotted,
    with_property,
)
from tests.differences import central_differences

CHUNKS = [1, 2, 3, 5, None]


X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


def assert_same(actual, desired):
    """Equal all the way down, types included: a dual equals its primal, but is no float."""
    assert actual.__class__ is desired.__class__
    assert type(actual) is type(desired)
    if isinstance(actual, np.ndarray) and actual.dtype != object:
        assert_array_equal(actual, desired, strict=True)
    elif isinstance(actual, dict):
        assert list(actual) == list(desired)
        for key in desired:
            assert_same(actual[key], desired[key])
    elif isinstance(actual, (list, tuple, collections.deque, np.ndarray)):
        assert len(actual) == len(desired)
        for a, d in zip(actual, desired, strict=True):
            assert_same(a, d)
    elif hasattr(actual, "__dict__") and not callable(actual):
        assert_same(vars(actual), vars(desired))
    else:
        assert actual == desired


# -- globals, closures, defaults


WORK = np.zeros(5)


SCALE = 2.0


LOG = []


TABLE = {"a": [1.0]}


def global_array():
    WORK[:] = 0.0

    def f(x):
        WORK[1:] = x[:-1] * x[1:]
        WORK[0] += x[0]
        return WORK * x

    return f, lambda: WORK


def global_names():
    def f(x):
        global SCALE, FRESH
        SCALE = SCALE * x[0]
        FRESH = SCALE * 2.0
        SCALE += x[1]
        LOG.append(FRESH)
        TABLE["a"].append(x[2])
        TABLE["b"] = x[3]
        globals()["BY_NAME"] = x[4]
        return x * SCALE * LOG[-1] * TABLE["a"][-1] * TABLE["b"] * BY_NAME  # noqa: F821

    return f, lambda: [SCALE, LOG, TABLE, "FRESH" in globals(), "BY_NAME" in globals()]


def closures():
    count, total, seen = 0, 0.0, []

    def f(x):
        nonlocal count, total
        count += 1
        total = total + x[0]
        seen.append(total)
        f.calls += 1
        return x * total * count * len(seen) * f.calls

    f.calls = 0
    return f, lambda: [count, total, seen, vars(f)]


def mutable_default():
    def f(x, seen=[], *, table={"n": 1}):  # noqa: B006 - it is what people write
        seen.append(x[0])
        table["n"] += 1
        table["x"] = x[1]
        return x * seen[0] * len(seen) * table["n"] * table["x"]

    return f, lambda: [f.__defaults__, f.__kwdefaults__]


def module_attribute():
    module = types.ModuleType("settings")
    module.rate = 1.0
    module.table = np.ones(3)

    def f(x):
        module.rate = module.rate * x[0]
        module.table[1] = x[1]
        return x * module.rate * module.table[1]

    return f, lambda: [module.rate, module.table]


# -- containers


def lists():
    values, nested = [3.0, 1.0, 2.0], [[1.0], [2.0, 3.0]]

    def f(x):
        values.append(x[0])
        values.extend(x[1:3])
        values.insert(1, x[3])
        values.sort()
        values[0] *= 2.0
        values[2:4] = [x[4], x[0] * x[1]]
        values.remove(3.0)
        values.reverse()
        del values[-1]
        values.pop()
        values.__iadd__([x[2]])
        nested[0][0] = x[1]
        nested[1].clear()
        nested.append([x[0]])
        nested[0], nested[1] = nested[1], nested[0]
        return x * sum(values) * nested[1][0] * nested[2][0] * len(values)

    return f, lambda: [values, nested]


def dicts():
    table = {"a": 1.0, "b": 2.0, "c": 3.0}
    ordered = collections.OrderedDict(p=1.0, q=2.0)
    missing = collections.defaultdict(list)
    counter = collections.Counter(a=1)

    def f(x):
        table["a"] = x[0]
        table.update(b=x[1], z=x[2])
        table.setdefault("y", x[3])
        del table["c"]
        popped = table.pop("b")
        table.popitem()
        ordered.move_to_end("p")
        ordered["p"] = x[4]
        missing["k"].append(x[0])
        missing["other"]
        counter["a"] += 2
        counter.update("ab")
        return x * table["a"] * popped * table["z"] * missing["k"][0] * ordered["p"] * counter["a"]

    return f, lambda: [table, ordered, dict(missing), counter]


def other_containers():
    queue, heap, names = collections.deque([1.0, 2.0], maxlen=3), [5.0, 6.0], {"a"}
    objects = np.array([None, 1.0], dtype=object)
    raw = bytearray(b"abc")

    def f(x):
        queue.append(x[0])
        queue.appendleft(x[1])
        queue.rotate(1)
        total = queue.popleft() * queue[0]
        heapq.heappush(heap, x[2])
        heapq.heapreplace(heap, x[3])
        names.add("b")
        names.discard("a")
        objects[0] = x[4]
        raw.append(len(names))
        raw[0] = 1
        return x * total * sum(heap) * objects[0] * len(names) * raw[-1]

    return f, lambda: [queue, heap, sorted(names), objects, raw]


def views_of_outside_arrays():
    base = np.arange(12.0).reshape(3, 4)
    column, flat = base[:, 1], base.reshape(-1)
    other = np.ones(5, dtype=complex)

    def f(x):
        column[:] = x[:3]
        flat[-1] = x[3]
        base.T[0] *= x[4]
        np.add.at(base, (0, [1, 1]), x[0])
        np.exp(x, out=other)
        base.sort(axis=0)
        return base[:, :2].sum() * x * other.real * flat[-2]

    return f, lambda: [base, other]


def callee_of_scipy():
    """A class of SciPy's, whose methods write into itself, held outside."""
    from scipy.interpolate import BarycentricInterpolator  # noqa: PLC0415

    nodes = np.linspace(0.0, 1.0, 5)
    interpolator = BarycentricInterpolator(nodes, np.zeros(5), random_state=1)

    def f(x):
        interpolator.set_yi(x**2)
        return interpolator(np.array([0.3, 0.6]))

    return f, lambda: [interpolator.yi, interpolator.wi]


WORLDS = [
    simulation, slotted, with_property, attribute_deleted, cached_property, lru_cached,
    cache_in_a_dict, cached_method, first_call_wins, global_array, global_names, closures,
    mutable_default, module_attribute, lists, dicts, other_containers, views_of_outside_arrays,
    callee_of_scipy,
]  # fmt: skip


@pytest.fixture(autouse=True)
def clean_globals():
    """Plain calls write into this module's globals, as they should."""
    global SCALE
    kept = (WORK.copy(), SCALE, list(LOG), copy.deepcopy(TABLE), WithProperty.shared.copy())
    yield
    WORK[:], SCALE, LOG[:] = kept[:3]
    TABLE.clear()
    TABLE.update(kept[3])
    WithProperty.shared[:], WithProperty.count = kept[4], 0
    for name in ("FRESH", "BY_NAME"):
        globals().pop(name, None)


def fresh(make):
    """Reset the state that lives in this module or a class before a program is made anew."""

    def made():
        global SCALE
        SCALE, WithProperty.count = 2.0, 0
        WORK[:], WithProperty.shared[:] = 0.0, 0.0
        LOG.clear()
        TABLE.clear()
        TABLE["a"] = [1.0]
        for name in ("FRESH", "BY_NAME"):
            globals().pop(name, None)
        return make()

    made.name = make.__name__
    return made


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_world_is_as_a_plain_call_leaves_it(make, chunk):
    make = fresh(make)
    expected = central_differences(lambda x: call_on_copy(make()[0], x), X)
    for _ in range(2):
        plain, after = after_a_plain_call(make)
        f, state = make()
        y, jacobian = fwdad.value_and_jacobian(f, X.copy(), chunk=chunk)
        assert_same(state(), after)
        assert_array_equal(y, plain)
        assert_allclose(jacobian, expected, rtol=1e-8, atol=1e-8)


def after_a_plain_call(make):
    """The value of a plain call in a world made anew, and what that world looks like then."""
    f, state = make()
    before = copy.deepcopy(state())
    y = call_on_copy(f, X)
    # what `functools.lru_cache` keeps is no part of it: a derivative has results of its own
    return y, before if make.name in ("lru_cached", "cached_method") else copy.deepcopy(state())


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_world_after_an_exception_of_the_functions_own(make, chunk):
    """It is as the plain call leaves it there; where fwdad refuses, it is as it was before."""
    make = fresh(make)
    before = copy.deepcopy(make()[1]())
    _, after = after_a_plain_call(make)
    f, state = make()

    def failing(x):
        x *= 1.0
        f(x)
        message = "half-way"
        raise ArithmeticError(message)

    def refused(x):
        f(x)
        return np.unwrap(int(x[0]) * x)

    x = X.copy()
    with pytest.raises(ArithmeticError):
        fwdad.jacobian(failing, x, chunk=chunk)
    assert_same(state(), after)
    assert x.tobytes() == X.tobytes()
    f, state = make()
    with pytest.raises(fwdad.errors.FwdadError):
        fwdad.jacobian(refused, x, chunk=chunk)
    assert_same(state(), before)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_a_later_chunk_that_raises(chunk):
    """What the first run has done is undone before the next: a run that fails leaves nothing."""
    runs, seen = itertools.count(1), []

    def f(x):
        seen.append(x[0])
        if fails_now():
            message = "half-way"
            raise ArithmeticError(message)
        return x * seen[-1]

    def fails_now():
        return next(runs) == 2

    with pytest.raises((ArithmeticError, fwdad.errors.NondeterministicFunctionError)):
        fwdad.jacobian(f, X, chunk=chunk)
    assert seen == []


@pytest.mark.parametrize("chunk", CHUNKS)
def test_exception_reaches_the_caller_as_it_is(chunk):
    class OwnError(Exception):
        pass

    error = OwnError("mine")
    work = np.zeros(5)

    def f(x):
        work[:] = x
        x[0] = 7.0
        raise error

    x = X.copy()
    with pytest.raises(OwnError) as caught:
        fwdad.jacobian(f, x, chunk=chunk)
    assert caught.value is error
    assert_array_equal(work, X)
    assert_array_equal(x, X)
    names = [entry.name for entry in caught.traceback]
    assert "f" in names  # the user's frame, on the user's line
    entry = next(entry for entry in caught.traceback if entry.name == "f")
    assert str(entry.path) == __file__


@pytest.mark.parametrize("chunk", CHUNKS)
def test_arguments_are_as_they_were(chunk):
    def f(x, other, options):
        other *= x[0]
        options["list"].append(other.sum())
        options["array"][0] = x[1]
        options["new"] = x
        x[:] = x * other
        return x * options["list"][-1] * options["array"][0]

    def arguments():
        return X.copy(), np.ones(5), {"list": [1.0], "array": np.zeros(2)}

    x, *args = arguments()
    expected = central_differences(lambda x: f(x, *arguments()[1:]), X)
    for _ in range(2):
        jacobian = fwdad.jacobian(f, x, args=tuple(args), chunk=chunk)
        assert_allclose(jacobian, expected, rtol=1e-8, atol=1e-8)
        assert_same([x, *args], list(arguments()))


def test_populated_memo_never_returns_zero():
    """A plain value is in the user's own dict: the derivative is right, or it raises."""
    memo = {}

    def f(x):
        if x not in memo:
            memo[x] = x**3
        return memo[x]

    f(2.0)
    try:
        slope = fwdad.derivative(f, 2.0)
    except fwdad.errors.FwdadError:
        slope = 12.0
    assert slope == 12.0
    assert_same(memo, {2.0: 8.0})


def test_no_dual_is_left_in_what_is_returned():
    class Box:
        def __init__(self, v):
            self.v = v

    def f(x):
        return np.sum(x**2), {"box": Box(x * 2.0), "list": [x[0], "a"], "tuple": (x,)}

    _, aux = fwdad.jacobian(f, X, has_aux=True)
    assert type(aux["box"].v) is np.ndarray
    assert type(aux["list"][0]) is np.float64
    assert type(aux["tuple"][0]) is np.ndarray
    assert_array_equal(aux["box"].v * 1.0, 2 * X)

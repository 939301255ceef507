"""Branches whose ways one tape cannot hold: under ``jit`` a tape follows the arguments, and checks it."""

import enum
import functools
import types
from collections import defaultdict

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences
from tests.frontend.packages_of_text import package_of

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
BACKENDS = ["numpy", "auto"]
LOW, HIGH, MIXED = (
    np.array([0.2, 0.3, 0.12]),
    np.array([0.9, 0.7, 0.85]),
    np.array([0.9, 0.1, 0.45]),
)


def other_container(x):
    parts = [x[0], x[1]] if x[0] > 0.5 else (x[0], x[1], x[2])
    return sum(p * p for p in parts) * len(parts)


def other_function(x):
    f = np.sin if np.sum(x) > 1.5 else np.exp
    return f(x) * x


def called_at_once(x):
    return (np.sin if np.sum(x) > 1.5 else np.exp)(x) * x


def other_text(x):
    region = "low" if x[0] < 0.5 else "high"
    table = {"low": 2.0, "high": 3.0}
    return table[region] * x**2


def other_rank(x):
    y = x if x[0] > 0.5 else np.outer(x, x)
    return np.sum(y * y)


def keys(x):
    held = {"first": x[0]}
    if x[1] > 0.5:
        held["second"] = x[1]
    return sum(held.values()) * x[2]


def some_of(x):
    items = [v * v for v in x if v > 0.4]
    items.sort(reverse=True)
    return sum(items) + 0.0 * x[0]


def filtered(x):
    return np.sum(np.array(list(filter(lambda v: v > 0.15, x)))) * x[1]


def first_that(x):
    return next((v * v for v in x if v > 0.8), x[2])


def yielded(x):
    def small():
        for v in x:
            if v > 0.5:
                return
            yield v * v

    return sum(small()) + x[0]


def some_of_each(x):
    total = 0.0 * x[0]
    for _ in range(3):
        total = total + sum({k: v for k, v in enumerate(x) if v > 0.27}.values())
        x = 0.8 * x
    return total


def by_text(x):
    weights = {"place 0": 2.0, "place 1": 3.0, "place 2": x[0]}
    return weights[f"place {int(np.argmax(x))}"] * x


def until_small(x):
    steps = []
    while np.max(x) > 0.25:
        steps.append((str(len(steps)), x))
        x = x * x
    return np.sum(x) + sum(np.sum(y) for _, y in steps)


def of_chosen(x):
    first, *rest = x[x > 0.15]
    return first * len(rest) + sum(rest)


def caught(x):
    try:
        return {0: x[0], 1: x[1]}[int(fwdad.stop_gradient(x[2]) * 10)] * 2.0
    except KeyError:
        return x[2] * 3.0


def in_a_loop(x):
    total = 0.0
    for k in range(3):
        kind = ("a", "b") if x[k] > 0.5 else ("c",)
        total = total + len(kind) * x[k] ** 2
    return total


def carried_of_two_kinds(x):
    power = 1
    for k in range(len(x)):
        power = power * x if k < 2 else [power, x[k]]
    return np.sum(power[0]) * power[1]


def nested(x):
    make = list if x[0] > 0.5 else tuple
    parts = make([x[1], x[2]])
    if isinstance(parts, list):
        parts.append(x[0])
    weights = np.array([1.0, 2.0, 3.0][: len(parts)])
    return weights @ np.array(parts) ** 2


PROGRAMS = (
    other_container, other_function, called_at_once, other_text, other_rank, keys, until_small, of_chosen, caught,
    in_a_loop, carried_of_two_kinds, nested, some_of, filtered, first_that, yielded, some_of_each, by_text,
)  # fmt: skip


@pytest.mark.every(4, of="auto")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_values(f, backend):
    fast = fwdad.jit(f, backend=backend)
    for x in (LOW, HIGH, MIXED, HIGH, LOW, MIXED):
        assert_allclose(fast(x), f(x), rtol=1e-13)
    assert fwdad.cache_info(fast).traces <= 3


@pytest.mark.every(4, of="auto")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_derivatives(f, backend):
    jac = fwdad.jit(fwdad.jacfwd(f), backend=backend)
    rows = fwdad.jit(fwdad.jacrev(f), backend=backend)
    at_once = fwdad.jit(f, backend=backend)
    for x in (LOW, HIGH, MIXED, LOW):
        wanted = central_differences(f, x)
        for found in (jac(x), rows(x), fwdad.jacobian(at_once, x), fwdad.jacrev(at_once)(x)):
            assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("f", PROGRAMS)
def test_directions(f, n):
    v = np.random.default_rng(n).random((n, 3))
    pushed = fwdad.jit(lambda x, v: fwdad.jvp(f, x, v)[1], backend="numpy")
    fast = fwdad.jit(f, backend="numpy")
    for x in (LOW, HIGH, MIXED):
        wanted = np.tensordot(v, central_differences(f, x), (1, -1))
        assert_allclose(pushed(x, v), wanted, rtol=1e-6, atol=1e-8)
        assert_allclose(fwdad.jvp(fast, x, v)[1], wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "f", [other_container, other_rank, keys, until_small, nested, some_of_each]
)
def test_second_derivatives(f):
    fast = fwdad.jit(fwdad.hessian(f), backend="numpy")
    for x in (LOW, HIGH, MIXED):
        assert_allclose(fast(x), fwdad.hessian(f)(x), rtol=1e-10, atol=1e-12)


def test_lengths_that_many_values_decide():
    with pytest.raises(UntraceableError, match="whose length depends on values"):
        fwdad.jit(lambda x: len({v * 0 for v in np.tile(x, 100) if v > 0.4}))(MIXED)


@pytest.mark.parametrize("f", PROGRAMS)
def test_one_tape_alone_is_refused(f):
    with pytest.raises(UntraceableError) as refused:
        fwdad.trace(f, HIGH)
    assert refused.value.filename == __file__


def over_steps(step):
    def total(p):
        found = 0.0
        for k in range(4):
            x = np.array([0.3 + 0.2 * k, 1.0, 0.4])
            found = found + step(x * p[0]) * p[1] + step(x)
        return found

    return total


def test_called_inside_derivatives():
    p = np.array([1.1, 0.7])
    fast, wanted = over_steps(fwdad.jit(other_container)), over_steps(other_container)
    gradient = central_differences(wanted, p)
    for _ in range(2):
        assert_allclose(fwdad.jacobian(fast, p), gradient, rtol=1e-7)
        assert_allclose(fwdad.grad(fast)(p), gradient, rtol=1e-7)
        assert_allclose(fwdad.jit(fwdad.grad(fast))(p), gradient, rtol=1e-7)
        assert_allclose(fwdad.hessian(fast, p), fwdad.hessian(wanted, p), rtol=1e-10, atol=1e-12)


def test_explain_says_so():
    said = fwdad.explain(fwdad.jit(other_container, backend="numpy"), LOW)
    line = other_container.__code__.co_firstlineno + 1
    assert f"test_ways.py:{line} as it does here; another way is another tape" in said
    fast = fwdad.jit(other_container, backend="numpy")
    for x in (LOW, HIGH, LOW):
        assert "another tape" in fwdad.explain(fast, x)
    assert "another tape" not in fwdad.explain(fwdad.jit(lambda x: x * 2), LOW)


def test_ways_that_merge_are_one_tape():
    fast = fwdad.jit(lambda x: x * 2 if x[0] > 0.5 else x - 1, backend="numpy")
    for x in (LOW, HIGH):
        fast(x)
    assert fwdad.cache_info(fast).traces == 1


def reads(x, k):
    try:
        return x[k] * x[1]
    except IndexError:
        return -x[0]


def reads_and_drops(x, k):
    try:
        x[k]
        return x[1] * 2.0
    except IndexError:
        return -x[0]


def gathers_and_drops(x, k):
    try:
        x[np.array([0, k])]
        return x[1] * 2.0
    except IndexError:
        return -x[0]


def stores_and_drops(x, k):
    try:
        np.zeros(3)[k] = x[0]
        return x[1] * 2.0
    except IndexError:
        return -x[0]


def adds_and_drops(x, k):
    try:
        x[:2] + x[k:]
        return x[1] * 2.0
    except ValueError:
        return -x[0]


def multiplies_and_drops(x, k):
    try:
        np.ones((2, 2)) @ x[k:]
        return x[1] * 2.0
    except ValueError:
        return -x[0]


def drops_in_a_loop(x, k):
    t = x[1] * 0.0
    try:
        for i in range(k):
            x[i]
            t = t + x[0]
    except IndexError:
        return -x[0]
    return t


def drops_in_a_branch(x, k):
    try:
        if x[0] > 0.5:
            x[k]
        t = x[1] ** 2
    except IndexError:
        return -x[0]
    return t


def drops_after_a_return(x, k):
    try:
        if x[0] > 0.5:
            return x[2]
        x[k]
        t = x[1] ** 2
    except IndexError:
        return -x[0]
    return t


def drops_in_a_recursion(x, k):
    def product(a, n):
        if n == 0:
            x[k]
            return a
        return product(a * x[0], n - 1)

    try:
        return product(x[1], 3)
    except IndexError:
        return -x[0]


def drops_in_a_program_of_its_own(x, k):
    try:
        return _halved(x, k, 3)
    except IndexError:
        return -x[0]


def _halved(x, k, n):
    if n == 0:
        x[k]
        return x[1]
    return 0.5 * _halved(x, k, n - 1)


RAISES = [
    reads, reads_and_drops, gathers_and_drops, stores_and_drops, adds_and_drops,
    multiplies_and_drops, drops_in_a_loop, drops_in_a_branch, drops_after_a_return,
    drops_in_a_recursion, drops_in_a_program_of_its_own,
]  # fmt: skip


@pytest.mark.every(5, of="auto", first=2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("f", RAISES)
def test_what_nobody_needs_raises_where_it_is_caught(f, backend):
    fast = fwdad.jit(f, backend=backend)
    slope = fwdad.jit(fwdad.grad(f), backend=backend)
    columns = fwdad.jit(fwdad.jacfwd(f, chunk=2), backend=backend)
    for x in (HIGH, LOW):
        for k in (1, 5, 1, 2, -7, 3, 0):
            assert fast(x, k) == f(x, k)
            wanted = central_differences(lambda x, k=k: f(x, k), x)
            assert_allclose(slope(x, k), wanted, rtol=1e-7, atol=1e-9)
            assert_allclose(columns(x, k), wanted, rtol=1e-7, atol=1e-9)


def test_a_try_inside_of_the_function_that_calls_itself():
    def f(x, k):
        try:
            return x[k] if k < 2 else 0.5 * f(x, k - 1)
        except IndexError:
            return -x[0]

    with pytest.raises(UntraceableError, match="inside of that function"):
        fwdad.jit(f, backend="numpy")(HIGH, 3)


def divides_and_drops(x, k):
    try:
        1.0 / float(x[0] - k)
        return x[1] * 2.0
    except ZeroDivisionError:
        return -x[1]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_raises_by_its_numbers_is_run(backend):
    fast = fwdad.jit(divides_and_drops, backend=backend)
    slope = fwdad.jit(fwdad.grad(divides_and_drops), backend=backend)
    for k in (2.0, HIGH[0], 3.0, HIGH[0]):
        assert fast(HIGH, k) == divides_and_drops(HIGH, k)
        assert_allclose(slope(HIGH, k), [0.0, -1.0 if k == HIGH[0] else 2.0, 0.0])


def test_a_way_for_each_call_ends_without_tapes():
    def f(x):
        held = dict.fromkeys(range(int(np.sum(x * 100))), x[0])
        return len(held) * x[1]

    fast = fwdad.jit(f, backend="numpy")
    for k in range(20):
        x = LOW + 0.01 * k
        assert fast(x) == f(x)
    assert fwdad.cache_info(fast).traces <= 9


def test_exceptions_of_the_program():
    def f(x):
        parts = [x[0]] if x[0] > 0.5 else (x[0], x[1])
        if x[2] > 0.75:
            raise ValueError("too large", len(parts))
        return sum(parts)

    fast = fwdad.jit(f, backend="numpy")
    assert_allclose([fast(x) for x in (LOW, MIXED)], [f(LOW), f(MIXED)])
    for _ in range(2):
        with pytest.raises(ValueError, match="too large"):
            fast(HIGH)


@pytest.mark.parametrize("output", [True, False])
def test_what_cannot_be_run_again_is_refused(output, capsys):
    """It would be written, or put out, twice."""

    def f(x, out):
        if output:
            print("begun")
        else:
            out[0] = x[0]
        return sum([x[0], x[1]] if x[0] > 0.5 else (x[0],))

    with pytest.raises(UntraceableError, match="could not be run again"):
        fwdad.jit(f, backend="numpy")(HIGH, np.zeros(1))
    assert capsys.readouterr().out == ""


def test_arguments_are_left_alone():
    def f(x, held):
        held.append(x[0])
        return sum([x[0], x[1]] if x[0] > 0.5 else (x[0],))

    fast, held = fwdad.jit(f, backend="numpy"), []
    for x in (LOW, HIGH, MIXED, LOW):
        fast(x, held)
    assert_array_equal(held, [LOW[0], HIGH[0], MIXED[0], LOW[0]])


def test_what_is_read_from_outside():
    limits = np.array([0.5])

    def f(x):
        return sum([x[0], x[1]] if x[0] > limits[0] else (x[0],))

    fast = fwdad.jit(f, backend="numpy")
    for limit in (0.5, 0.1, 0.95):
        limits[0] = limit
        for x in (LOW, HIGH):
            assert fast(x) == f(x)


class Scaled:
    """With a private parameter, whose name Python mangles."""

    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x, *, __more=2.0):
        return self.factor * x * __more


def test_private_parameters():
    scaled = Scaled(3.0)
    assert_allclose(fwdad.jit(lambda x: scaled(x), backend="numpy")(LOW), 6.0 * LOW)


def test_operators_by_their_names():
    """As packages that count uncertainties call them."""

    def f(x):
        a, b = float(x[0]), float(x[1])
        return float.__mul__(a, b) + float.__rsub__(a, 2.0) * float.__truediv__(b, 3.0)

    fast, jac = fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    for x in (LOW, HIGH):
        assert fast(x) == f(x)
        assert_allclose(jac(x), [x[1] - x[1] / 3, x[0] + (2 - x[0]) / 3, 0.0])


def test_settings_of_warnings():
    def f(x):
        old = np.seterr(divide="ignore")
        y = 1.0 / x
        np.seterr(**old)
        return y

    assert_allclose(fwdad.jit(f, backend="numpy")(LOW), f(LOW))
    with pytest.raises(UntraceableError, match="seterr"):
        fwdad.jit(lambda x: np.seterr(divide="raise") and x)(LOW)


class Defaulting(dict):
    def __missing__(self, key):
        return 5.0


def test_containers_from_outside():
    """Sets, and dicts of classes of their own, are static; they may change between calls."""
    held = {"names": {"a", "b"}, "scale": 2.0, "units": Defaulting(x=3.0)}

    def f(x):
        y = x * held["scale"] if "a" in held["names"] else x
        return y * held["units"]["x"] + held["units"]["other"]

    fast = fwdad.jit(f, backend="numpy")
    assert_allclose(fast(LOW), f(LOW))
    for change in (
        lambda: held["names"].discard("a"),
        lambda: held["units"].update(x=4.0),
        lambda: held["units"].update(other=1.0),
        lambda: held.update(scale=7.0),
        lambda: held["names"].add("a"),
    ):
        change()
        assert_allclose(fast(LOW), f(LOW))


def test_static_objects():
    """Modules, enumerations and views of dicts are Python's own business."""
    table = types.MappingProxyType({"a": 2.0, "b": 3.0})

    class Kind(enum.Enum):
        FIRST = 1
        SECOND = 2

    def f(x):
        total = np.array(x, copy=np._CopyMode.IF_NEEDED).sum()
        for name in table:
            total = total + table[name] * x[0]
        return total * len([k for k in Kind if k is not Kind.FIRST])

    assert_allclose(fwdad.jit(f, backend="numpy")(LOW), f(LOW))


def test_objects_that_can_be_called_are_carried():
    """Two polynomials of unknown coefficients were taken for one, by their texts."""

    def f(w):
        p = np.poly1d(w[0])
        for _ in range(3):
            p = p * 2.0
        return p(w)

    for of in (f, fwdad.jacfwd(f)):
        assert_allclose(fwdad.jit(of, backend="numpy")(LOW), of(LOW))


def test_generated_functions_that_only_pass_arguments_on():
    namespace = {}
    exec("def pack(self, a, b=2.0): return (a, b), self, 1", namespace)
    pack = functools.partial(namespace["pack"], "me")

    def f(x):
        (a, b), _, c = pack(x)
        return a * b + c

    assert_allclose(fwdad.jit(f, backend="numpy")(LOW), f(LOW))
    exec("def twice(a): return a * 2", namespace)
    with pytest.raises(UntraceableError, match="no source"):
        fwdad.jit(lambda x: namespace["twice"](x))(LOW)


def test_a_comprehension_of_a_package(monkeypatch):
    """How many items it keeps is as in the example, which is checked."""
    text = "def positive(items):\n    return [a * a for a in items if a > 0.4 and a < 0.8]\n"
    package = package_of(text, "chooses_items", monkeypatch)

    def f(x):
        return x * sum(package.positive(list(x)))

    fast, columns, rows = (fwdad.jit(g) for g in (f, fwdad.jacfwd(f), fwdad.jacrev(f)))
    for x in (LOW, MIXED, HIGH, LOW):
        assert_allclose(fast(x), f(x), rtol=1e-14)
        for jacobian in (columns, rows):
            assert_allclose(jacobian(x), central_differences(f, x), rtol=1e-6, atol=1e-8)


def test_what_makes_missing_items_is_another_on_one_path():
    def f(x):
        d = defaultdict(lambda: 2.0)
        if x[0] > 0.5:
            d.default_factory = None
        try:
            return x * d["a"]
        except KeyError:
            return x * 5.0

    with pytest.raises(UntraceableError, match="on one path only"):
        fwdad.trace(f, LOW)
    for x in (LOW, HIGH, LOW):
        assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)

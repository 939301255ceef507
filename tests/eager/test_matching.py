"""`match` and chained comparisons: Python's own order and returns, and nothing read unlifted."""

# ruff: noqa: F841, PLC3002, PLR0911, PLR0133, RUF012 - programs as users write them

import collections
import ctypes
import dataclasses
import traceback

import numpy as np
import pytest

import fwdad
from fwdad.eager.lifting.lift import lift
from tests.cases.check import check_jacobian, programs, with_widths

PROGRAMS, program = programs()

X = np.array([0.7, 1.3, 0.4])


class Work:
    """Its properties and comparisons read an array that active values were stored into."""

    __match_args__ = ("total", "double")

    def __init__(self, values):
        self.a = np.zeros(len(values))
        self.a[:] = values

    @property
    def total(self):
        return np.sum(self.a)

    @property
    def double(self):
        return Work(2 * self.a)

    def __lt__(self, other):
        self.seen = np.sum(self.a)
        return self.seen * 3

    def __gt__(self, other):
        return np.prod(self.a)

    def __eq__(self, other):
        self.seen = np.sum(self.a**2)
        return True

    def __hash__(self):
        return 1


class Rows(collections.abc.Sequence):
    """A sequence that reads its array item by item."""

    def __init__(self, values):
        self.a = np.zeros((3, 3))
        self.a[:] = values

    def __len__(self):
        return 3

    def __getitem__(self, k):
        return np.sum(self.a[k])


class Table(collections.abc.Mapping):
    """A mapping that reads its array key by key."""

    def __init__(self, values):
        self.a = np.zeros(3)
        self.a[:] = values

    def __len__(self):
        return 3

    def __iter__(self):
        return iter("abc")

    def __getitem__(self, key):
        return np.sum(self.a[: {"a": 1, "b": 2, "c": 3}[key]] ** 2)


@dataclasses.dataclass
class Point:
    u: float
    v: float


# -- match


@program(X)
def class_by_keyword(x):
    match Work(x):
        case Work(total=t):
            return x * t


@program(X)
def class_by_position(x):
    match Work(x):
        case Work(t, Work(total=d)):
            return x * t * d


@program(X)
def class_inside_others(x):
    match {"k": [1, Work(x)]}:
        case {"k": [2, *_]}:
            return x
        case {"k": [1 | 3 as one, Work(total=t) as w]}:
            return x * t * one * w.total


@program(X)
def dataclass_fields(x):
    match Point(x[0], x[1]):
        case Point(0.0, _):
            return x
        case Point(u, v) if u > v:
            return x * u
        case Point(u, v=w):
            return x * u * w


@program(X)
def builtin_classes(x):
    y = []
    for value in (x[0], 3, "s", x, [x[1]]):
        match value:
            case float(f):
                y.append(f**2)
            case int(i):
                y.append(x[0] * i)
            case str():
                y.append(x[2])
            case np.ndarray(shape=(n,)):
                y.append(x[1] * n)
            case list([q]):
                y.append(q * x[0])
    return np.array(y)


@program(X)
def values_are_compared_by_lifted_code(x):
    w = Work(x)
    match w:
        case 5:
            return x * w.seen


@program(X)
def a_property_as_the_value(x):
    class Limits:
        @property
        def low(self):
            self.seen = w.total
            return 3

    w, limits = Work(x), Limits()
    match 3:
        case limits.low:
            return x * limits.seen


@program(X)
def sequences_of_ones_own(x):
    match Rows(np.outer(x, x)):
        case [a, b]:
            return x
        case [a, *rest, c]:
            return x * a * c + rest[0]


@program(X)
def mappings_of_ones_own(x):
    match Table(x):
        case {"z": _}:
            return x
        case {"b": b, **rest}:
            return x * b * rest["c"] * len(rest)


@program(X)
def in_a_class_body(x):
    class Result:
        """Keeps what was found."""

        scale = 3
        match Work(x):
            case Work(total=t) if 0 < t < 10 * scale:
                value = t * scale

    assert not [n for n in vars(Result) if n.startswith("_fwdad")]
    assert Result.__doc__ == "Keeps what was found."
    return x * Result.value


@program(X)
def captures_of_nonlocal_names(x):
    held = 0.0

    def keep():
        nonlocal held
        match [Work(x)]:
            case [Work(total=held)]:
                return

    keep()
    return x * held


# -- chained comparisons


@program(X)
def chain_of_objects(x):
    w, v = Work(x), Work(x * 2)
    return np.array([w < v < 5, 1 < w > 0, (w < v) * 1.0])


@program(X)
def chain_in_a_comprehension(x):
    ws = [Work(x), Work(x[:2])]
    return np.array([w < ws[0] < 1 for w in ws if 0 < len(ws) <= 2])


@program(X)
def chain_in_an_iterable(x):
    return np.array([2 * v for v in ([Work(x) < Work(x) < 3, x[0]] if 0 < 1 < 2 else [x[1]])])


@program(X)
def chain_in_a_class_body(x):
    class Result:
        n = 3
        value = 1 < n < Work(x)
        values = [1 < k < Work(x) for k in (2, 3)]
        assert 0 < n < 4 in (4,)

    assert not [n for n in vars(Result) if n.startswith("_fwdad")]
    return x * Result.value + Result.values[1]


@pytest.mark.parametrize(("program", "chunk"), with_widths(PROGRAMS))
def test_program(program, chunk):
    check_jacobian(program, chunk)


# -- the lifted twin does what the function does, call by call


def chain(log, values):
    def at(k):
        log.append(k)
        return values[k]

    return [
        at(0) < at(1) < at(2) <= at(3),
        at(0) is at(1) is not at(2),
        at(0) in [at(1)] != at(2),
        [at(0) == at(1) == k for k in [at(2), at(0) < at(1) < at(3)]],
        (lambda: at(3) > at(2) > at(1))(),
        at(0) < (first := at(1)) < first,
    ]


@pytest.mark.parametrize("values", [(1, 2, 3, 4), (2, 1, 3, 4), (1, 1, 1, 1), (4, 3, 2, 1)])
def test_each_operand_is_evaluated_once_and_only_if_needed(values):
    expected, seen = [], []
    answers = chain(expected, values)
    assert lift(chain)(seen, values) == answers
    assert seen == expected


class Shout(type):
    pass


class Two(metaclass=Shout):
    __match_args__ = ("a", "b")

    def __init__(self, a, b):
        self.a, self.b = a, b


class Wrong:
    __match_args__ = ["a"]


class Text(str):
    __slots__ = ()


RED = "red"
opaque = ctypes.pythonapi.PyFloat_AsDouble  # in C, without a rule


def sort_out(value):
    here = ["guard"]
    match value:
        case None | True:
            return "singleton"
        case Text(t) if t.startswith("x"):
            return "text", t
        case str(t) | bytes(t):
            return "string", t
        case -1 | 2.5 | 1 + 2j as n:
            return "number", n
        case Two(1, b=b) | Two(b, 1):
            return "two", b
        case Two(a, b) if here.append(a) or a == b:
            return "equal", a, here
        case Two():
            return "any two", here
        case []:
            return "empty"
        case [[a, *_, b], *rest] | {"first": a, "last": b, **rest}:
            return "ends", a, b, rest
        case [1, *middle, 9]:
            return "middle", middle
        case (1, 2) | [3, _, _]:
            return "pair or three"
        case {"k": {"n": Two(a=a)}}:
            return "nested", a
        case {}:
            return "some mapping"
        case int(n):
            return "int", n
    return "nothing"


@pytest.mark.parametrize(
    "value",
    [
        None, True, False, Text("xyz"), Text("abc"), "s", b"s", bytearray(b"s"), -1, 2.5, 1 + 2j,
        7, 0.5, [], (), {}, [[1, 2], 3, 4], [[1], 3], ([1, 2, 3], 4), {"first": 1, "last": 2},
        {"first": 1, "last": 2, "more": 3}, {"first": 1}, [1, 9], [1, 5, 6, 9], [1], [1, 2],
        (3, 4, 5), range(1, 3), collections.deque([1, 2]), {"k": {"n": Two(5, 6)}}, {"k": {"n": 3}},
        collections.OrderedDict(first=1, last=2), {1, 2}, iter([1]), np.float64(2.5),
        Wrong(), object, memoryview(b"ab"), Two(1, 5), Two(5, 1), Two(4, 4), Two(4, 5),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_match_returns_as_python_does(value):
    assert lift(sort_out)(value) == sort_out(value)


def too_many(value):
    match value:
        case Two(1, 2, 3):
            return 1


def too_many_for_self(value):
    match value:
        case int(1, 2):
            return 1


def twice(value):
    match value:
        case Two(1, a=2):
            return 1


def not_a_class(value):
    match value:
        case RED.upper():
            return 1


def not_a_tuple(value):
    match value:
        case Wrong(1):
            return 1


def key_twice(value):
    class Keys:
        one = "a"

    match value:
        case {"a": 1, Keys.one: 2}:
            return 1


@pytest.mark.parametrize(
    ("f", "value"),
    [
        (too_many, Two(1, 2)),
        (too_many_for_self, 1),
        (twice, Two(1, 2)),
        (not_a_class, 1),
        (not_a_tuple, Wrong()),
        (key_twice, {"a": 1, "b": 2}),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_wrong_patterns_fail_as_in_python(f, value):
    with pytest.raises((TypeError, ValueError)) as expected:
        f(value)
    with pytest.raises(type(expected.value)) as found:
        lift(f)(value)
    assert str(found.value) == str(expected.value)


def fails_in_a_pattern(x):
    match [x]:
        case [Work(missing=_)]:
            return 1
        case [np.ndarray(size=3), *_] if 0 < x[0] < opaque(x[1]) < 1:
            return 2


def test_errors_keep_the_users_line():
    with pytest.raises(fwdad.errors.MissingRuleError, match="PyFloat_AsDouble") as found:
        fwdad.jacobian(fails_in_a_pattern, X)
    line = fails_in_a_pattern.__code__.co_firstlineno + 4
    assert found.value.lineno == line
    frames = traceback.extract_tb(found.value.__traceback__)
    assert any(f.name == "fails_in_a_pattern" and f.lineno == line for f in frames)

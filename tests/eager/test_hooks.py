"""Every way in which Python reaches code or reads a value: operators, attributes, loops, `with`."""

# ruff: noqa: RUF015 - programs as users write them

import contextlib
import copy
import dataclasses
import math
import operator
import types
import typing

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.cases.check import check_jacobian, programs, with_widths

PROGRAMS, program = programs()

X = np.array([0.7, 1.3, 0.4])


class Vector:
    """Keeps its values in an array of its own, and gives them back in every way Python has."""

    def __init__(self, values):
        self.a = np.zeros(3)
        self.a[:] = values

    def __abs__(self):
        return np.sqrt(np.sum(self.a**2))

    def __pos__(self):
        return self.a.sum()

    def __neg__(self):
        return -self.a.sum()

    def __invert__(self):
        return self.a.prod()

    def __round__(self, digits=0):
        return self.a.sum() * 2

    def __divmod__(self, other):
        return self.a.sum(), self.a[0] * other

    def __contains__(self, value):
        self.hit = self.a.sum()
        return True

    def __len__(self):
        self.length = self.a.sum()
        return 3

    def __lt__(self, other):
        return self.a.sum() * 3

    def __eq__(self, other):
        return self.a.sum() * 4

    def __hash__(self):
        return 1

    def __reversed__(self):
        return iter(self.a[::-1])

    def __iter__(self):
        yield from self.a

    def __getitem__(self, index):
        return self.a[index] * 5

    def __call__(self, factor):
        return self.a * factor

    def __copy__(self):
        return Vector(self.a * 2)

    def __float__(self):
        return float(self.a[1])

    @property
    def total(self):
        return self.a.sum() * 2

    def compute(self):
        return self.a.sum() * 4


@program(X)
def unary_operators(x):
    v = Vector(x)
    return np.array([abs(v), +v, -v, ~v, round(v)])


@program(X)
def unary_plus_of_an_array(x):
    a = np.zeros(3)
    a[:] = x
    return +a * 2


@program(X)
def comparisons_that_answer_numbers(x):
    return np.array([Vector(x) < Vector(x), Vector(x) == Vector(x)])


@program(X)
def lengths_and_membership_that_compute(x):
    v = Vector(x)
    n = len(v)
    found = 2.0 in v
    return np.array([v.hit * n, v.length * found])


@program(X)
def iteration_and_subscripts(x):
    v = Vector(x)
    a, *rest = v
    return np.array([a, *rest, *reversed(v), v[1], *divmod(v, 2.0), *v(x[0])])


@program(X)
def conversions_and_copies(x):
    v = Vector(x)
    return np.array([float(v), *copy.copy(v).a])


@program(X)
def attributes_by_name(x):
    v = Vector(x)
    return np.array([
        operator.attrgetter("total")(v),
        operator.methodcaller("compute")(v),
        v.total,
        operator.itemgetter(1)(v.a),
        getattr(v, "nothing", x[2]),
    ])  # fmt: skip


@program(X)
def unpacking_in_comprehensions(x):
    a = np.zeros((2, 2))
    a[0], a[1] = x[:2], x[1:]
    rows, table = [a[0], a[1]], {"u": a[0], "v": a[1]}
    return np.array([
        *(p * q for p, q in rows),
        *[p - q for _, (p, q) in table.items()],
        *{i: p / q for i, (p, q) in enumerate(rows)}.values(),
    ])  # fmt: skip


@program(X)
def containers_unpacked_in_comprehensions(x):
    a = np.zeros(2)
    a[0] = x[0] * x[1]
    pairs = [((), 1.0), ((1, 2), 1.5)]
    weights = {key: 2 * w for key, w in pairs}  # a tuple stays one: it is hashed
    lists = [[], []]
    [seen.append(k) for k, seen in enumerate(lists)]  # a list stays the same object
    return np.array([weights[()], weights[1, 2], *lists[0], *lists[1]]) * a[0]


@program(X)
def flat_iterators(x):
    a = np.zeros((3, 1))
    a[:, 0] = x
    steps = a.flat
    first, second = next(steps), next(steps)
    return np.array([first * second, np.sum(a.flat), np.asarray(a.flat)[2], a.flat[1], *a.flat[:2]])


class Hidden:
    """Names that Python mangles."""

    def __init__(self):
        self.__level = 0.0
        self.__work = np.zeros(3)

    def step(self, x):
        self.__level = x[0] * 2
        self.__work[:] = x
        self.__level += x[1]
        return self.__level + self.__total + self.__scaled(x[2])

    def __scaled(self, value):
        return self.__level * math.sin(value)

    @property
    def __total(self):
        return self.__work.sum()


HIDDEN = Hidden()


@program(X)
def flat_methods_by_name(x):
    a, b = np.zeros(3), x * 1
    a[:] = x
    a.flat.__setitem__(slice(1, None), a[:2])  # element by element: the first spreads
    store = b.flat.__setitem__
    store(0, x[2] ** 2)
    np.flatiter.__setitem__(b.flat, [1], [x[0] * x[1]])
    steps = a.flat
    first = steps.__next__()
    return np.concatenate([a, b, a.flat.copy(), [first * a.flat.__getitem__(2)]])


@program(X)
def identity_is_that_of_the_array(x):
    a = np.zeros(3)
    seen = {id(a): 2.0}
    a[:] = x
    return a * seen[id(a)]


@program(X)
def private_names(x):
    return np.array([HIDDEN.step(x)])


class Base:
    def __init__(self, a):
        self.a = np.zeros(3)
        self.a[:] = a

    @property
    def total(self):
        return np.sum(self.a**2)

    def power(self, p):
        return math.pow(self.a[0], p)


class Derived(Base):
    @property
    def total(self):
        return super().total * 3

    def power(self, p):
        return super().power(p) + super().total


@program(X)
def inherited_properties(x):
    return np.array([Derived(x).total, Derived(x).power(x[1])])


class Doubled:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, o, owner):
        return getattr(o, self.name) * 2

    def __set__(self, o, value):
        setattr(o, self.name, math.sin(value))


class Described:
    __slots__ = ("__dict__", "_d", "k")
    d = Doubled()

    def __getattr__(self, name):
        if name.startswith("power"):
            return math.pow(self.k, int(name[5:]))
        raise AttributeError(name)


@program(X)
def descriptors_slots_and_getattr(x):
    o = Described()
    o.d, o.k, o.free = x
    return np.array([o.d, o.power3, o.free, getattr(o, "absent", x[2])])


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float
    c: float = dataclasses.field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "c", math.exp(self.a))


@dataclasses.dataclass(slots=True)
class Slotted:
    a: float
    b: float = 0.5
    c: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.c = math.sin(self.a) * self.b


@dataclasses.dataclass(slots=True)
class OtherDefaults:
    a: float
    b: float = 0.5
    c: list = dataclasses.field(default_factory=lambda: [1.0])
    d: float = dataclasses.field(init=False)

    def __post_init__(self):
        self.d = self.a * self.b * self.c[0]


OtherDefaults.__init__.__defaults__ = (0.75, [3.0])


class Pair(typing.NamedTuple):
    a: float
    b: float

    def mean(self):
        return math.sqrt(self.a * self.b)


@program(X)
def records(x):
    frozen, slotted, pair = Frozen(x[0]), Slotted(x[1]), Pair(x[0], x[2])
    return np.array([
        frozen.c,
        dataclasses.replace(frozen, a=x[1]).c,
        slotted.c,
        OtherDefaults(x[1]).d,
        dataclasses.replace(slotted, b=x[2]).c,
        *dataclasses.astuple(slotted),
        pair.mean(),
        pair._replace(b=x[1]).mean(),
        sum(pair._asdict().values()),
    ])  # fmt: skip


@program(X)
def namespaces(x):
    o = types.SimpleNamespace(a=x[0])
    o.b = x[1] * o.a
    o.__dict__["c"] = x[2]
    vars(o)["d"] = x[0]
    o.__dict__.update(e=x[1])
    total = sum(vars(o).values())
    del o.b
    delattr(o, "a")
    return np.array([total, *vars(o).values(), hasattr(o, "a") * 1.0])


@contextlib.contextmanager
def doubled(value):
    yield math.sin(value) * 2


class Opened:
    def __enter__(self):
        self.level = 0.0
        return self

    def __exit__(self, *details):
        self.level = math.exp(self.level)
        return True


@program(X)
def context_managers(x):
    with doubled(x[0]) as a, contextlib.suppress(KeyError), contextlib.ExitStack() as stack:
        b = stack.enter_context(doubled(x[1]))
        stack.callback(lambda: x.__setitem__(0, x[0] * 3))
        {}["missing"]
    with Opened() as o:
        o.level = x[2]
        raise ValueError
    return np.array([a, b, x[0], o.level])


@program(X)
def augmented_targets(x):
    cells, table = [x[0], np.zeros(3)], {"a": {"b": [0.0]}}
    cells[0] += x[1]
    cells[1] += x
    cells[1][0] *= cells[0]
    table["a"]["b"][0] += x[2]
    table["a"]["b"] += [x[0]]
    return np.concatenate([cells[1], [cells[0]], table["a"]["b"]])


@program(X)
def operands_are_evaluated_once_and_in_order(x):
    seen = []

    def at(k):
        seen.append(k)
        return k

    y = np.zeros(3)
    y[:] = x
    y[at(0)] += y[at(1)]
    y[at(2)] = y[at(0)] * x[at(1)]
    return y * float(seen == [0, 1, 0, 1, 2])


@program(X)
def patterns(x):
    def size(value):
        match value:
            case float():
                return value * 2
            case [a, b, *_]:
                return a * b
            case {"k": q}:
                return q * 3
            case np.ndarray():
                return value.sum()

    return np.array([size(x[0]), size([x[0], x[1]]), size({"k": x[2]}), size(x)])


@pytest.mark.parametrize(("program", "chunk"), with_widths(PROGRAMS))
def test_program(program, chunk):
    check_jacobian(program, chunk)


def test_private_names_stay():
    o = Hidden()
    fwdad.jacobian(o.step, X)
    plain = Hidden()
    plain.step(X)
    assert o._Hidden__level == plain._Hidden__level
    assert np.array_equal(o._Hidden__work, plain._Hidden__work)


def test_swallowed_errors_come_out():
    """`except TypeError` around int(x) takes the branch that the plain program does not take."""

    def f(x):
        try:
            k = int(x[0])
        except TypeError:
            k = 5
        return x * k

    with pytest.raises(fwdad.errors.DualLeakError, match="int"):
        fwdad.jacobian(f, X)


@pytest.mark.parametrize("expression", ["a.sum() * 2", "np.sin(a)"])
def test_eval_over_written_arrays_is_refused(expression):
    def f(x):
        a = np.zeros(3)
        a[:] = x
        return x * eval(expression, {"a": a, "np": np})

    with pytest.raises(fwdad.errors.DualLeakError, match="eval"):
        fwdad.jacobian(f, X)


def test_number_of_evaluations_is_the_programs_own():
    calls = []

    def f(x):
        calls.append("f")
        return [v * 2 for v in x if calls.append("v") is None][0]

    f(X)
    expected = list(calls)
    calls.clear()

    def counted(x):
        seen.append(1)
        return f(x)

    seen = types.SimpleNamespace(append=lambda _: None)
    gradient = fwdad.grad(counted)(X)
    assert_allclose(gradient, [2.0, 0.0, 0.0])
    assert calls == expected == ["f", "v", "v", "v"]

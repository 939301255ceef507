"""The world after a derivative call is as one plain call leaves it."""

import collections
import copy
import random
import sys
import threading
import types
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.eager.memory.undo import UndoLog

X = np.array([0.7, 1.3, 0.4])


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = 1.0


class Counter:
    count = 0
    table = np.ones(2)

    def __init__(self):
        self.items = [1.0]

    def bump(self, x):
        Counter.count = Counter.count + x[0]
        type(self).extra = x[1]
        self.items.append(x[2])
        self.table[:] = x[:2]
        self.items.sort(key=lambda v: -v)
        del type(self).extra
        return Counter.count


def holder():
    return types.SimpleNamespace(
        items=[1.0, 2.0],
        table={"a": 1.0, "b": 2.0},
        names={1, 2},
        queue=collections.deque([1.0, 2.0], maxlen=3),
        ordered=collections.OrderedDict(a=1.0, b=2.0),
        counts=collections.defaultdict(float, a=1.0),
        data=bytearray(b"abc"),
        array=np.arange(4.0),
        integers=np.arange(4),
        matrix=np.arange(4.0).reshape(2, 2)[:, ::-1],
        objects=np.array([None, 1.0], object),
        record=np.zeros(2, dtype=[("u", float), ("v", int)]),
        slots=Slots(),
        inner=types.SimpleNamespace(k=1.0),
    )


WRITES = {
    "list": lambda o, x: (
        o.items.append(x[0]),
        o.items.insert(0, x[1]),
        o.items.reverse(),
        o.items.pop(),
    ),
    "list of slices": lambda o, x: (
        o.items.__setitem__(slice(0, 1), [x[0], x[1]]),
        o.items.clear(),
    ),
    "dict": lambda o, x: (o.table.update(a=x[0]), o.table.pop("b"), o.table.setdefault("c", x[1])),
    "dict order": lambda o, x: (o.table.pop("a"), o.table.__setitem__("a", x[0])),
    "set": lambda o, x: (o.names.add(3), o.names.discard(1)),
    "deque": lambda o, x: (o.queue.appendleft(x[0]), o.queue.rotate(1), o.queue.extend(x)),
    "ordered": lambda o, x: (o.ordered.move_to_end("a"), o.ordered.popitem()),
    "defaultdict": lambda o, x: o.counts["new"] + x[0],
    "bytearray": lambda o, x: o.data.extend(b"d"),
    "array": lambda o, x: (o.array.fill(3.0), o.array.sort(), o.array.__setitem__(0, x[0])),
    "integers": lambda o, x: o.integers.__setitem__(slice(1, 3), 9),
    "view": lambda o, x: o.matrix.__setitem__(0, x[:2]),
    "objects": lambda o, x: o.objects.__setitem__(0, x[0]),
    "record": lambda o, x: (o.record["u"].__setitem__(0, x[0]), o.record["v"].fill(3)),
    "slots": lambda o, x: (setattr(o.slots, "a", x[0]), setattr(o.slots, "b", x[1])),
    "attributes": lambda o, x: (
        setattr(o, "new", x[0]),
        delattr(o, "items"),
        setattr(o.inner, "k", x[1]),
    ),
    "vars": lambda o, x: vars(o.inner).update(k=x[0], m=x[1]),
    "np.copyto": lambda o, x: (
        np.copyto(o.array, 2.0),
        np.put(o.array, [0], x[0]),
        np.fill_diagonal(o.matrix, 5.0),
    ),
    "out": lambda o, x: (
        np.exp(np.ones(4), out=o.array),
        np.add(x[0], 1.0, out=o.array[:1].reshape(())),
    ),
    "augmented": lambda o, x: (o.array.__iadd__(1.0), o.items.__iadd__([x[0]])),
}


def same(a, b):
    if isinstance(a, types.SimpleNamespace):
        return vars(a).keys() == vars(b).keys() and all(
            same(v, vars(b)[k]) for k, v in vars(a).items()
        )
    if isinstance(a, Slots):
        return [getattr(a, n, None) for n in "ab"] == [getattr(b, n, None) for n in "ab"]
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.tolist() == b.tolist()
    if isinstance(a, dict):
        return type(a) is type(b) and list(a.items()) == list(b.items())
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("fails", [False, True], ids=["returns", "raises"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_write_stays(write, fails):
    """As a plain call leaves it, values without tangents, also where f raises afterwards."""
    o, after = holder(), holder()
    write(after, X)
    before = copy.deepcopy(o)
    identities = {name: id(value) for name, value in vars(o).items() if hasattr(after, name)}

    def f(x):
        write(o, x)
        if fails:
            raise ZeroDivisionError
        return x

    changed = copy.deepcopy(o)
    write(changed, X)
    assert (
        write is WRITES["augmented"] or write is WRITES["defaultdict"] or not same(changed, before)
    )
    if fails:
        with pytest.raises(ZeroDivisionError):
            fwdad.jacobian(f, X, chunk=2)
    else:
        assert_array_equal(fwdad.jacobian(f, X, chunk=2), np.eye(3))
    assert same(o, after)
    assert {name: id(value) for name, value in vars(o).items() if name in identities} == identities


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_write_is_undone_where_fwdad_refuses(write):
    o = holder()
    before = copy.deepcopy(o)
    identities = {name: id(value) for name, value in vars(o).items()}

    def f(x):
        write(o, x)
        return x * int(x[0])

    with pytest.raises(fwdad.errors.DualLeakError):
        fwdad.jacobian(f, X, chunk=2)
    assert same(o, before)
    assert {name: id(value) for name, value in vars(o).items()} == identities


class OfThread(threading.local):
    """What is no slot is in a dict of the thread, not in the object's own ``__dict__``."""

    __slots__ = ("mass",)


@pytest.mark.parametrize("chunk", [1, 2])
def test_attributes_of_a_thread(chunk):
    o = OfThread()
    o.mass, o.speed = 1.0, 2.0

    def f(x):
        o.mass, o.speed = o.mass * x[0], o.speed * x[1]
        o.new = x[2]
        return x * o.mass

    fwdad.jacobian(f, X, chunk=chunk)
    assert (o.mass, vars(o)) == (X[0], {"speed": 2.0 * X[1], "new": X[2]})
    assert type(o.mass) is np.float64


def test_every_chunk_sees_the_same_state():
    seen = [0.0]

    def f(x):
        seen[0] += x[0]
        seen.append(len(seen))
        return x * seen[0] * seen[-1]

    expected = X[0] * np.eye(3)
    expected[:, 0] += X
    for chunk in (1, 2, 3):
        seen[:] = [0.0]
        assert_array_equal(fwdad.jacobian(f, X, chunk=chunk), expected)
        assert seen == [X[0], 1]


def test_class_attributes(monkeypatch):
    monkeypatch.setattr(Counter, "count", 0)
    monkeypatch.setattr(Counter, "table", np.ones(2))
    o = Counter()
    fwdad.jacobian(o.bump, X, chunk=1)
    assert Counter.count == X[0]
    assert type(Counter.count) is np.float64
    assert not hasattr(Counter, "extra")
    assert_array_equal(Counter.table, X[:2])
    assert o.items == sorted([1.0, X[2]], reverse=True)


def test_attributes_of_functions_and_modules(monkeypatch):
    module = types.ModuleType("settings")
    module.level = 1.0

    def f(x):
        module.level = x[0]
        f.last = x[1]
        return x * module.level * f.last

    fwdad.jacobian(f, X, chunk=2)
    assert (module.level, f.last) == (X[0], X[1])
    assert type(module.level) is type(f.last) is np.float64


def test_default_arguments():
    def f(x, seen=[], *, table={}):  # noqa: B006
        seen.append(x[0])
        table[len(table)] = x[1]
        return x * len(seen) * len(table)

    assert_array_equal(fwdad.jacobian(f, X, chunk=1), np.eye(3))
    assert f.__defaults__ == ([X[0]],)
    assert f.__kwdefaults__ == {"table": {0: X[1]}}


def test_read_only_scratch():
    def f(x):
        y = np.zeros(3)
        y[0] = 2.0
        y.flags.writeable = False
        return x * y

    assert_array_equal(fwdad.jacobian(f, X), np.diag([2.0, 0.0, 0.0]))


def test_scratch_of_another_size():
    def f(x):
        y = np.zeros(3)
        y[0] = 2.0
        y.resize(6, refcheck=False)
        return x * y[:3]

    assert_array_equal(fwdad.jacobian(f, X), np.diag([2.0, 0.0, 0.0]))


def test_generators_end_where_one_plain_call_leaves_them():
    generator, legacy = np.random.default_rng(3), np.random.RandomState(4)

    def f(x):
        return x * generator.normal() * legacy.rand() * random.random()

    random.seed(5)
    expected = f(X)
    after = generator.normal(), legacy.rand(), random.random()
    generator, legacy = np.random.default_rng(3), np.random.RandomState(4)
    random.seed(5)
    for _ in range(1):
        value, J = fwdad.value_and_jacobian(f, X, chunk=1)
    assert_array_equal(value, expected)
    np.testing.assert_allclose(np.diag(J), expected / X)
    assert after == (generator.normal(), legacy.rand(), random.random())


def test_scratch_does_not_pile_up_in_the_log():
    log = UndoLog()
    for _ in range(5000):
        y = np.zeros(10)
        log.array(y)
        log.container([])
    assert len(log._arrays) + len(log._objects) < 2000
    kept = [np.ones(2) for _ in range(600)]
    for y in kept:
        log.array(y)
        y[:] = 5.0
    log.restore()
    assert all((y == 1.0).all() for y in kept)


def test_log_keeps_the_first_content():
    log = UndoLog()
    y, items = np.arange(3.0), [1]
    for k in range(3):
        log.array(y[k:])
        log.container(items)
        y[k] = 7.0
        items.append(k)
    assert log.wrote(y[::-1])
    assert log.anything()
    log.restore()
    assert_array_equal(y, [0.0, 1.0, 2.0])
    assert items == [1]
    assert not log.anything()


def test_reference_counts_are_as_before():
    y = np.ones(3)
    before = sys.getrefcount(y)

    def f(x):
        y[:] = x
        return y * 2

    fwdad.jacobian(f, X)
    fwdad.jacobian(f, X, chunk=1)
    assert sys.getrefcount(y) == before


@pytest.mark.parametrize(
    "derivative",
    [lambda f: fwdad.jvp(f, X, X), lambda f: fwdad.jacobian(f, X, chunk=1),
     lambda f: fwdad.grad(f)(X), lambda f: fwdad.hessian(f, X)],
    ids=["jvp", "jacobian", "grad", "hessian"],
)  # fmt: skip
def test_weak_proxies(derivative):
    """Of a live object the object is written; a dead one cannot be asked its class."""
    owner, forgotten = Counter(), Counter()
    holders = types.SimpleNamespace(proxy=weakref.proxy(owner), dead=weakref.proxy(forgotten))
    del forgotten
    kept = []

    def f(x):
        holders.proxy.value = x[0] * 2.0
        kept.append(holders)
        return x[0] ** 2

    derivative(f)
    assert type(owner.value) is np.float64
    assert owner.value == 2.0 * X[0]

"""Kinds of objects that a function may capture: how a number is read of each, and how it changes."""

import array
import collections
import contextvars
import ctypes
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import functools
import io
import itertools
import os
import queue
import re
import tempfile
import threading
import types
import weakref

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy import sparse, stats
from scipy.interpolate import BSpline, CubicSpline, RegularGridInterpolator, interp1d

KINDS = {}
"""Name -> a function that makes ``(read, change)``."""


def kind(make):
    KINDS[make.__name__] = make
    return make


def item_kind(name, make, put=None):
    """A container whose item 0 is read by subscription and is set."""

    def made():
        held = make()

        def change():
            if put is None:
                held[0] = 7.0
            else:
                put(held)

        return lambda: held[0], change

    KINDS[name] = made


def whole_kind(name, make, read, change):
    """An object that is read and changed by functions."""

    def made():
        held = make()
        return lambda: read(held), lambda: change(held)

    KINDS[name] = made


# -- arrays

item_kind("array_1d", lambda: np.array([2.0, 3.0]))
item_kind("array_of_ints", lambda: np.array([2, 3]))
item_kind("array_of_bools", lambda: np.array([True, False]), lambda a: a.fill(False))
item_kind("array_strided", lambda: np.arange(8.0)[::2])
item_kind("array_subclass", lambda: np.array([2.0, 3.0]).view(Sub))
item_kind("array_of_objects", lambda: np.array([2.0, 3.0], object))
item_kind("array_small_floats", lambda: np.array([2.0, 3.0], np.float32))
whole_kind("array_0d", lambda: np.array(2.0), lambda a: a * 1.0, lambda a: a.fill(5.0))
whole_kind("array_2d", lambda: np.eye(2), lambda a: a[0, 0] + a.sum(), lambda a: a.fill(3.0))
whole_kind("array_complex", lambda: np.array([2 + 1j]), lambda a: a[0].imag, lambda a: a.fill(5j))
whole_kind("structured", lambda: np.ones(2, [("a", float)]), lambda a: a["a"][0],
           lambda a: a["a"].fill(4.0))  # fmt: skip
whole_kind("flatiter", lambda: np.arange(3.0).flat, lambda a: a[1], lambda a: a.base.fill(4.0))
whole_kind("broadcast", lambda: np.broadcast(np.ones(3), 2.0), lambda b: b.index + 2.0, next)


class Sub(np.ndarray):
    pass


@kind
def read_only():
    base = np.array([2.0, 3.0])
    seen = base[:]
    seen.flags.writeable = False
    return lambda: seen[0], lambda: base.fill(9.0)


@kind
def memmap():
    handle, path = tempfile.mkstemp()
    os.close(handle)
    held = np.memmap(path, float, "w+", shape=2)
    held[:] = 2.0
    os.unlink(path)
    return lambda: held[0], lambda: held.fill(3.0)


@kind
def method_of_an_array():
    held = np.array([2.0, 3.0])
    total = held.sum
    return lambda: total(), lambda: held.fill(5.0)


# -- numbers and texts, under names that change


def _cell(before, after, read=lambda v: v):
    def made():
        held = before

        def change():
            nonlocal held
            held = after

        return lambda: read(held), change

    return made


KINDS |= {
    "number": _cell(2.0, 3.0),
    "whole_number": _cell(2, 3),
    "truth": _cell(True, False),
    "numpy_number": _cell(np.float64(2.0), np.float64(3.0)),
    "complex_number": _cell(2 + 3j, 4 + 5j, lambda v: v.imag),
    "text": _cell("ab", "abc", len),
    "bytes": _cell(b"ab", b"abc", len),
    "none": _cell(None, 3.0, lambda v: 1.0 if v is None else v),
    "tuple": _cell((2.0, 1.0), (3.0, 1.0), lambda v: v[0]),
    "range": _cell(range(3), range(5), len),
    "slice": _cell(slice(0, 2), slice(0, 3), lambda v: v.stop),
    "frozenset": _cell(frozenset({1.0}), frozenset({1.0, 2.0}), len),
    "fraction": _cell(fractions.Fraction(1, 2), fractions.Fraction(1, 3), float),
    "decimal": _cell(decimal.Decimal("1.5"), decimal.Decimal("2.5"), float),
    "date": _cell(dt.date(2000, 1, 1), dt.date(2000, 1, 5), lambda v: v.day),
    "time_span": _cell(dt.timedelta(2), dt.timedelta(3), lambda v: v.days),
    "match": _cell(re.match("a+", "aa"), re.match("a+", "aaa"), lambda v: v.end()),
    "pattern": _cell(re.compile("a"), re.compile("a*"), lambda v: len(v.pattern)),
    "dtype": _cell(np.dtype("f4"), np.dtype("f8"), lambda v: v.itemsize),
    "function": _cell(lambda: 2.0, lambda: 3.0, lambda v: v()),
}

# -- Python's containers

item_kind("list", lambda: [2.0, 3.0])
item_kind("list_subclass", lambda: List([2.0, 3.0]))
item_kind("list_that_overrides", lambda: Doubled([2.0, 3.0]))
item_kind("user_list", lambda: collections.UserList([2.0, 3.0]))
item_kind("deque", lambda: collections.deque([2.0]))
item_kind("typed_array", lambda: array.array("d", [2.0, 3.0]))
item_kind("bytearray", lambda: bytearray([2, 3]), lambda b: b.__setitem__(0, 9))
item_kind("memoryview", lambda: memoryview(bytearray([2, 3])), lambda b: b.__setitem__(0, 9))
item_kind("ctypes_array", lambda: (ctypes.c_double * 2)(2.0, 3.0))
item_kind("dict", lambda: {0: 2.0})
item_kind("dict_subclass", lambda: Dict({0: 2.0}))
item_kind("ordered_dict", lambda: collections.OrderedDict({0: 2.0}))
item_kind("default_dict", lambda: collections.defaultdict(float, {0: 2.0}))
item_kind("counter", lambda: collections.Counter({0: 2}))
item_kind("chain_map", lambda: collections.ChainMap({0: 2.0}, {1: 3.0}))
item_kind("user_dict", lambda: collections.UserDict({0: 2.0}))
item_kind("object_with_getitem", lambda: WithItems())
whole_kind("nested_list", lambda: [[1.0, [2.0]]], lambda a: a[0][1][0],
           lambda a: a[0][1].__setitem__(0, 4.0))  # fmt: skip
whole_kind("tuple_of_a_list", lambda: (1.0, [2.0]), lambda a: a[1][0],
           lambda a: a[1].__setitem__(0, 4.0))  # fmt: skip
whole_kind("tuple_of_a_deque", lambda: (1.0, collections.deque([2.0])), lambda a: a[1][0],
           lambda a: a[1].appendleft(4.0))  # fmt: skip
whole_kind("dict_of_a_set", lambda: {"a": {1.0}}, lambda a: len(a["a"]), lambda a: a["a"].add(4.0))
whole_kind("set", lambda: {2.0}, max, lambda s: s.add(4.0))
whole_kind("set_asked", lambda: {2}, lambda s: 2.0 if 3 in s else 1.0, lambda s: s.add(3))
whole_kind("queue", queue.Queue, lambda q: 1.0 + q.qsize(), lambda q: q.put(3))
whole_kind("deque_summed", lambda: collections.deque([1.0], 3), sum, lambda d: d.append(2.0))
whole_kind("counter_total", lambda: collections.Counter("aab"), lambda c: c.total(),
           lambda c: c.update("b"))  # fmt: skip
whole_kind("dict_get", lambda: Dict(a=1.0), lambda d: d.get("b", 3.0), lambda d: d.update(b=4.0))
whole_kind("list_sorted", lambda: List([2.0, 1.0]), lambda a: sorted(a)[1], lambda a: a.append(0.5))


class List(list):
    pass


class Doubled(list):
    def __getitem__(self, k):
        return 2 * super().__getitem__(k)


class Dict(dict):
    pass


class WithItems:
    def __init__(self):
        self.held = [2.0]

    def __getitem__(self, k):
        return self.held[k]

    def __setitem__(self, k, v):
        self.held[k] = v


@kind
def mapping_proxy():
    held = {0: 2.0}
    seen = types.MappingProxyType(held)
    return lambda: seen[0], lambda: held.update({0: 3.0})


@kind
def dict_view():
    held = {0: 2.0}
    seen = held.values()
    return lambda: max(seen), lambda: held.update({0: 3.0})


# -- objects


@dataclasses.dataclass
class Data:
    a: float = 2.0


@dataclasses.dataclass(slots=True)
class SlottedData:
    a: float = 2.0


class Plain:
    def __init__(self):
        self.a = 2.0


class Slots:
    __slots__ = ("a",)

    def __init__(self):
        self.a = 2.0


class Property(Plain):
    @property
    def twice(self):
        return 2 * self.a


class Falls:
    def __init__(self):
        self.__dict__["held"] = {"a": 2.0}

    def __getattr__(self, name):
        return self.held[name]

    def __setattr__(self, name, value):
        self.held[name] = value


class Watched(Plain):
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class Model(Plain):
    def value(self):
        return self.a

    def __call__(self):
        return 3 * self.a

    def __len__(self):
        return int(self.a)

    def __add__(self, other):
        return self.a + other


Pair = collections.namedtuple("Pair", "a b")


class Colour(enum.Enum):
    RED = 2.0
    BLUE = 3.0


def _set(o):
    o.a = 5.0


for _cls in (Data, SlottedData, Plain, Slots, Falls, Watched, types.SimpleNamespace,
             threading.local):  # fmt: skip

    def _make(cls=_cls):
        made = cls()
        made.a = 2.0
        return made

    whole_kind(f"object_{_cls.__name__}", _make, lambda o: o.a, _set)

whole_kind("object_property", Property, lambda o: o.twice, _set)
whole_kind("object_called", Model, lambda o: o(), _set)
whole_kind("object_length", Model, len, _set)
whole_kind("object_added", Model, lambda o: o + 1.0, _set)
whole_kind("object_text", Data, lambda o: len(str(o)), lambda o: setattr(o, "a", 1.2345))
whole_kind("attribute_text", lambda: types.SimpleNamespace(mode="a"), lambda o: len(o.mode),
           lambda o: setattr(o, "mode", "abc"))  # fmt: skip
whole_kind("attribute_deleted", lambda: vars_of(Rates(), rate=3.0), lambda o: o.rate,
           lambda o: delattr(o, "rate"))  # fmt: skip
whole_kind("attribute_asked", Plain, lambda o: 2.0 if hasattr(o, "b") else 1.0,
           lambda o: setattr(o, "b", 1))  # fmt: skip
whole_kind("attribute_dict", Plain, lambda o: vars(o)["a"], _set)
whole_kind("nested_object", lambda: types.SimpleNamespace(o=Plain()), lambda o: o.o.a,
           lambda o: _set(o.o))  # fmt: skip
whole_kind("object_exchanged", lambda: types.SimpleNamespace(o=Plain()), lambda o: o.o.a,
           lambda o: setattr(o, "o", vars_of(Plain(), a=9.0)))  # fmt: skip
whole_kind("object_of_a_deque", lambda: types.SimpleNamespace(o=collections.deque([1.0])),
           lambda o: o.o[-1], lambda o: o.o.append(3.0))  # fmt: skip
whole_kind("array_of_an_object", lambda: types.SimpleNamespace(w=np.ones(2)), lambda o: o.w.sum(),
           lambda o: o.w.fill(3.0))  # fmt: skip
whole_kind("array_exchanged", lambda: types.SimpleNamespace(w=np.ones(2)), lambda o: o.w.sum(),
           lambda o: setattr(o, "w", np.ones(4)))  # fmt: skip
KINDS["named_tuple"] = _cell(Pair(2.0, 1.0), Pair(3.0, 1.0), lambda v: v.a)
KINDS["enum"] = _cell(Colour.RED, Colour.BLUE, lambda v: v.value)
KINDS["error"] = _cell(ValueError(2.0), ValueError(3.0), lambda v: v.args[0])


def vars_of(o, **held):
    vars(o).update(held)
    return o


class Rates:
    rate = 2.0
    mode = "a"
    table = [2.0]  # noqa: RUF012

    @classmethod
    def of_class(cls):
        return 2.0

    @staticmethod
    def static():
        return 2.0


def class_kind(name, read, change):
    def made():
        cls = type("Rates", (Rates,), {})
        return lambda: read(cls, cls()), lambda: change(cls)

    KINDS[name] = made


class_kind("class_number", lambda c, o: c.rate, lambda c: setattr(c, "rate", 3.0))
class_kind("class_number_of_object", lambda c, o: o.rate, lambda c: setattr(c, "rate", 3.0))
class_kind("class_text", lambda c, o: len(o.mode), lambda c: setattr(c, "mode", "abc"))
class_kind("class_list", lambda c, o: o.table[0], lambda c: setattr(c, "table", [3.0]))
class_kind("class_method", lambda c, o: c.of_class(),
           lambda c: setattr(c, "of_class", classmethod(lambda cls: 3.0)))  # fmt: skip
class_kind("static_method", lambda c, o: c.static(),
           lambda c: setattr(c, "static", staticmethod(lambda: 3.0)))  # fmt: skip


def method_kind(name, read, change):
    """A class of its own whose methods are replaced."""

    def made():
        class Changed(Model):
            def value(self):
                return self.a

            def __call__(self):
                return self.a

            def __len__(self):
                return 2

            def __add__(self, other):
                return self.a + other

            def __getitem__(self, k):
                return self.a

            @property
            def twice(self):
                return 2 * self.a

        o = Changed()
        return lambda: read(o), lambda: change(o, Changed)

    KINDS[name] = made


method_kind("method_replaced", lambda o: o.value(),
            lambda o, c: setattr(c, "value", lambda self: 9 * self.a))  # fmt: skip
method_kind("method_shadowed", lambda o: o.value(),
            lambda o, c: setattr(o, "value", lambda: 9.0))  # fmt: skip
method_kind("call_replaced", lambda o: o(),
            lambda o, c: setattr(c, "__call__", lambda self: 9 * self.a))  # fmt: skip
method_kind("length_replaced", len, lambda o, c: setattr(c, "__len__", lambda self: 9))
method_kind("operator_replaced", lambda o: o + 1.0,
            lambda o, c: setattr(c, "__add__", lambda self, v: 9.0))  # fmt: skip
method_kind("item_replaced", lambda o: o[0],
            lambda o, c: setattr(c, "__getitem__", lambda self, k: 9.0))  # fmt: skip
method_kind("property_replaced", lambda o: o.twice,
            lambda o, c: setattr(c, "twice", property(lambda self: 9.0)))  # fmt: skip
method_kind("method_deleted", lambda o: o.value(), lambda o, c: (_set(o), delattr(c, "value")))
method_kind("class_exchanged", lambda o: o.value(), lambda o, c: setattr(o, "__class__", Nine))


class Nine(Model):
    def value(self):
        return 9.0


@kind
def bound_method():
    o = Model()
    read = o.value
    return lambda: read(), lambda: _set(o)


# -- functions


@kind
def code_replaced():
    def helper():
        return 2.0

    return helper, lambda: setattr(helper, "__code__", (lambda: 9.0).__code__)


@kind
def code_of_a_helper_replaced():
    def helper(v):
        return 2.0 * v

    return lambda: helper(3.0), lambda: setattr(helper, "__code__", (lambda v: 9.0 * v).__code__)


@kind
def default_replaced():
    def helper(a=2.0):
        return a

    return lambda: helper(), lambda: setattr(helper, "__defaults__", (3.0,))


@kind
def keyword_default_replaced():
    def helper(*, a=2.0):
        return a

    return lambda: helper(), lambda: helper.__kwdefaults__.update(a=3.0)


def _generated():
    """A class whose ``__init__`` is generated code."""

    @dataclasses.dataclass
    class Point:
        a: float
        k: float = 2.0
        n: list = dataclasses.field(default_factory=lambda: [2.0])

    return Point


@kind
def default_of_generated_init():
    cls = _generated()
    defaults = cls.__init__.__defaults__
    return (
        lambda: cls(1.0).k,
        lambda: setattr(cls.__init__, "__defaults__", (3.0, *defaults[1:])),
    )


@kind
def default_factory_of_generated_init():
    cls = _generated()
    return (
        lambda: cls(1.0).n[0],
        lambda: setattr(cls.__init__, "__defaults__", (2.0, [3.0])),
    )


@kind
def keyword_default_of_generated_init():
    @dataclasses.dataclass(kw_only=True)
    class Point:
        k: float = 2.0

    return lambda: Point().k, lambda: setattr(Point.__init__, "__kwdefaults__", {"k": 3.0})


@kind
def default_of_slots():
    @dataclasses.dataclass(slots=True)
    class Point:
        k: float = 2.0

    return lambda: Point().k, lambda: setattr(Point.__init__, "__defaults__", (3.0,))


@kind
def default_of_slots_before_post_init():
    @dataclasses.dataclass(slots=True)
    class Point:
        a: float
        k: float = 2.0
        square: float = dataclasses.field(init=False)

        def __post_init__(self):
            self.square = self.k**2

    def change():
        Point.__init__.__defaults__ = (3.0,)

    return lambda: Point(1.0).square, change


@kind
def default_of_named_tuple():
    cls = collections.namedtuple("cls", "a k", defaults=(2.0,))
    return lambda: cls(1.0).k, lambda: setattr(cls.__new__, "__defaults__", (3.0,))


@kind
def field_without_init():
    @dataclasses.dataclass
    class Point:
        k: float = dataclasses.field(init=False, default=2.0)

    return lambda: Point().k, lambda: setattr(Point, "k", 3.0)


def _setting(cls, name, value):
    return lambda: setattr(cls, name, value)


@kind
def init_replaced():
    class Point:
        def __init__(self):
            self.k = 2.0

    return lambda: Point().k, _setting(Point, "__init__", lambda self: setattr(self, "k", 3.0))


@kind
def generated_init_replaced():
    cls = _generated()

    def init(self, a):
        self.k = 3.0

    return lambda: cls(1.0).k, _setting(cls, "__init__", init)


@kind
def post_init_replaced():
    @dataclasses.dataclass
    class Point:
        a: float

        def __post_init__(self):
            self.k = 2.0

    return lambda: Point(1.0).k, _setting(
        Point, "__post_init__", lambda self: setattr(self, "k", 3.0)
    )


@kind
def post_init_added():
    """Nobody calls it: there was none when ``__init__`` was generated."""
    cls = _generated()

    def finish(self):
        self.k = 3.0

    def change():
        cls.__post_init__ = finish
        cls.__init__.__defaults__ = (4.0, *cls.__init__.__defaults__[1:])

    return lambda: cls(1.0).k, change


@kind
def new_added():
    class Point:
        k = 2.0

    def new(cls):
        made = object.__new__(cls)
        made.k = 3.0
        return made

    return lambda: Point().k, _setting(Point, "__new__", new)


@kind
def default_list():
    def helper(a=[2.0]):
        return a[0]

    return lambda: helper(), lambda: helper.__defaults__[0].__setitem__(0, 3.0)


@kind
def default_deque():
    def helper(a=collections.deque([2.0])):
        return a[0]

    return lambda: helper(), lambda: helper.__defaults__[0].appendleft(3.0)


@kind
def default_array():
    def helper(a=np.array([2.0])):
        return a[0]

    return lambda: helper(), lambda: helper.__defaults__[0].fill(3.0)


@kind
def function_attribute():
    def helper():
        return helper.scale

    helper.scale = 2.0
    return helper, lambda: setattr(helper, "scale", 3.0)


@kind
def partial_of_a_list():
    part = functools.partial(lambda a: a[0], [2.0])
    return lambda: part(), lambda: part.args[0].__setitem__(0, 3.0)


@kind
def partial_keywords():
    part = functools.partial(lambda a: a, a=2.0)
    return lambda: part(), lambda: part.keywords.update(a=3.0)


COUNT = 2.0
TABLE = np.array([2.0])
VIEW = collections.deque([2.0])


def _count():
    return COUNT


def _global(name, before, after, read):
    def made():
        globals()[name] = before
        return read, lambda: globals().__setitem__(name, after)

    KINDS[f"global_{name.lower()}"] = made


_global("COUNT", 2.0, 3.0, lambda: COUNT)
_global("TABLE", np.array([2.0]), np.array([3.0]), lambda: TABLE[0])
_global("VIEW", collections.deque([2.0]), collections.deque([3.0]), lambda: VIEW[0])
_global("_count", lambda: 2.0, lambda: 3.0, lambda: _count())


@kind
def cached_function():
    held = [2.0]

    @functools.lru_cache
    def helper():
        return held[0]

    return lambda: helper(), lambda: (held.__setitem__(0, 3.0), helper.cache_clear())


@kind
def callback_of_c_code():
    held = [2.0]

    def key(v):
        return v * held[0]

    return lambda: max([1.0, -2.0], key=key), lambda: held.__setitem__(0, -1.0)


@kind
def callback_of_reduce():
    held = collections.deque([2.0])
    return (lambda: functools.reduce(lambda a, b: a + b * held[0], [1.0, 2.0]),
            lambda: held.appendleft(3.0))  # fmt: skip


@kind
def module_attribute():
    module = types.ModuleType("settings")
    module.a = 2.0
    return lambda: module.a, lambda: setattr(module, "a", 3.0)


@kind
def module_text():
    module = types.ModuleType("settings")
    module.a = "a"
    return lambda: len(module.a), lambda: setattr(module, "a", "abc")


# -- iterators, files, and what else has its state in C

whole_kind("iterator_count", itertools.count, lambda c: float(repr(c)[6:-1]) + 1.0, next)
whole_kind("iterator_of_a_list", lambda: iter([1, 2, 3]), lambda c: c.__length_hint__() * 1.0, next)
whole_kind("generator", lambda: (k for k in (1, 2)), lambda g: 1.0 + (g.gi_frame is None), list)
whole_kind("file", lambda: io.StringIO("12345"), lambda f: 1.0 + f.tell(), lambda f: f.read(2))
whole_kind("file_of_bytes", lambda: io.BytesIO(b"12345"), lambda f: len(f.getvalue()),
           lambda f: f.write(b"1234567"))  # fmt: skip
whole_kind("context_variable", lambda: contextvars.ContextVar("a", default=2.0),
           lambda c: c.get(), lambda c: c.set(3.0))  # fmt: skip
whole_kind("generator_of_numbers", lambda: np.random.default_rng(1),
           lambda g: g.bit_generator.state["state"]["state"] % 7 + 1.0,
           lambda g: g.random())  # fmt: skip
whole_kind("event", threading.Event, lambda e: 2.0 if e.is_set() else 1.0, lambda e: e.set())
whole_kind("lock", threading.Lock, lambda e: 2.0 if e.locked() else 1.0, lambda e: e.acquire())


@kind
def weak_reference():
    o = Plain()
    seen = weakref.ref(o)

    def change():
        nonlocal o
        o = None

    return lambda: 1.0 if seen() is None else 2.0, change


# -- objects of NumPy's and SciPy's

GRID = np.arange(6.0)
whole_kind("poly1d", lambda: np.poly1d([1.0, 2.0]), lambda p: p(0.3),
           lambda p: p.coeffs.fill(3.0))  # fmt: skip
whole_kind("chebyshev", lambda: Chebyshev([1.0, 2.0]), lambda p: p(0.3),
           lambda p: p.coef.fill(3.0))  # fmt: skip
whole_kind("polynomial", lambda: Polynomial([1.0, 2.0]), lambda p: p(0.3),
           lambda p: setattr(p, "coef", np.array([3.0, 4.0])))  # fmt: skip
whole_kind("interp1d", lambda: interp1d(GRID, GRID**2), lambda p: float(p(0.3)),
           lambda p: p._y.__imul__(3.0))  # fmt: skip
whole_kind("cubic_spline", lambda: CubicSpline(GRID, GRID**2), lambda p: float(p(0.3)),
           lambda p: p.c.__imul__(3.0))  # fmt: skip
whole_kind("b_spline", lambda: BSpline(GRID, np.ones(4), 1), lambda p: float(p(1.3)),
           lambda p: p.c.__imul__(3.0))  # fmt: skip
whole_kind("grid_interpolator", lambda: RegularGridInterpolator((GRID,), GRID**2),
           lambda p: float(p([0.3])[0]), lambda p: p.values.__imul__(3.0))  # fmt: skip
whole_kind("sparse_array", lambda: sparse.csr_array(np.eye(3)), lambda a: a.sum(),
           lambda a: a.data.fill(3.0))  # fmt: skip
whole_kind("sparse_item", lambda: sparse.csr_array(np.eye(3)), lambda a: a[0, 0],
           lambda a: a.data.fill(3.0))  # fmt: skip
whole_kind("distribution", lambda: stats.norm(0.0, 1.0), lambda d: float(d.pdf(0.3)),
           lambda d: setattr(d, "args", (0.0, 2.0)))  # fmt: skip

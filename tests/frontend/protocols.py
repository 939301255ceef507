"""Programs on objects whose classes say what Python's operators and statements do with them."""

import abc
import copy
import dataclasses
import enum
import functools
import operator
import types
import typing
from collections import OrderedDict, defaultdict, deque

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.125, -4.0, 1.0])


@typing.runtime_checkable
class Measured(typing.Protocol):
    """What has a shape and a function of its class."""

    shape: tuple[int, ...]

    def sum(self): ...


class ByItself(type):
    """A class that decides which objects are its own."""

    def __instancecheck__(cls, x):
        return len(x) > 3


class Long(metaclass=ByItself):
    """What has more than three items."""


class Measure:
    """A number or an array with a unit, which NumPy's functions respect."""

    def __init__(self, value, unit):
        self.value = value
        self.unit = unit

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        values = [x.value if isinstance(x, Measure) else x for x in inputs]
        if ufunc is np.sqrt:
            return type(self)(ufunc(*values), self.unit / 2)
        if ufunc is np.multiply:
            units = [x.unit for x in inputs if isinstance(x, Measure)]
            return type(self)(ufunc(*values), sum(units))
        return NotImplemented

    def __array_function__(self, function, types, args, options):
        if not all(issubclass(t, Measure) for t in types):
            return NotImplemented
        if function is np.concatenate:
            return type(self)(function([x.value for x in args[0]], **options), self.unit)
        return type(self)(function(args[0].value, *args[1:], **options), self.unit)


class Length(Measure):
    """One of a class that is asked first."""


class Numbers:
    """All that a class can define of what is asked of it."""

    def __init__(self, *items):
        self.items = list(items)

    def __iadd__(self, other):
        self.items = [a + b for a, b in zip(self.items, other.items)]
        return self

    def __add__(self, other):
        return Numbers(0.0)

    def __eq__(self, other):
        return self.items[0] == other.items[0]

    __hash__ = None

    def __len__(self):
        return len(self.items)

    def __delitem__(self, k):
        del self.items[k]

    def __float__(self):
        return float(self.items[0])

    def __divmod__(self, k):
        return self.items[0] // k, self.items[0] % k

    def __round__(self, digits=None):
        return self.items[-1]


@program((1.5, 2.0), (-3.0, 0.5))
def own_operator_in_place(x, y):
    a = b = Numbers(x, y)
    a += Numbers(y, y)
    return b.items, a is b


@program((1.5, 2.0), (2.0, 2.0))
def unequal_by_eq(x, y):
    return x if Numbers(x) != Numbers(y) else 5.0


@program((1.5, 2.0), (-3.0, 0.5))
def own_builtins(x, y):
    n = Numbers(x, y)
    out = float(n), divmod(n, 0.75), round(n), round(n, 3)
    del n[0]
    return out, len(n), 1 if n else 0, n.items


class Descriptor:
    def __get__(self, o, cls=None):
        return o.held * 3

    def __set__(self, o, value):
        o.held = value + 1


class Described:
    place = Descriptor()

    def __init__(self, x):
        self.held = x


@program((1.5,), (-2.0,))
def descriptors(x):
    o = Described(x)
    before = o.place
    o.place = 2 * x
    return before, o.place, o.held


class Doubling:
    def __init__(self, x):
        self.x = x

    def __setattr__(self, name, value):
        super().__setattr__(name, 2 * value)

    def __getattr__(self, name):
        if name.startswith("no"):
            raise AttributeError(name)
        return 7.0 if self.x > 0 else -7.0


@program((1.5,), (-2.0,))
def own_access_to_attributes(x):
    o = Doubling(x)
    o.y = x * x
    return o.x, o.y, o.z, hasattr(o, "nothing"), getattr(o, "none", 3.0)


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float
    b: float = 0.0

    def __post_init__(self):
        object.__setattr__(self, "b", self.a * 2)


@program((1.5,), (-2.0,))
def assignment_to_a_frozen_dataclass(x):
    o = Frozen(x)
    try:
        o.a = 5.0
    except dataclasses.FrozenInstanceError:
        return o.a, o.b
    return o.a


class Meta(type):
    def __call__(cls, *args):
        made = super().__call__(*args)
        made.x = made.x * 2
        return made


class OfMeta(metaclass=Meta):
    def __init__(self, x):
        self.x = x


class OwnNew(abc.ABC):
    def __new__(cls, x):
        made = super().__new__(cls)
        made.kind = cls.__name__
        return made

    def __init__(self, x):
        self.x = x


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@program((1.5,), (-2.0,))
def making_objects(x):
    color = Color(2)
    o = OwnNew(x) if x > 0 else OwnNew(-x)
    return OfMeta(x).x, o.x, o.kind, color is Color.BLUE


@program((1.5, 2.0), (-3.0, 0.5))
def attributes_taken_away(x, y):
    o = types.SimpleNamespace(a=x, b=y, c=1.0)
    del o.a
    delattr(o, "c")
    try:
        del o.a
    except AttributeError:
        o.__dict__["d"] = x
    return o.b, hasattr(o, "a"), sum(vars(o).values()), o


@program((1.5,), (-2.0,))
def attributes_taken_away_on_one_way(x):
    o = types.SimpleNamespace(a=x, b=2.0)
    if x > 0:
        del o.a
    return o.b * 2 if x > 0 else o.a


@program((1.5,), (-2.0,))
def functions_have_attributes(x):
    def twice(f):
        """Twice."""

        @functools.wraps(f)
        def g(a, k=2.0):
            return k * f(a)

        return g

    @twice
    def f(a):
        """F."""
        return a * f.k

    f.k = 3.0
    if x > 0:
        f.k = x
    known = f.__name__, f.__doc__, twice.__doc__, f.__wrapped__.__name__, f.__defaults__
    return f(x), known, isinstance(f, types.FunctionType), x.__class__


class Linked:
    def __init__(self, x):
        self.x, self.items, self.me = x, [x], self

    @functools.cached_property
    def square(self):
        return self.x**2 if self.x > 0 else -self.x


@program((1.5, V), (-2.0, W))
def copies(x, a):
    o = Linked(x)
    first, nested = o.square, [a * 1.0, [x]]
    shallow, deep, lists, deep_lists = copy.copy(o), copy.deepcopy(o), copy.copy(nested), None
    deep_lists = copy.deepcopy(nested)
    shallow.x, deep.x = 5.0, 6.0
    shallow.items.append(x)
    deep.items.append(2.0)
    lists[0] = 1.0
    lists[1][0] = 2.0
    deep_lists[0][0] = 9.0
    return o.x, o.items, deep.items, deep.me is deep, nested, deep_lists, first, o.square


@program((V,), (W,))
def objects_of_operator(a):
    o = types.SimpleNamespace(inner=types.SimpleNamespace(x=a))
    total = operator.methodcaller("sum", axis=0)(a)
    items = [a[0], a[1], a[2]]
    operator.iconcat(items, [a[3]])
    return (
        operator.itemgetter(1)(a), operator.itemgetter(0, 2)(items), total,
        operator.attrgetter("inner.x", "inner")(o)[0][1], operator.concat(items, [2.0]), items,
        operator.abs(a), operator.getitem(a, 1), operator.call(abs, a[1]),
    )  # fmt: skip


@program((V,), (W,))
def special_methods_of_arrays(a):
    b = a.__mul__(2).__radd__(1.0)
    b.__iadd__(a)
    b.__setitem__(0, 5.0)
    return b, a.__len__(), a.__neg__().__abs__(), a.__lt__(1.0), a.__getitem__(1), a.__copy__()


@program((V, 3), (W, 9))
def containers_of_collections(a, n):
    view = deque([a[0], a[1]], maxlen=2)
    for k in range(n):
        view.append(view[0] * 0.5 + view[1] * k)
    found = defaultdict(list)
    found["a"].append(a[0])
    found["b"].extend(a)
    zero = defaultdict(lambda: a[1])
    zero["q"] += 1.0
    ordered = OrderedDict(x=a[0], y=a[1])
    ordered.move_to_end("x")
    one = dict.fromkeys("ab", a[2])
    return (
        view[1], found["a"], found["b"], zero["q"], list(ordered), one,
        list.copy([a[0]]), sum(frozenset(range(3))),
    )  # fmt: skip


@program((1.5,), (-2.0,))
def containers_of_collections_on_one_way(x):
    d = deque([1, 2, 3])
    if x > 0:
        d.rotate(1)
    return x * d[0] + d[2]


@program((V,), (W,), (np.array([1.0, 2.0, 1.0, 2.0]),))
def sorted_by_values(a):
    x, y, z = float(a[0]), float(a[1]), float(a[2])
    items = [z, y, x]
    items.sort(reverse=True)
    places = sorted(range(4), key=lambda k: a[k])
    pairs = sorted([(a[3], 1, x), (a[2], 2, y), (a[1], 3, z), (a[0], 0, x)])
    back = sorted([(x, 1.0), (y, 2.0), (z, 3.0)], key=lambda p: p[0], reverse=True)
    return sorted(a), items, a[places[0]], places, pairs, back, sorted([2, 1], key=lambda k: -k)


@program(([1.0, 2.0],), ([3.0, 0.0],))
def a_list_that_grows_while_it_is_iterated_over(items):
    seen = 0.0
    todo = [1, 2, 3]
    for k in todo:
        seen += k
        if len(todo) < 6:
            todo.append(10 * k)
    return seen + sum(items)


@program((V,), (W,))
def less_known_methods_of_arrays(a):
    b, c = a * 1.0, np.outer(a, a)
    np.put(b, [0, 2], a[1:])
    np.put(c, [1, 6, -1], a[:2])
    items = np.fromiter((x * x for x in a), float)
    return a.compress([1, 0, 1, 1]), b, c, items, a.nbytes, a.itemsize, np.arange(a[0], 4.0, 0.5)


@program((V,), (W,))
def classes_that_ask_for_attributes(a):
    is_measured = isinstance(a, Measured), isinstance(a[0], Measured), isinstance(2.0, Measured)
    found = [hasattr(a, name) for name in ("sum", "__array_namespace__", "_repr_", "dask")]
    if not hasattr(a, "magnitude"):
        a = a * 2.0
    try:
        unit = a.unit
    except AttributeError:
        unit = 3.0
    return a * unit, is_measured, found, a.__array_namespace__().sqrt(4.0)


@program((V,), (V[:3],))
def a_class_that_decides_by_itself(a):
    return a * 2.0 if isinstance(a, Long) else a * 3.0


@program((1.5,), (-2.0,))
def a_factory_that_is_taken_away(x):
    d = defaultdict(list)
    d["a"].append(x)
    d.default_factory = None
    try:
        return d["b"]
    except KeyError:
        return len(d), d["a"], d.default_factory is None


@program((1.5, 2.0), (-2.0, 0.5))
def attributes_by_the_bound_method(x, y):
    o = Numbers(x)
    for name, value in {"first": x, "second": x * y}.items():
        o.__setattr__(name, value)
    return o.first + o.second


@program((V * V, W), (W * W, V))
def functions_of_numpy_on_objects(a, b):
    m, n = Measure(a, 2), Length(b, 1)
    root, product = np.sqrt(m), np.multiply(m, n)
    total = np.sum(np.concatenate([m, m]), axis=0)
    try:
        np.exp(m)
    except TypeError:
        total.unit += 1
    return (
        root.value,
        root.unit,
        product.value,
        product.unit,
        type(product) is Length,
        total.value,
        total.unit,
    )

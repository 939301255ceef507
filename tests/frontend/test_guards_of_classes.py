"""What is asked of objects and classes outside, and is otherwise at a later call."""

import abc
import contextlib
import dataclasses
import itertools
import pickle
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = 1.5
STEP = 1e-6


def check(program, *changes):
    """Values and derivatives before some changes, and after each of them, as Python's own."""
    value, derivative = fwdad.jit(program, backend="numpy"), fwdad.grad(program)
    ways = [derivative, fwdad.jit(fwdad.grad(program), backend="numpy")]
    seen = []
    for change in (lambda: None, *changes):
        change()
        seen.append(program(X))
        assert_allclose([value(X) for _ in range(2)], seen[-1])
        expected = (program(X + STEP) - program(X - STEP)) / (2 * STEP)
        assert_allclose([f(X) for f in ways for _ in range(2)], expected, rtol=1e-6)
    assert all(a != b for a, b in itertools.pairwise(seen))


def setter(o, name, value):
    return lambda: setattr(o, name, value)


# -- what is missing, which the program catches


class Model:
    __slots__ = ("__dict__", "slot")

    def energy(self, x):
        return x**2


def empty_cell():
    if X < 0:
        held = None

    def f(x):
        try:
            return held * x
        except NameError:
            return x**2

    return f


def test_a_cell_that_is_filled():
    f = empty_cell()
    check(f, setter(f.__closure__[0], "cell_contents", 7.0))


def test_a_name_that_comes(monkeypatch):
    def f(x):
        try:
            return appears_later * x
        except NameError:
            return x**2

    check(f, lambda: monkeypatch.setitem(globals(), "appears_later", 3.0))


def read(o, name):
    def f(x):
        with contextlib.suppress(AttributeError):
            return getattr(o, name) * x
        return x**2

    return f


def written(o):
    def f(x):
        try:
            k = o.k
        except AttributeError:
            k = 1.0
        return k * x**2

    return f


OWNERS = {
    "object": Model,
    "class": lambda: type("Other", (Model,), {}),
    "module": lambda: types.ModuleType("later"),
    "namespace": types.SimpleNamespace,
    "function": lambda: lambda x: x,
}


@pytest.mark.parametrize("name", OWNERS)
def test_an_attribute_that_comes(name):
    for make in (written, lambda o: read(o, "k")):
        o = OWNERS[name]()
        check(make(o), setter(o, "k", 3.0), lambda o=o: delattr(o, "k"))


def test_an_attribute_of_the_class_that_comes():
    o = type("Other", (Model,), {})()
    check(written(o), setter(type(o), "k", 3.0), setter(o, "k", 4.0))
    o = Model()
    check(read(o, "slot"), setter(o, "slot", 3.0))


def test_a_method_that_comes():
    o = type("Other", (Model,), {})()

    def f(x):
        try:
            return o.energy(x) + o.correction(x)
        except AttributeError:
            return o.energy(x)

    check(f, setter(type(o), "correction", lambda s, x: x**3))


def test_an_attribute_that_comes_to_what_the_program_makes():
    cls = type("Other", (Model,), {})

    def f(x):
        made = cls()
        made.own = x
        return (made.k if hasattr(made, "k") else made.own) * made.own

    check(f, setter(cls, "k", 3.0))
    del cls.k

    def g(x):
        made = cls()
        try:
            return made.k * x
        except AttributeError:
            return x

    check(g, setter(cls, "k", 3.0))


def test_an_import_that_succeeds_later(monkeypatch):
    module = types.ModuleType("later")
    monkeypatch.setitem(__import__("sys").modules, "later", module)

    def f(x):
        try:
            from later import k
        except ImportError:
            k = 1.0
        return k * x

    check(f, setter(module, "k", 3.0))


def test_an_object_that_can_be_called_later():
    o = type("Other", (Model,), {})()

    def f(x):
        try:
            return o(x)
        except TypeError:
            return x**2

    check(f, setter(type(o), "__call__", lambda s, x: 9.0 * x))


def test_a_number_is_called():
    k = 2.0

    def f(x):
        return k(x)

    def caught(x):
        try:
            return k(x)
        except TypeError:
            return x**2

    for way in (fwdad.jit(f), fwdad.jit(fwdad.grad(f)), fwdad.grad(f)):
        with pytest.raises(TypeError, match="'float' object is not callable"):
            way(X)
    check(caught)


# -- the class of an object


class Linear:
    factor = property(lambda s: 2.0)

    def __call__(self, x):
        return self.factor * x

    def __mul__(self, other):
        return self.factor * other

    def __getitem__(self, k):
        return self.factor

    def __len__(self):
        return int(self.factor)

    def __eq__(self, other):
        return self.factor == other

    __hash__ = None

    def __neg__(self):
        return -self.factor

    def __contains__(self, k):
        return k == self.factor

    def __iter__(self):
        return iter((self.factor, 1.0))

    def __enter__(self):
        return self.factor

    def __exit__(self, *raised):
        return False

    def __getattr__(self, name):
        return self.factor

    def __float__(self):
        return self.factor

    def __bool__(self):
        return self.factor < 2.5

    @classmethod
    def of_class(cls, x):
        return cls.value * x

    value = 2.0

    def law(self, x):
        return self.factor * x

    def inherited(self, x):
        return x * self.value


class Steep(Linear):
    factor = property(lambda s: 3.0)
    value = 3.0

    def __bool__(self):
        return False


def entered(o, x):
    with o as k:
        return k * x


OF_CLASS = {
    "property": lambda o, x: o.factor * x,
    "call": lambda o, x: o(x),
    "operator": lambda o, x: o * x,
    "item": lambda o, x: o[0] * x,
    "length": lambda o, x: len(o) * x,
    "equality": lambda o, x: x if o == 2.0 else x**2,
    "minus": lambda o, x: -o * x,
    "in": lambda o, x: x if 2.0 in o else x**2,
    "iteration": lambda o, x: sum(o) * x,
    "with": entered,
    "hook": lambda o, x: o.anything * x,
    "float": lambda o, x: float(o) * x,
    "truth": lambda o, x: x if o else x**2,
    "class method": lambda o, x: o.of_class(x),
    "class attribute": lambda o, x: o.value * x,
    "method": lambda o, x: o.law(x),
    "inherited": lambda o, x: o.inherited(x),
}


class Slower(Linear):
    __call__ = lambda s, x: 5.0 * x
    __mul__ = lambda s, x: 5.0 * x
    __getitem__ = lambda s, k: 5.0
    __len__ = lambda s: 5
    __neg__ = lambda s: -5.0
    __float__ = lambda s: 5.0
    __enter__ = lambda s: 5.0
    __getattr__ = lambda s, name: 5.0
    __eq__ = lambda s, other: False
    __hash__ = None
    __contains__ = lambda s, k: False
    __bool__ = lambda s: False
    __iter__ = lambda s: iter((5.0, 1.0))
    factor = property(lambda s: 5.0)
    of_class = classmethod(lambda cls, x: 5.0 * x)
    law = lambda s, x: 5.0 * x
    value = 5.0


@pytest.mark.parametrize("name", OF_CLASS)
def test_an_object_of_another_class(name):
    for other in (Steep, Slower):
        o = Linear()
        check(lambda x, o=o: OF_CLASS[name](o, x), setter(o, "__class__", other))


def test_a_function_that_is_of_another_class():
    one, other = (type("C", (), {"__call__": lambda s, x, k=k: k * x}) for k in (2.0, 3.0))
    o = one()
    check(o, setter(o, "__class__", other))


# -- super()


class First:
    k = 2.0
    values = [2.0]  # noqa: RUF012

    def __init__(self, x):
        self.x = x

    def law(self, x):
        return 2.0 * x

    @property
    def factor(self):
        return 2.0

    @classmethod
    def of_class(cls, x):
        return cls.k * x


def family():
    class Base(First):
        pass

    class Mid(Base):
        pass

    class Last(Mid):
        k = 1.0

        def __init__(self, x):
            super().__init__(x)

        def law(self, x):
            return super().law(x) + 1.0

        @property
        def factor(self):
            return super().factor + 1.0

        @classmethod
        def of_class(cls, x):
            return super().of_class(x) + 1.0

        def attribute(self, x):
            return super().k * x

        def items(self, x):
            return super().values[0] * x

        def caught(self, x):
            try:
                return super().later(x)
            except AttributeError:
                return x

        def named(self, x):
            return super(Last, self).law(x) * self.x

    return Mid, Last


SUPER = {
    "method": (lambda o, c, x: o.law(x), "law", lambda s, x: x**3),
    "property": (lambda o, c, x: o.factor * x, "factor", property(lambda s: 4.0)),
    "class method": (lambda o, c, x: o.of_class(x), "of_class", classmethod(lambda c, x: x**3)),
    "of a class": (lambda o, c, x: c.of_class(x), "of_class", classmethod(lambda c, x: x**3)),
    "attribute": (lambda o, c, x: o.attribute(x), "k", 4.0),
    "items": (lambda o, c, x: o.items(x), "values", [4.0]),
    "named": (lambda o, c, x: o.named(x), "law", lambda s, x: x**3),
    "of what is made": (lambda o, c, x: c(x).named(x), "law", lambda s, x: x**3),
    "missing": (lambda o, c, x: o.caught(x), "later", lambda s, x: x**3),
    "init": (lambda o, c, x: c(x).x, "__init__", lambda s, x: setattr(s, "x", 2 * x)),
}


@pytest.mark.parametrize("name", SUPER)
def test_what_a_class_between_gets(name):
    program, attribute, value = SUPER[name]
    mid, last = family()
    o = last(X)
    changes = [setter(mid, attribute, value), lambda: delattr(mid, attribute)]
    check(lambda x: program(o, last, x), *changes)


@pytest.mark.parametrize("name", SUPER)
def test_other_bases(name):
    program, attribute, value = SUPER[name]
    _, last = family()
    o = last(X)
    other = type("Other", (First,), {attribute: value})
    check(lambda x: program(o, last, x), lambda: setattr(last, "__bases__", (other,)))


def test_super_of_an_object_of_another_class():
    _, last = family()

    class Beside(First):
        def law(self, x):
            return 7.0 * x

    other = type("Both", (last, Beside), {})
    o = last(X)
    check(lambda x: o.law(x), setter(o, "__class__", other))


def test_a_list_of_a_base_that_changes(monkeypatch):
    monkeypatch.setattr(First, "values", [2.0])
    _, last = family()
    o = last(X)
    check(lambda x: o.items(x), lambda: First.values.__setitem__(0, 3.0))


# -- context managers


def manager():
    class Manager:
        def __enter__(self):
            return 2.0

        def __exit__(self, *raised):
            return False

    return Manager()


def stacked(o, x):
    with contextlib.ExitStack() as stack:
        k = stack.enter_context(o)
        return k * x


@pytest.mark.parametrize("enter", [entered, stacked])
def test_another_enter(enter):
    o = manager()
    check(lambda x: enter(o, x), setter(type(o), "__enter__", lambda s: 20.0))


def test_another_exit():
    o, left = manager(), []
    f = fwdad.jit(lambda x: entered(o, x), backend="numpy")
    assert_allclose([f(X), f(X)], 2 * X)
    type(o).__exit__ = lambda s, *raised: left.append(1.0)
    assert_allclose(f(X), 2 * X)
    assert left == [1.0]


# -- how attributes are stored


def pair():
    class Pair:
        scale = 2.0

        def __init__(self, v):
            self.v = v
            self.scale = 3.0

    return Pair


def slotted():
    class Pair:
        __slots__ = ("scale", "v")

        def __init__(self, v):
            self.v, self.scale = v, 3.0

    return Pair


def dataclass_of():
    @dataclasses.dataclass
    class Pair:
        v: float
        scale: float = 3.0

    return Pair


class Clamped:
    def __get__(self, o, cls):
        return self if o is None else 7.0 * o.__dict__["kept"]

    def __set__(self, o, value):
        o.__dict__["kept"] = value


def clamp(self, name, value):
    object.__setattr__(self, name, 2.0 * value)


def stores(cls, x):
    made = cls(x)
    return made.v**2 * made.scale


def stores_again(cls, x):
    made = cls(np.array([x, 1.0]))
    made.v += x
    return made.v[0] ** 2 * made.v[1] * made.scale


def stores_by_name(cls, x):
    made = cls(x)
    setattr(made, "v", x**2)
    return made.v * made.scale


DOUBLED = property(lambda s: 2 * vars(s)["v"], lambda s, v: vars(s).update(v=v))
STORED = {
    "hook": lambda cls: setattr(cls, "__setattr__", clamp),
    "property": lambda cls: setattr(cls, "v", DOUBLED),
    "descriptor": lambda cls: setattr(cls, "v", Clamped()),
    "of a default": lambda cls: setattr(cls, "scale", Clamped()),
}


@pytest.mark.parametrize("program", [stores, stores_again, stores_by_name])
@pytest.mark.parametrize("name", STORED)
@pytest.mark.parametrize("make", [pair, dataclass_of])
def test_how_an_attribute_is_stored(make, name, program):
    cls = make()
    check(lambda x: program(cls, x), lambda: STORED[name](cls))


def test_how_a_slot_is_stored():
    cls = slotted()
    check(lambda x: stores(cls, x), lambda: STORED["hook"](cls))


def test_a_default_that_is_hidden_may_change():
    cls = pair()
    f = fwdad.jit(lambda x: stores(cls, x), backend="numpy")
    assert_allclose([f(X), f(X)], 3 * X**2)
    before = f.traces
    cls.scale = 5.0
    assert_allclose(f(X), 3 * X**2)
    assert f.traces == before


def test_a_property_of_what_is_given():
    cls = dataclass_of()
    f = fwdad.jit(lambda o: o.v * o.scale, backend="numpy")
    assert_allclose([f(cls(X)), f(cls(X))], 3 * X)
    cls.v = property(lambda s: 2 * vars(s)["v"], lambda s, v: vars(s).update(v=v))
    assert_allclose(f(cls(X)), 6 * X)


def test_how_an_attribute_is_deleted():
    cls = pair()

    def f(x):
        made = cls(x)
        del made.scale
        return made.scale * made.v

    check(f)
    g = fwdad.jit(f, backend="numpy")
    assert_allclose(g(X), 2 * X)
    cls.__delattr__ = lambda s, name: None
    with pytest.raises(fwdad.errors.UntraceableError, match="`del` of `scale`"):
        g(X)


# -- classes that are asked, or called


def test_items_of_a_class():
    class Table:
        data = {"a": 2.0}  # noqa: RUF012

        def __class_getitem__(cls, name):
            return cls.data[name]

    other = staticmethod(lambda name: 9.0)
    check(
        lambda x: Table["a"] * x,
        lambda: Table.data.update(a=5.0),
        lambda: setattr(Table, "data", {"a": 7.0}),
        lambda: setattr(Table, "__class_getitem__", other),
    )


def test_items_that_a_class_gets():
    cls = pair()

    def f(x):
        try:
            return cls["a"] * x
        except TypeError:
            return x**2

    check(f, lambda: setattr(cls, "__class_getitem__", classmethod(lambda c, name: 3.0)))


def test_a_metaclass_that_calls():
    class Meta(type):
        pass

    class Made(metaclass=Meta):
        def __init__(self, v):
            self.v = v

    other = types.SimpleNamespace(v=7.0)
    check(
        lambda x: Made(x).v * x,
        lambda: setattr(Meta, "__call__", lambda c, v: other),
        lambda: setattr(Meta, "__call__", lambda c, v: types.SimpleNamespace(v=3 * v)),
    )


def test_other_names_of_patterns():
    class Point:
        __match_args__ = ("a", "b")

        def __init__(self):
            self.a, self.b = 2.0, 5.0

    p = Point()

    def f(x):
        match p:
            case Point(u, v):
                return u * x + v * x**2

    check(f, lambda: setattr(Point, "__match_args__", ("b", "a")))

    def g(x):
        match p:
            case Point(c=c):
                return c * x
        return x**2

    check(g, lambda: setattr(p, "c", 3.0))


class Site:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return hash(self.n)

    def __eq__(self, other):
        return self.n == other.n


AT = {Site(1): 2.0, Site(2): 3.0}
SITES = {Site(1)}
LOOKUPS = {
    "item": lambda k, x: AT[k] * x,
    "get": lambda k, x: AT.get(k, 7.0) * x,
    "in": lambda k, x: AT.get(Site(1)) * x if k in {Site(1): 0} else x**2,
    "made here": lambda k, x: {Site(1): x, Site(2): x**2}[k],
    "popped": lambda k, x: {Site(1): x, Site(2): x**2}.pop(k),
    "set": lambda k, x: x if k in SITES else x**2,
}


@pytest.mark.parametrize("name", LOOKUPS)
def test_keys_with_another_state(name):
    k = Site(1)
    check(lambda x: LOOKUPS[name](k, x), setter(k, "n", 2))


def test_keys_of_a_dict_with_another_state():
    one, other = Site(1), Site(2)
    held = {one: 2.0, other: 3.0}

    def f(x):
        return held.get(Site(1), 7.0) * x

    check(f, setter(one, "n", 5))


def test_frozen_keys():
    """They cost a few identities, and not a comparison of all that their class can read."""

    @dataclasses.dataclass(frozen=True)
    class Term:
        power: int
        name: str = "x"

    k, powers = Term(1), {Term(1): 2.0, Term(2): 3.0}

    def f(x):
        return powers[k] * x

    assert not [path for path, _ in fwdad.trace(f, X).object_guards if path[0] == "contents"]
    check(f, lambda: object.__setattr__(k, "power", 2))
    check(lambda x: powers.get(k, 9.0) * x, setter(Term, "__eq__", lambda s, o: False))


def test_subclasses_that_are_defined_later():
    class Term:
        pass

    def subclass(power):
        return type("Power", (Term,), {"law": lambda s, x: x**power})

    kept = [subclass(2)]
    check(
        lambda x: sum(c().law(x) for c in Term.__subclasses__()),
        lambda: kept.append(subclass(3)),
    )


def test_a_class_that_is_registered_later():
    class Smooth(abc.ABC):
        pass

    class Other(abc.ABC):
        pass

    kinds = [type("Kind", (), {}) for _ in range(5)]
    programs = [
        lambda x: x if issubclass(kinds[0], Smooth) else x**2,
        lambda x: x if issubclass(kinds[1], (Other, Smooth)) else x**2,
        lambda x: x if issubclass(kinds[2], Other | Smooth) else x**2,
        lambda x: x if isinstance(kinds[3](), Other | Smooth) else x**2,
    ]
    for program, kind in zip(programs, kinds, strict=False):
        check(program, lambda kind=kind: Smooth.register(kind))

    def f(x):
        return x if issubclass(kinds[4], list) else x**2

    check(f)
    kinds[4] = type("Kind", (list,), {})
    check(f)


def test_a_class_of_other_bases_is_asked():
    class One:
        pass

    class Two:
        pass

    kind = type("Kind", (One,), {})
    check(lambda x: x if issubclass(kind, Two) else x**2, setter(kind, "__bases__", (Two,)))


def test_post_init_that_is_deleted():
    @dataclasses.dataclass
    class Made:
        v: float

        def __post_init__(self):
            self.w = self.v * 2

    def f(x):
        return Made(x).w

    ways = [fwdad.jit(f, backend="numpy"), fwdad.grad(f), fwdad.jit(fwdad.grad(f))]
    assert_allclose([way(X) for way in ways], [2 * X, 2.0, 2.0])
    later = [
        lambda: setattr(Made, "__post_init__", lambda s: setattr(s, "w", s.v**2)),
    ]
    check(f, *later)
    del Made.__post_init__
    for way in ways:
        with pytest.raises(AttributeError, match="no attribute '__post_init__'"):
            way(X)


def late_module():
    module = types.ModuleType("not_there")
    return written(module)


class Derived(First):
    def law(self, x):
        return super().law(x) + super().k


@pytest.mark.parametrize("make", [empty_cell, late_module, lambda: Derived(X).law])
def test_tapes_in_pickles(make):
    """What is missing is missing in the tape that is loaded, too."""
    f = make()
    loaded = pickle.loads(pickle.dumps(fwdad.trace(f, X)))
    assert_allclose(loaded(X), f(X))


class Posing:
    """Of a class that it does not tell, and without methods that it inherits."""

    __class__ = property(lambda s: int)
    __iter__ = None

    def __mul__(self, other):
        return 2.0 * other


def test_what_stays_costs_one_trace():
    o = Posing()

    def f(x):
        try:
            iter(o)
        except TypeError:
            return o * x
        return x

    jitted = fwdad.jit(f, backend="numpy")
    assert_allclose([jitted(X) for _ in range(3)], 2 * X)
    assert jitted.traces == 1


def test_a_deleted_attribute_is_the_class_s():
    cls = pair()

    def f(x):
        made = cls(x)
        made.v = x**2
        del made.v
        return made.v * x if hasattr(made, "v") else x

    check(f, setter(cls, "v", 3.0))


class Place:
    def __init__(self, k):
        self.k = k

    def __index__(self):
        return self.k


NUMBERS, ARRAY = [2.0, 5.0], np.array([2.0, 5.0])


def stored_at(k, x):
    made = np.zeros(2)
    made[k] = x
    return made[0] * x + made[1] * x**2


@pytest.mark.parametrize(
    "program",
    [lambda k, x: NUMBERS[k] * x, lambda k, x: ARRAY[k] * x, stored_at],
    ids=["list", "array", "stored"],
)
def test_objects_as_indices(program):
    k = Place(0)
    check(
        lambda x: program(k, x),
        setter(k, "k", 1),
        lambda: setattr(k, "__class__", type("Other", (), {"__index__": lambda s: 0})),
    )

"""What a traced program reads of the world outside, and how it meets its arguments."""

import argparse
import functools
import importlib
import linecache
import sys
import types

import numpy as np
import pytest

import fwdad
from fwdad.api.jit import cache_info, jit
from fwdad.errors import UntraceableError
from fwdad.frontend.trace import trace

RATE = 2.0
TABLE = [1.0, 2.0]
CONFIG = {"k": 3.0, "inner": {"v": np.ones(2)}}
PAIR = ([1.0], 2.0)
WEIGHTS = np.array([1.0, 2.0])


def helper(x):
    return x + 1


class Model:
    def __init__(self):
        self.k = 2.0
        self.inner = types.SimpleNamespace(v=5.0)
        self.coefficients = [1.0, 2.0]

    def __call__(self, x):
        return x * self.k + self.inner.v + self.coefficients[1]


def test_a_global_number_may_change(monkeypatch):
    f = jit(lambda x: x * RATE)
    assert f(3.0) == 6.0
    monkeypatch.setitem(globals(), "RATE", 5.0)
    assert f(3.0) == 15.0
    assert cache_info(f).traces == 1
    monkeypatch.setitem(globals(), "RATE", np.float64(5.0))
    assert type(f(3.0)) is np.float64


COUNTS = types.SimpleNamespace(k=2)
SETTINGS = {"k": 2}
OPTIONS = argparse.Namespace(k=2)


class Counted:
    k = 2


def of_global(x):
    return x * WHOLE


def of_class(x):
    return x * Counted.k


def of_object(x):
    return x * COUNTED.k


def of_dict(x):
    return x * SETTINGS["k"]


def of_namespace(x):
    return x * COUNTS.k


def of_parsed_arguments(x):
    return x * OPTIONS.k


WHOLE, COUNTED = 2, Counted()


@pytest.mark.parametrize(
    ("f", "home", "name"),
    [(of_global, globals(), "WHOLE"), (of_class, Counted, "k"), (of_object, COUNTED, "k"),
     (of_dict, SETTINGS, "k"), (of_namespace, COUNTS, "k"), (of_parsed_arguments, OPTIONS, "k")],
)  # fmt: skip
def test_a_whole_number_of_the_users_may_change(f, home, name, monkeypatch):
    """It is read at each call, and needs no tape of its own as a package's does."""
    put = monkeypatch.setitem if isinstance(home, dict) else monkeypatch.setattr
    fast = jit(f, backend="numpy")
    for k in (2, 3, 7, -1):
        put(home, name, k)
        assert fast(1.5) == 1.5 * k
    assert cache_info(fast).traces == 1


def module_of(name, home):
    """A module whose functions belong to a file, of the user's or of an installed package."""
    made = types.ModuleType(name)
    text = "RATE = 2.0\nTABLE = [1.0, 2.0]\ndef scaled(x): return x * RATE\n"
    exec(compile(text, f"{home}/{name}.py", "exec"), vars(made))
    made.__file__ = f"{home}/{name}.py"
    return made


def by_attribute(x):
    return outside_module.scaled(x) * outside_module.RATE + sum(outside_module.TABLE)  # noqa: F821


def by_import(x):
    from outside_module import RATE, TABLE, scaled

    return scaled(x) * RATE + sum(TABLE)


@pytest.mark.parametrize("home", ["/home/someone", "/usr/lib/python3/site-packages"])
@pytest.mark.parametrize("f", [by_attribute, by_import])
@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
def test_what_a_module_holds_may_change(f, home, monkeypatch):
    made = module_of("outside_module", home)
    linecache.cache[made.__file__] = (1, None, ["\n", "\n", "def scaled(x): return x * RATE\n"], "")
    monkeypatch.setitem(sys.modules, "outside_module", made)
    monkeypatch.setitem(globals(), "outside_module", made)
    fast = jit(f, backend="numpy")
    assert fast(3.0) == f(3.0) == 15.0
    made.RATE = 5.0
    assert fast(3.0) == f(3.0)
    made.TABLE.append(0.5)
    assert fast(3.0) == f(3.0)
    made.scaled = helper
    assert fast(3.0) == f(3.0)


def by_import_statement(x):
    import outside_module

    return x * outside_module.RATE


def by_import_of_part(x):
    import outside_package.part as inner

    return x * inner.RATE


def by_import_of_name(x):
    from outside_module import RATE

    return x * RATE


def by_import_from_package(x):
    from outside_package import part

    return x * part.RATE


def by_import_from_part(x):
    from outside_package.part import RATE

    return x * RATE


def by_item(x):
    return x * sys.modules["outside_module"].RATE


def by_get(x):
    return x * sys.modules.get("outside_module").RATE


def by_function(x):
    return x * importlib.import_module("outside_module").RATE


def by_what_is_there(x):
    return x * (7.0 if "outside_other" in sys.modules else 5.0)


def by_failing(x):
    try:
        import outside_other
    except ImportError:
        return x * 5.0
    return x * outside_other.RATE


def by_import_of_standard_library(x):
    import colorsys

    return x * getattr(colorsys, "RATE", 5.0)


MODULES = ("outside_module", "outside_package", "outside_package.part")
SOMETIMES = ("outside_other", "colorsys")  # put there for one rate alone; one is Python's, too


def put_modules(rate):
    for name in SOMETIMES:
        sys.modules.pop(name, None)
    for name in MODULES + SOMETIMES * (rate == 7.0):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].RATE = rate
    sys.modules["outside_package"].__path__ = []
    sys.modules["outside_package"].part = sys.modules["outside_package.part"]


@pytest.mark.parametrize(
    "f",
    [
        by_import_statement, by_import_of_part, by_import_of_name, by_import_from_package,
        by_import_from_part, by_item, by_get, by_function, by_what_is_there, by_failing,
        by_import_of_standard_library,
    ],
)  # fmt: skip
@pytest.mark.parametrize("way", ["jit", "grad", "jit of grad"])
def test_a_module_may_be_replaced(f, way, monkeypatch):
    for name in (*MODULES, *SOMETIMES):
        monkeypatch.setitem(sys.modules, name, None)
    made = {
        "jit": lambda: jit(f, backend="numpy"),
        "grad": lambda: fwdad.grad(f),
        "jit of grad": lambda: jit(fwdad.grad(f), backend="numpy"),
    }[way]()
    for rate in (5.0, 7.0, 5.0):
        put_modules(rate)
        assert f(1.0) == rate
        assert [made(1.0) for _ in range(3)] == [rate] * 3


def largest(x, y):
    return max(x, y)


def test_a_builtin_may_be_hidden_by_a_global(monkeypatch):
    fast = jit(largest, backend="numpy")
    for _ in range(3):
        assert fast(1.0, 2.0) == 2.0
    monkeypatch.setitem(globals(), "max", min)
    for _ in range(3):
        assert fast(1.0, 2.0) == 1.0
    monkeypatch.delitem(globals(), "max")
    for _ in range(3):
        assert fast(1.0, 2.0) == 2.0


def test_a_cell_may_change():
    k = 2.0

    def f(x):
        return x * k

    g = jit(f)
    assert g(3.0) == 6.0
    k = 4.0
    assert g(3.0) == 12.0
    k = 3
    assert g(3.0) == 9.0
    k = 4
    assert g(3.0) == 12.0
    assert cache_info(g).traces == 2  # of a float, and of an int
    k = np.ones(2)
    np.testing.assert_array_equal(g(3.0), [3.0, 3.0])


def test_a_global_array_may_change(monkeypatch):
    f = jit(lambda x: x * WEIGHTS.sum())
    assert f(2.0) == 6.0
    monkeypatch.setitem(globals(), "WEIGHTS", np.arange(4.0))
    assert f(2.0) == 12.0
    WEIGHTS[0] = 1.0
    assert f(2.0) == 14.0


@pytest.mark.parametrize("container", ["list", "dict", "tuple"])
def test_the_content_of_a_global_container_may_change(container, monkeypatch):
    monkeypatch.setitem(globals(), "TABLE", [1.0, 2.0])
    monkeypatch.setitem(globals(), "CONFIG", {"k": 3.0, "inner": {"v": np.ones(2)}})
    monkeypatch.setitem(globals(), "PAIR", ([1.0], 2.0))
    programs = {
        "list": lambda x: sum(t * x for t in TABLE) + TABLE[0],
        "dict": lambda x: CONFIG["k"] * x + CONFIG["inner"]["v"].sum(),
        "tuple": lambda x: PAIR[0][0] * x + PAIR[1],
    }
    plain = programs[container]
    f = jit(plain)
    assert f(2.0) == plain(2.0)
    TABLE[0] = 10.0
    CONFIG["k"] = 7.0
    PAIR[0][0] = 4.0
    assert f(2.0) == plain(2.0)
    CONFIG["inner"]["v"] = np.zeros(2)
    assert f(2.0) == plain(2.0)
    TABLE.append(5.0)
    CONFIG["k"] = 2
    PAIR[0][0] = np.float64(1.0)
    assert f(2.0) == plain(2.0)
    assert type(f(2.0)) is type(plain(2.0))


def test_a_replaced_function_is_traced_anew(monkeypatch):
    f = jit(lambda x: helper(x) * 2)
    assert f(1.0) == 4.0
    monkeypatch.setitem(globals(), "helper", lambda x: x - 1)
    assert f(1.0) == 0.0
    assert cache_info(f).traces == 2


def test_attributes_of_an_object_outside_may_change():
    model = Model()
    f = jit(lambda x: model(x))
    assert f(1.0) == 9.0
    model.k = 3.0
    assert f(1.0) == 10.0
    model.inner.v = 6.0
    assert f(1.0) == 11.0
    model.inner = types.SimpleNamespace(v=0.0)
    assert f(1.0) == 5.0
    model.coefficients[1] = 0.0
    assert f(1.0) == 3.0


class Hooked:
    def __getattr__(self, name):
        return 2.0

    def twice(self, x):
        return 2.0 * x


class HookedSlots:
    __slots__ = ("k",)

    def __getattr__(self, name):
        return 2.0

    def twice(self, x):
        return 2.0 * x


@pytest.mark.parametrize("cls", [Hooked, HookedSlots])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_an_attribute_that_only_getattr_had_may_be_set(cls, backend):
    model = cls()

    def f(x):
        return model.twice(x * model.k)

    compiled, gradient = jit(f, backend=backend), jit(fwdad.grad(f), backend=backend)

    def check(k):
        for _ in range(3):
            assert compiled(1.5) == f(1.5) == 3.0 * k
            assert gradient(1.5) == fwdad.grad(f)(1.5) == 2.0 * k

    check(2.0)
    model.k = 3.0
    check(3.0)
    del model.k
    check(2.0)


def test_an_attribute_that_only_getattr_had_may_be_given_to_the_class(monkeypatch):
    model = Hooked()
    f = jit(lambda x: x * model.k * Hooked().k)
    assert [f(1.0), f(1.0)] == [4.0, 4.0]
    monkeypatch.setattr(Hooked, "k", 3.0, raising=False)
    assert [f(1.0), f(1.0)] == [9.0, 9.0]


def test_an_object_outside_is_not_changed_in_silence():
    model = Model()

    def f(x):
        model.k = x
        return model(x)

    with pytest.raises(UntraceableError, match="existed before the call"):
        trace(f, 1.0)
    assert model.k == 2.0


def test_the_result_may_be_an_argument_itself():
    def f(s, x):
        s.append(x)
        return s, [s]

    s = [1.0]
    answer, (inner,) = jit(f)(s, 2.0)
    assert answer is s
    assert inner is s
    assert s == [1.0, 2.0]


def test_two_names_of_one_list():
    def f(s, t):
        s[0] = 5.0
        return t[0]

    g = jit(f)
    assert g([1.0], [2.0]) == 2.0
    one = [1.0]
    assert g(one, one) == 5.0
    assert cache_info(g).traces == 2


def test_two_arguments_that_share_memory():
    def f(a, b):
        a[0] = 5.0
        s = b[0] * 1.0
        a[0] = 7.0
        return s + b[0]

    g = jit(f)
    a = np.ones(3)
    assert g(np.ones(3), np.ones(3)) == f(np.ones(3), np.ones(3))
    assert g(a, a) == 12.0
    one, other = np.arange(3.0), np.arange(3.0)
    assert g(one[::-1], one[1:]) == f(other[::-1], other[1:])
    np.testing.assert_array_equal(one, other)
    with pytest.raises(TypeError, match="share memory"):
        trace(f, np.ones(3), np.ones(3))(a, a)


def test_a_list_of_an_object_that_refers_to_itself():
    class Node:
        pass

    node = Node()
    node.x, node.me = 2.0, node

    def f(n):
        n.me.x = n.x * 3
        return n.x

    assert jit(f)(node) == 6.0
    assert node.x == 6.0
    assert node.me is node


def test_objects_keep_what_is_not_changed():
    def f(o, x):
        o.k = x
        return o.label

    o = types.SimpleNamespace(k=1.0, label="a", rows=[1.0])
    rows = o.rows
    assert jit(f)(o, 3.0) == "a"
    assert (o.k, o.label, o.rows is rows) == (3.0, "a", True)


def test_cached_functions_and_jitted_functions_are_traced_through():
    cached = functools.lru_cache(lambda x: x * 2)
    inner = jit(lambda x: x + 1)
    f = jit(lambda x: cached(x) + inner(x))
    assert f(2.0) == 7.0
    assert fwdad.derivative(f, 2.0) == 3.0


def test_static_arguments_are_traced_anew():
    def f(x, kind, n):
        return x * 2 if kind == "double" else np.zeros(n) + x

    g = jit(f)
    assert g(1.0, "double", 3) == 2.0
    np.testing.assert_array_equal(g(1.0, "zeros", 3), np.ones(3))
    assert cache_info(g).traces == 2


@pytest.mark.parametrize(
    ("f", "error"),
    [
        (lambda x: x.nothing, AttributeError),
        (lambda x: (lambda a, b: a)(x), TypeError),
        (lambda x: [x].pop(3), IndexError),
        (lambda x: {"a": x}["b"], KeyError),
        (lambda x: undefined_name + x, NameError),  # noqa: F821
        (lambda x: x + "a", TypeError),
        (lambda x: len(x), TypeError),
    ],
)
def test_a_program_that_always_raises(f, error):
    with pytest.raises(error):
        f(1.0)
    with pytest.raises((error, UntraceableError)):
        jit(f)(1.0)


MATRIX = np.eye(2)
SAME = MATRIX
HOLDS = {"matrix": MATRIX}


class HoldsTwice:
    """An array under two names."""

    def __init__(self):
        self.first = self.second = np.ones(2)


TWICE = HoldsTwice()


def of_two_names(x):
    return np.sum(MATRIX @ x) + 10.0 * np.sum(SAME @ x)


def of_a_container(x):
    return np.sum(MATRIX @ x) + 10.0 * np.sum(HOLDS["matrix"] @ x)


def of_attributes(x):
    return np.sum(TWICE.first * x) + 10.0 * np.sum(TWICE.second * x)


@pytest.mark.parametrize("f", [of_two_names, of_a_container, of_attributes])
def test_one_array_under_two_names_may_become_two(f, monkeypatch):
    gradient, jitted, x = fwdad.grad(f), fwdad.jit(f, backend="numpy"), np.array([1.0, 2.0])

    def check():
        for _ in range(3):
            assert jitted(x) == f(x)
            np.testing.assert_allclose(gradient(x), fwdad.jacobian(f, x, mode="forward"))

    check()
    monkeypatch.setitem(globals(), "SAME", np.full((2, 2), 3.0))
    monkeypatch.setitem(HOLDS, "matrix", np.full((2, 2), 4.0))
    monkeypatch.setattr(TWICE, "second", np.array([5.0, 6.0]))
    check()
    monkeypatch.setitem(globals(), "MATRIX", np.full((2, 2), 7.0))
    monkeypatch.setattr(TWICE, "first", np.array([8.0, 9.0]))
    check()
    both = np.full((2, 2), 2.0)  # one array again
    monkeypatch.setitem(globals(), "SAME", both)
    monkeypatch.setitem(globals(), "MATRIX", both)
    monkeypatch.setitem(HOLDS, "matrix", both)
    monkeypatch.setattr(TWICE, "first", TWICE.second)
    check()
    traces = fwdad.cache_info(jitted).traces
    both[0, 0] = -1.0
    TWICE.second[:] = 0.5
    check()
    assert fwdad.cache_info(jitted).traces == traces <= 3


def scaled(x, by=TABLE, *, named=CONFIG):
    return x * by[0] + named["inner"]["v"][0] * x


def through_default(x):
    return scaled(x)


@pytest.mark.parametrize(
    "f",
    [
        scaled,
        through_default,
        functools.partial(lambda by, x, named: x * by[0] + named["inner"]["v"][0] * x, TABLE,
                          named=CONFIG),
        functools.partial(lambda pair, x: x * pair[0][0] + pair[1]["inner"]["v"][0] * x,
                          (TABLE, CONFIG)),
    ],
)  # fmt: skip
def test_lists_and_dicts_that_are_bound_may_change(f, monkeypatch):
    """By defaults and partial functions; they were constants once traced."""
    fast = jit(f, backend="numpy")
    gradient = fwdad.grad(f)
    for first, v in ((1.0, 1.0), (5.0, 1.0), (5.0, 7.0)):
        TABLE[0] = first
        monkeypatch.setitem(CONFIG["inner"], "v", np.full(2, v))
        assert fast(2.0) == 2.0 * (first + v)
        assert gradient(2.0) == first + v
        assert fwdad.vjp(f, 2.0)[1](1.0) == first + v
    TABLE[0] = 1.0
    assert cache_info(fast).traces == 1

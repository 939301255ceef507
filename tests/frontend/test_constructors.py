"""Objects of an installed package's classes, made in f: their constructors run at each call."""

import calendar
import contextlib
import dataclasses
import io
import pprint
import typing

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from tests.frontend.packages_of_text import package_of

SOURCE = """\
OPT = {"k": 2.0}
SINK = []

class Reads:
    scale = 1.0
    def __init__(self):
        self.k = OPT["k"] * self.scale

class Calls:
    def __init__(self, f):
        self.k = f(1.0)

class Made:
    def __new__(cls):
        made = object.__new__(cls)
        made.k = OPT["k"]
        return made

class Slotted:
    __slots__ = ("k",)
    def __init__(self):
        self.k = OPT["k"]

class Several:
    def __init__(self):
        self.parts = [Reads(), Made(), np.array([OPT["k"], 3.0])]
    @property
    def k(self):
        return self.parts[0].k * self.parts[1].k + self.parts[2][0]

class Pair(tuple):
    def __new__(cls):
        return tuple.__new__(cls, (OPT["k"], 1.0))
    @property
    def k(self):
        return self[0]

class Listed(list):
    def __init__(self):
        self.append(OPT["k"])
    @property
    def k(self):
        return self[0]

class Raised(ValueError):
    def __init__(self):
        super().__init__("raised")
        self.k = OPT["k"]

class RaisedNew(ValueError):
    def __new__(cls):
        made = super().__new__(cls, "raised")
        made.k = OPT["k"]
        return made

exec("class Unread:\\n    def __init__(self):\\n        self.k = OPT['k']")
exec("class UnreadNew:\\n    def __new__(cls):\\n        made = object.__new__(cls)\\n"
     "        made.k = OPT['k']\\n        return made")
exec("class RaisedUnread(ValueError):\\n    def __init__(self):\\n        self.k = OPT['k']")

class Says:
    def __init__(self):
        self.k = 2.0
        print("made")

class Draws:
    def __init__(self):
        self.k = np.random.rand()

class Counts:
    n = 0
    def __init__(self):
        Counts.n += 1
        self.k = float(Counts.n)

class Sinks:
    def __init__(self):
        SINK.append(1.0)
        self.k = 1.0 + len(SINK)
"""
FACTOR = 2.0


@pytest.fixture
def package(monkeypatch):
    return package_of(SOURCE, "constructs", monkeypatch)


def times_factor(v):
    return v * FACTOR


def user_of(package, name):
    """A function that makes an object of a class, or of a class that inherits from it."""
    if name.startswith("Inherits"):
        own = {"__init__": lambda self: package.Reads.__init__(self)}
        cls = type(name, (package.Reads,), own if name == "InheritsInit" else {})
    else:
        cls = getattr(package, name)
    if name == "Calls":
        return lambda x: cls(times_factor).k * x
    if issubclass(cls, Exception):
        return lambda x: caught(cls) * x
    return lambda x: cls().k * x


def caught(cls):
    try:
        raise cls
    except ValueError as error:
        return error.k


def change(package, monkeypatch, k):
    monkeypatch.setitem(package.OPT, "k", k)
    monkeypatch.setitem(globals(), "FACTOR", k)


NAMES = ["Reads", "Calls", "Made", "Slotted", "Several", "Pair", "Listed", "Raised",
           "RaisedNew", "Unread", "UnreadNew", "RaisedUnread", "Inherits", "InheritsInit"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_what_a_constructor_reads_is_read_at_each_call(package, monkeypatch, name):
    f = user_of(package, name)
    fast, gradient = fwdad.jit(f, backend="numpy"), fwdad.grad(f)
    rows = [
        fwdad.jit(fwdad.jacfwd(lambda x: f(x) * x, chunk=n), backend="numpy") for n in (1, 2, 3)
    ]
    x = np.array([1.0, 2.0, 3.0])
    for k in (2.0, 5.0, 2.0, 7.0):
        change(package, monkeypatch, k)
        assert_allclose(fast(1.5), f(1.5), rtol=1e-15)
        assert_allclose(gradient(1.5), f(1.0), rtol=1e-15)
        for jacobian in rows:
            assert_allclose(jacobian(x), np.diag(2 * f(x)), rtol=1e-15)


@pytest.mark.parametrize("name", ["Reads", "Calls", "Inherits", "Raised"])
def test_in_compiled_code(package, monkeypatch, name):
    f = user_of(package, name)
    fast = fwdad.jit(f)
    for k in (2.0, 5.0):
        change(package, monkeypatch, k)
        assert_allclose(fast(1.5), f(1.5), rtol=1e-15)


@pytest.mark.parametrize("transform", [lambda f: fwdad.jit(f, backend="numpy"), fwdad.grad])
def test_what_a_constructor_puts_out_is_put_out_at_each_call(package, capsys, transform):
    fast = transform(user_of(package, "Says"))
    for x in (1.0, 2.0, 3.0):
        fast(x)
        assert capsys.readouterr().out == "made\n"


@pytest.mark.parametrize(("name", "why"), [
    ("Draws", "random numbers"), ("Counts", "attributes of a type"), ("Sinks", "a list"),
])  # fmt: skip
def test_constructors_with_other_effects_are_refused(package, name, why):
    f = user_of(package, name)
    with pytest.raises(UntraceableError, match=why):
        fwdad.jit(f, backend="numpy")(1.0)
    assert (package.Counts.n, package.SINK) == (0, [])
    if name == "Counts":
        assert [fwdad.grad(f)(1.0) for _ in range(3)] == [1.0, 2.0, 3.0]


def test_a_constructor_of_the_users_without_source_is_refused():
    made = {"OPT": {"k": 2.0}}
    exec("class Unread:\n    def __init__(self):\n        self.k = OPT['k']", made)
    cls = made["Unread"]

    def f(x):
        return cls().k * x

    with pytest.raises(UntraceableError, match="no source"):
        fwdad.jit(f, backend="numpy")(1.0)
    assert fwdad.grad(f)(1.0) == 2.0
    made["OPT"]["k"] = 5.0
    assert fwdad.grad(f)(1.0) == 5.0


class Sized(typing.Protocol):
    def size(self): ...


class Box(Sized):
    def size(self):
        return FACTOR


class SetBox(Sized):
    def __init__(self, size):
        self.a = size

    def size(self):
        return self.a


def test_classes_of_protocols(monkeypatch):
    def f(x):
        return Box().size() * SetBox(x).size()

    fast = fwdad.jit(f, backend="numpy")
    for k in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", k)
        assert fast(3.0) == 3.0 * k
        assert fwdad.grad(f)(3.0) == k


def test_pprint_goes_where_print_goes():
    def f(x):
        pprint.pprint({"a": [1, 2]})  # noqa: T203
        pprint.pp({"x": x})
        return x

    for fast in (fwdad.jit(f, backend="numpy"), fwdad.jit(f), fwdad.grad(f), fwdad.trace(f, 1.0)):
        for x in (1.0, 2.0):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                fast(x)
            assert out.getvalue() == f"{{'a': [1, 2]}}\n{{'x': {x}}}\n"


def test_what_a_function_of_pythons_library_prints():
    def f(x):
        calendar.prmonth(2024, 2)
        return x

    for fast in (fwdad.jit(f, backend="numpy"), fwdad.grad(f)):
        for _ in range(3):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                fast(1.0)
            assert "February 2024" in out.getvalue()


@dataclasses.dataclass
class ToldError(ValueError):
    x: float
    k: float = dataclasses.field(default_factory=lambda: FACTOR)


class ToldNewError(ValueError):
    def __new__(cls, x):
        made = super().__new__(cls, x)
        made.k = FACTOR
        return made

    def __init__(self, x):
        super().__init__(x)
        self.x = x


@pytest.mark.parametrize("cls", [ToldError, ToldNewError])
def test_exceptions_of_the_users(monkeypatch, cls):
    def f(x):
        try:
            raise cls(x)
        except ValueError as error:
            return error.x * error.k

    fast, gradient = fwdad.jit(f, backend="numpy"), fwdad.grad(f)
    for k in (2.0, 5.0):
        monkeypatch.setitem(globals(), "FACTOR", k)
        assert (fast(3.0), gradient(3.0)) == (3.0 * k, k)

"""Calls of packages whose arguments are known: made when traced, and compared at each run."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences
from tests.frontend.packages_of_text import package_of

X = np.array([0.7, 1.3, 2.1])
SOURCE = """\
SCALES = {"a": 2.0, "b": 3.0}
ARRAY = np.array([1.0, 2.0, 3.0])
SEEN = []
CACHE = {}
FACTOR, READY = 2.0, False

class Options:
    def __init__(self, scale):
        self.scale = scale

def scale(name):
    id(name)
    return SCALES[name]

def several(names):
    id(names)
    return [SCALES[n] for n in names], ARRAY.copy()

def table():
    id(0)
    return ARRAY

def scales():
    id(0)
    return SCALES

def total():
    id(0)
    return float(ARRAY.sum())

def both():
    id(0)
    a = np.ones(3)
    return a, a[:2]

def looked_up(name):
    id(name)
    if name not in CACHE:
        CACHE[name] = SCALES[name]
    return CACHE[name]

def configure():
    global FACTOR, READY
    id(0)
    if not READY:
        FACTOR, READY = 3.0, True

class Unit:
    __slots__ = ("name", "power", "size")
    def __init__(self, name, power):
        self.name = name
        self.power = power
    def __mul__(self, other):
        return Unit(self.name, self.power + other.power)

def size_of(unit):
    id(unit)
    return SCALES[unit.name] ** unit.power

POWER = 2
POWERS = {2: "b", 3: "a"}

def scaled(p):
    return p**POWER * SCALES[POWERS[POWER]]

def sized(p):
    unit = Unit("b", 1)
    keep_size(unit)
    return p * unit.size

def keep_size(unit):
    id(unit)
    unit.size = SCALES[unit.name]

def listed(p):
    unit = Unit("b", 1)
    keep_sizes(unit)
    return p * unit.size[0]

def keep_sizes(unit):
    id(unit)
    if not hasattr(unit, "size"):
        unit.size = [SCALES[unit.name]]

def same(unit):
    id(unit)
    return unit

def to_base(x, name):
    unit = Unit(name, 1) * Unit(name, 1)
    scales = [size_of(u) for u in (unit, Unit("a", 1))]
    return x * scales[0] / scales[1]

def bound(p):
    size = Unit("a", p)
    return size_of(size)

class Counts(dict):
    def __missing__(self, key):
        return 0.0

COUNTS = Counts(a=2.0)

def counted(name):
    id(name)
    return COUNTS["nothing"] + SCALES[name]

def text_of(options):
    id(0)
    return f"{options.scale}"

def options(name):
    id(name)
    return Options(SCALES[name])

def noted(name):
    id(name)
    SEEN.append(name)
    return SCALES[name]

def drawn():
    id(0)
    return float(np.random.random())

def opened(name):
    id(name)
    return iter(SCALES)
"""


@pytest.fixture
def package(monkeypatch):
    return package_of(SOURCE, "asks_outside", monkeypatch)


def number(package):
    return lambda p: p**2 * package.scale("a")


def list_and_array(package):
    def f(p):
        scales, array = package.several(["a", "b"])
        array[0] = p[0] ** 2
        scales.append(p[1])
        return p * array * scales[0] + scales[1] * scales[2]

    return f


def an_object(package):
    def f(p):
        options = package.options("b")
        options.scale = options.scale * p[0]
        return options.scale * p

    return f


def an_exception(package):
    def f(p):
        try:
            return package.scale("c") * p
        except KeyError:
            return p**3

    return f


def kept_by_the_package(package):
    return lambda p: p**2 * package.table() * package.scales()["a"]


def kept_in_an_object_with_slots(package):
    return lambda p: package.sized(p**2)


def a_list_in_an_object_with_slots(package):
    return lambda p: package.listed(p**2)


def read_from_what_may_be_written(package):
    return lambda p: p**2 * package.counted("a")


def inside_of_the_package(package):
    return lambda p: package.to_base(p**2, "b")


def in_an_object_with_slots(package):
    return lambda p: p * package.bound(p[0])


PROGRAMS = [
    kept_in_an_object_with_slots,
    a_list_in_an_object_with_slots,
    read_from_what_may_be_written,
    inside_of_the_package,
    in_an_object_with_slots,
    number,
    list_and_array,
    an_object,
    an_exception,
    kept_by_the_package,
]


@pytest.mark.every(5)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_derivatives(package, program):
    f = program(package)
    fast, rows = fwdad.jit(f), fwdad.jit(fwdad.jacrev(f))
    columns = [fwdad.jit(fwdad.jacfwd(f, chunk=n)) for n in (1, 2, 3)]
    for x in (X, X * 0.6, X):
        assert_allclose(fast(x), f(x), rtol=1e-14)
        for jacobian in (*columns, rows):
            assert_allclose(jacobian(x), central_differences(f, x), rtol=1e-6, atol=1e-8)
    assert fwdad.cache_info(fast).traces <= 2


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_it_reads_may_change(package, program):
    f = program(package)
    fast, slope = fwdad.jit(f), fwdad.jit(fwdad.jacfwd(f))
    before = fast(X), slope(X)
    package.SCALES.update(a=5.0, b=7.0, c=11.0)
    for _ in range(2):
        assert_allclose(fast(X), f(X), rtol=1e-14)
        assert_allclose(slope(X), central_differences(f, X), rtol=1e-6, atol=1e-8)
    assert not np.allclose(fast(X), before[0])
    package.SCALES.update(a=2.0, b=3.0)
    del package.SCALES["c"]
    for found, wanted in zip((fast(X), slope(X)), before, strict=True):
        assert_array_equal(found, wanted)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_tape_by_itself_is_refused(package, program):
    """It cannot follow an example, and has no other way to take."""
    with pytest.raises(UntraceableError):
        fwdad.trace(program(package), X)


@pytest.mark.parametrize(("name", "args"), [("noted", ("a",)), ("drawn", ()), ("opened", ("a",))])
def test_what_is_refused(package, name, args):
    """What writes, draws, or returns something that cannot be compared."""

    def f(p):
        found = getattr(package, name)(*args)
        return p * (found if isinstance(found, float) else len(list(found)))

    state = np.random.get_state()[2]
    with pytest.raises(UntraceableError) as caught:
        fwdad.jit(f)(X)
    assert any("either" in note for note in caught.value.__notes__)
    assert package.SEEN == []
    assert np.random.get_state()[2] == state


def written_and_read(package):
    def f(p):
        package.table()[0] = p[0]
        return p * package.total()

    return f


def views(package):
    def f(p):
        a, b = package.both()
        a[0] = p[0]
        return p[:2] * b

    return f


def of_what_is_unknown(package):
    def f(p):
        options = package.options("a")
        options.scale = [p[0]]
        return p * float(package.text_of(options)[1:-1])

    return f


def given_and_returned(package):
    def f(p):
        unit = package.Unit("a", 2)
        same = package.same(unit)
        unit.power = p[0]
        return p * same.power

    return f


def changed_afterwards(package):
    def f(p):
        options = package.options("a")
        y = p * float(package.text_of(options))
        options.scale = 5.0
        return y * options.scale

    return f


@pytest.mark.parametrize(
    "program",
    [
        written_and_read,
        views,
        of_what_is_unknown,
        given_and_returned,
        changed_afterwards,
    ],
)
def test_what_would_be_read_too_early(package, program):
    """What the program writes before such a call, or after it, is not what it would read."""
    f = program(package)
    for derivative in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        with pytest.raises(UntraceableError):
            fwdad.jit(derivative)(X)
    assert_array_equal(package.ARRAY, [1.0, 2.0, 3.0])


def test_what_is_looked_up_once(package):
    """What only the first of all calls writes is a cache's."""
    fast = fwdad.jit(fwdad.jacrev(lambda p: p**2 * package.looked_up("b")))
    for x in (X, X * 0.6):
        assert_allclose(fast(x), np.diag(6.0 * x), rtol=1e-14)
    assert package.CACHE == {"b": 3.0}


def test_what_is_read_before_it_is_written_once(package):
    def f(p):
        y = p * package.FACTOR
        package.configure()
        return y * package.FACTOR

    with pytest.raises(UntraceableError, match="it writes what the program has read before"):
        fwdad.jit(fwdad.jacfwd(f))(X)


def test_whole_numbers_of_a_package(package, monkeypatch):
    """They are keys and exponents: another one gives another tape."""
    f = package.scaled
    fast, rows = fwdad.jit(lambda p: f(p)), fwdad.jit(fwdad.jacrev(lambda p: f(p)))
    for power in (2, 3, 2):
        monkeypatch.setattr(package, "POWER", power)
        assert_allclose(fast(X), f(X), rtol=1e-14)
        assert_allclose(rows(X), central_differences(f, X), rtol=1e-6, atol=1e-8)
    assert fwdad.cache_info(fast).traces == 2

"""What a library's object holds that is made in a traced program: it is the program's own."""

import dataclasses

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences
from tests.frontend.packages_of_text import package_of

X = np.array([0.7, 1.3, 2.1])
SOURCE = """\
from collections import defaultdict
SHARED = {"n": 0}
TABLE = np.array([1.0, 2.0])

class Inner:
    def __init__(self):
        self.total = 0.0

class Graph:
    def __init__(self):
        self.edges = {}
        self.nested = {"inner": [Inner(), {}]}
        self.itself = self
        self.shared = SHARED
        self.tables = [TABLE, np.ones(2), TABLE[::-1]]
        self.weights = np.array([1.0, 2.0])
        self.by_name = defaultdict(list)

    def add(self, a, b, w):
        if a not in self.edges:
            self.edges[a] = {}
        self.edges[a][b] = w
        inner, seen = self.nested["inner"]
        inner.total = inner.total + w
        seen[b] = w * inner.total
        self.by_name[a].append(w)

    def close(self):
        self.by_name.default_factory = None
        try:
            return self.by_name["nothing"]
        except KeyError:
            return 1.0

    def count(self):
        self.shared["n"] += 1

Plain = Graph
exec("class Unread(Graph):\\n    def __init__(self):\\n        Plain.__init__(self)")
"""


@pytest.fixture
def traced(monkeypatch):
    """A package, whose constructors are traced."""
    return package_of(SOURCE, "holds_much", monkeypatch)


@pytest.fixture
def package(traced):
    """One whose objects Python makes: their constructor has no source."""
    traced.Graph = traced.Unread
    return traced


@pytest.fixture(params=["traced", "package"])
def either(request):
    """Each of the two."""
    return request.getfixturevalue(request.param)


PAIRS = [(0, 1), (1, 2), (0, 2)]


def test_filled_with_values(either):
    def f(p):
        g = either.Graph()
        for (a, b), w in zip(PAIRS, p, strict=True):
            g.add(a, b, w)
        inner, seen = g.itself.nested["inner"]
        g.weights *= p[0]
        return np.array([g.edges[0][2] * inner.total, seen[2], g.weights.sum() * g.close(),
                         g.by_name[0][1] * g.by_name[1][0]])  # fmt: skip

    fast, rows = fwdad.jit(f), fwdad.jit(fwdad.jacrev(f))
    columns = [fwdad.jit(fwdad.jacfwd(f, chunk=n)) for n in (1, 2, 3)]
    for x in (X, X * 0.6, X):
        assert_allclose(fast(x), f(x), rtol=1e-14)
        for jacobian in (*columns, rows):
            assert_allclose(jacobian(x), central_differences(f, x), rtol=1e-6, atol=1e-8)


def test_keys_from_outside_are_assumed(either, monkeypatch):
    def f(p):
        g = either.Graph()
        for (a, b), w in zip(PAIRS, p, strict=True):
            g.add(a, b, w)
        return g.edges[0][2] * (3.0 if 1 in g.edges else 5.0) * p[0]

    fast = fwdad.jit(f)
    assert_allclose(fast(X), 3.0 * X[2] * X[0], rtol=1e-14)
    monkeypatch.setitem(globals(), "PAIRS", [(0, 1), (3, 2), (0, 2)])
    assert_allclose(fast(X), 5.0 * X[2] * X[0], rtol=1e-14)


def test_on_one_side_of_a_branch(either):
    def f(p):
        g = either.Graph()
        g.add(0, 1, p[0])
        if p[1] > 1.0:
            g.nested["inner"][0].total = p[1] ** 2
        return g.nested["inner"][0].total * p

    for x in (X, X * 0.5):
        assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)
        found = fwdad.jit(fwdad.jacfwd(f))(x)
        assert_allclose(found, central_differences(f, x), rtol=1e-6, atol=1e-8)


def test_what_others_hold_too_is_not_changed(either):
    def f(p):
        g = either.Graph()
        g.count()
        return p * g.shared["n"]

    with pytest.raises(UntraceableError, match=r"existed before the call|has no source"):
        fwdad.trace(f, X)
    assert either.SHARED == {"n": 0}


@pytest.mark.parametrize("k", [0, 2])
def test_arrays_that_others_hold_are_not_written(package, k):
    def f(p):
        table = package.Graph().tables[k]
        table[0] = p[0]
        return table * p[:2]

    with pytest.raises(UntraceableError, match="made before the program runs"):
        fwdad.jit(f)(X)
    assert_array_equal(package.TABLE, [1.0, 2.0])


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("read", [0, 2])
def test_arrays_that_others_hold_are_written_where_they_are_known(traced, at, read):
    def f(p):
        g = traced.Graph()
        g.tables[at][0] = p[0]
        return g.tables[read] * p[:2]

    fast = fwdad.jit(f)
    for x in (X, X * 0.6):
        traced.TABLE[:] = 1.0, 2.0
        expected, left = f(x), traced.TABLE.copy()
        traced.TABLE[:] = 1.0, 2.0
        assert_array_equal(fast(x), expected)
        assert_array_equal(traced.TABLE, left)
    traced.TABLE[:] = 1.0, 2.0
    expected = central_differences(f, X)
    traced.TABLE[:] = 1.0, 2.0
    jacobian = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    if at == read == 0:
        with pytest.raises(UntraceableError, match="stores derivatives in it"):
            jacobian(X)
    else:
        assert_allclose(jacobian(X), expected, rtol=1e-6, atol=1e-8)


def test_arrays_that_nobody_else_holds_are_written(either):
    def f(p):
        tables = either.Graph().tables
        tables[1][0] = p[0] ** 2
        return tables[1] * p[:2] * tables[0]

    for derivative in (fwdad.jacfwd, fwdad.jacrev):
        fast = fwdad.jit(derivative(f))
        for x in (X, X * 0.6):
            assert_allclose(fast(x), central_differences(f, x), rtol=1e-6, atol=1e-8)


def test_views_of_what_nobody_else_holds(package):
    """A copy of each would no longer be a view of the other."""

    def f(p):
        g = package.Graph()
        g.tables[0][0] = p[0]
        return g.tables[2] * p[:2]

    with pytest.raises(UntraceableError):
        fwdad.jit(fwdad.jacfwd(f))(X)


@dataclasses.dataclass
class Ellipse:
    a: float
    b: float = 2.0
    tags: list = dataclasses.field(default_factory=list)


class Circle(Ellipse):
    def __init__(self, radius):
        super().__init__(radius, radius)


@dataclasses.dataclass
class Measured(Ellipse):
    area: float = 0.0

    def __post_init__(self):
        self.area = self.a * self.b


class Doubled(Measured):
    def __init__(self, a):
        Measured.__init__(self, a=a)
        self.double = 2 * self.area

    def __post_init__(self):
        super().__post_init__()
        self.area = self.area + self.a


@dataclasses.dataclass(frozen=True)
class Frozen:
    a: float


class Given(Frozen):
    def __init__(self, a):
        super().__init__(a=a * 2)


@pytest.mark.parametrize("f", [
    lambda r: 3.0 * Circle(r).a * Circle(r).b,
    lambda r: Doubled(r).double * Doubled(r).a + len(Doubled(r).tags),
    lambda r: Given(r).a ** 2,
])  # fmt: skip
def test_generated_constructors_that_are_called_by_others(f):
    """``super().__init__(…)`` of a dataclass, whose source is made by ``exec``."""
    for g in (fwdad.value_and_grad(f), fwdad.jit(fwdad.value_and_grad(f), backend="numpy")):
        for r in (2.0, 0.7):
            value, slope = g(r)
            assert value == f(r)
            assert np.isclose(slope, (f(r + 1e-6) - f(r - 1e-6)) / 2e-6, rtol=1e-8)

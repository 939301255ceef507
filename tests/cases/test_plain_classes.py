"""Derivatives with respect to instances of plain classes, in every mode."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad import NoTangent
from fwdad.errors import SeedError, UnsupportedTypeError
from tests.cases.plain_classes import CASES, GRID, NUMBERS, Marked, Mutable, Node, Pair, Rod
from tests.differences import central_differences, difference_along


def case(name):
    make, numbers, f, count = CASES[name]
    v = NUMBERS[:count]
    expected = central_differences(lambda v: f(make(v)), v)
    return make(v), numbers, f, expected


def check(numbers, found, expected):
    assert_allclose([float(t) for t in numbers(found)], expected, rtol=1e-7, atol=1e-8)


GRADIENTS = {
    "grad": lambda f, x: fwdad.grad(f)(x),
    "recorded gradient": lambda f, x: fwdad.grad(untraced(f))(x),
    "vjp": lambda f, x: fwdad.vjp(f, x)[1](1.0),
    "columns": lambda f, x: fwdad.jacobian(f, x, mode="forward"),
    "one column at a time": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=1),
    "two columns": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=2),
    "three columns": lambda f, x: fwdad.jacobian(f, x, mode="forward", chunk=3),
    "rows": lambda f, x: fwdad.jacobian(f, x, mode="reverse"),
    "compiled gradient": lambda f, x: fwdad.jit(fwdad.grad(f), backend="numpy")(x),
    "compiled columns": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "compiled pullback": lambda f, x: fwdad.jit(lambda x: fwdad.vjp(f, x)[1](1.0), backend="numpy")(
        x
    ),
    "gradient inside": lambda f, x: fwdad.jvp(lambda t: scaled(f, x, t), 1.0, 1.0)[1],
}


def untraced(f):
    def g(x):
        class Untraced:
            pass

        return f(x)

    return g


def scaled(f, x, t):
    """A gradient that is differentiated with respect to a factor: the gradient itself."""
    return fwdad.grad(lambda x: t * f(x))(x)


@pytest.mark.parametrize("way", GRADIENTS)
@pytest.mark.parametrize("name", CASES)
def test_gradient(name, way):
    x, numbers, f, expected = case(name)
    kept = as_text(x)
    found = GRADIENTS[way](f, x)
    assert type(found) is type(x)
    check(numbers, found, expected)
    assert as_text(x) == kept  # nothing of the caller's has changed


def as_text(x, seen=()):
    """All that an object holds, as a text."""
    if id(x) in seen:
        return "again"
    if isinstance(x, dict):
        return {key: as_text(value, (*seen, id(x))) for key, value in x.items()}
    if isinstance(x, (list, tuple)):
        return [as_text(value, (*seen, id(x))) for value in x]
    held = {name: getattr(x, name) for name in getattr(type(x), "__slots__", ()) if name[:2] != "__"
            and hasattr(x, name)}  # fmt: skip
    held.update(getattr(x, "__dict__", {}))
    return as_text(held, (*seen, id(x))) if held and not callable(x) else repr(x)


@pytest.mark.parametrize("name", CASES)
def test_along_itself(name):
    """``jvp`` along the object: a directional derivative, in memory of its own."""
    make, _, f, count = CASES[name]
    v = NUMBERS[:count]
    if name in ("invariants", "slots"):  # the numbers are not those of the constructor
        pytest.skip("the direction is not that of the numbers")
    x = make(v)
    expected = difference_along(lambda v: f(make(v)), v, v)
    for call in (fwdad.jvp, fwdad.jit(fwdad.jvp, backend="numpy")):
        y, y_dot = call(f, x, x)
        assert_allclose(y, f(make(v)), rtol=1e-12)
        assert_allclose(y_dot, expected, rtol=1e-7)


@pytest.mark.parametrize("name", ["numbers and an array", "getattr", "shared objects"])
def test_second_derivatives(name):
    make, numbers, f, count = CASES[name]
    v = NUMBERS[:count]
    x = make(v)
    expected = central_differences(lambda v: np.array(numbers(fwdad.grad(f)(make(v)))), v) @ v
    check(numbers, fwdad.hvp(f, x, x), expected)
    check(numbers, fwdad.jit(lambda x, p: fwdad.hvp(f, x, p), backend="numpy")(x, x), expected)
    rows = fwdad.hessian(f, x)
    first = rows["left"].length if name == "shared objects" else next(iter(fields(rows)))
    assert_allclose(np.array(numbers(first)) @ v, expected[0], rtol=1e-6)


def fields(o):
    held = o.__dict__.get("_values", o.__dict__)
    return held.values()


def test_linearize():
    x, numbers, f, expected = case("numbers and an array")
    y, J = fwdad.linearize(f, x)
    assert_allclose(y, f(x))
    assert_allclose(J.rmatvec(np.ones(1)), expected, rtol=1e-7)
    assert_allclose(J.matvec(np.array(numbers(x))), expected @ numbers(x), rtol=1e-7)


# -- what the tangent is


def test_fields_without_a_tangent_space():
    rod = Rod(2.0, np.ones(2))
    for slope in (fwdad.grad(Rod.bend)(rod), fwdad.jit(fwdad.grad(Rod.bend))(rod)):
        assert type(slope) is Rod
        for name in ("name", "count", "profile", "nothing"):
            assert getattr(slope, name) is NoTangent
        assert slope.factor == 2.0  # an attribute of the class
    assert rod.name == "rod"


def test_of_constant_fields():
    x, _, f, _ = case("constant fields")
    for way in GRADIENTS.values():
        slope = way(f, x)
        assert slope.grid is NoTangent
        assert slope.table is NoTangent
    assert x.table == {"k": 3.0}
    np.testing.assert_array_equal(x.grid, GRID)


def test_constant_fields_are_passed_as_they_are():
    x = Marked(np.ones(2), GRID.copy(), {"k": 3.0})
    seen = []

    def f(x):
        seen.append(x.table)
        return np.sum(x.a)

    fwdad.jvp(f, x, x)
    assert seen[0] is x.table


@pytest.mark.parametrize("jit", [False, True])
def test_a_result(jit):
    """An object that f makes, or gets and changes, has a tangent of its class."""

    def f(t):
        made = Rod(t**2, np.array([t, 3.0 * t]), name="made")
        made.length = made.length * t
        return {"rod": made, "count": 3}

    push = lambda t: fwdad.jvp(f, t, 2.0)  # noqa: E731
    y, y_dot = (fwdad.jit(push, backend="numpy") if jit else push)(1.5)
    assert type(y["rod"]) is type(y_dot["rod"]) is Rod
    assert (y["rod"].name, y_dot["rod"].name) == ("made", NoTangent)
    assert_allclose(y["rod"].length, 1.5**3)
    assert_allclose(y_dot["rod"].length, 2.0 * 3.0 * 1.5**2)
    assert_allclose(y_dot["rod"].places, [2.0, 6.0])
    assert y_dot["count"] is NoTangent
    _, pullback = fwdad.vjp(f, 1.5)
    assert_allclose(pullback(y), 1.5**3 * 3.0 * 1.5**2 + 1.5 + 9.0 * 1.5)


def test_a_changed_argument_that_is_returned():
    def f(m):
        m.step()
        return m

    m = Mutable(2.0, np.array([3.0, 5.0]))
    y, y_dot = fwdad.jvp(f, m, m)
    assert (y.value, y.steps, y_dot.steps) == (11.0, 1, NoTangent)
    assert_allclose(y.work, [3.0, 55.0])
    value_dot = 2.0 * 3.0 + 2.0 * 3.0 + 5.0
    assert_allclose(y_dot.value, value_dot)
    assert_allclose(y_dot.work, [3.0, 5.0 * 11.0 + 5.0 * value_dot])
    assert (m.value, m.steps) == (2.0, 0)
    np.testing.assert_array_equal(m.work, [3.0, 5.0])


def test_a_captured_object():
    rod = Rod(2.0, np.array([0.5, 1.0]))
    expected = difference_along(lambda t: Rod(2.0 * t, rod.places).bend(), 1.0)

    def f(t):
        return Rod(rod.length * t, rod.places).bend()

    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy"), fwdad.jacfwd(f)):
        assert_allclose(g(1.0), expected, rtol=1e-8)
    assert rod.length == 2.0


def test_a_callable_object():
    x, numbers, _, _ = case("slots of a base")
    slope = fwdad.grad(lambda net, x: np.sum(net(x) ** 2))(x, GRID)
    expected = central_differences(
        lambda w: np.sum((2.0 * w[0] * w[0] ** 2 * w[1:] + GRID) ** 2), np.array(numbers(x))
    )
    check(numbers, slope, expected)


def test_an_object_that_is_given_twice_has_one_derivative():
    node = Node(3.0)
    for way in GRADIENTS.values():
        slope = way(lambda x: x[0].value * x[1].value, [node, node])
        assert slope[0].value == slope[1].value == 6.0


@pytest.mark.parametrize("way", GRADIENTS)
def test_an_array_that_is_given_twice_has_one_derivative(way):
    a = np.array([3.0, 2.0])
    slope = GRADIENTS[way](lambda x: np.sum(x["a"] * x["b"][0]), {"a": a, "b": [a]})
    assert_allclose(slope["a"], 2.0 * a)
    assert_allclose(slope["b"][0], 2.0 * a)


@pytest.mark.parametrize("way", GRADIENTS)
def test_a_cycle(way):
    node = Node(3.0)
    node.parent = node
    slope = GRADIENTS[way](lambda n: n.value * n.parent.value * n.parent.parent.value, node)
    assert slope.value == 27.0
    assert slope.parent is slope


# -- seeds


def test_seeds_are_matched_by_name():
    rod, v = Rod(2.0, np.ones(2)), Rod(3.0, np.zeros(2))
    del v.nothing, v.count  # without a tangent space: they may be missing
    places = v.__dict__.pop("places")
    v.__dict__ = {"places": places, **v.__dict__}
    f = lambda rod: rod.length**2 * np.sum(rod.places)  # noqa: E731
    assert fwdad.jvp(f, rod, v)[1] == 24.0
    assert fwdad.jit(fwdad.jvp, backend="numpy")(f, rod, v)[1] == 24.0


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("change", ["missing", "more", "another class"])
def test_seeds_that_do_not_fit(change, jit):
    rod, v = Rod(2.0, np.ones(2)), Rod(3.0, np.zeros(2))
    if change == "missing":
        del v.length
    elif change == "more":
        v.width = 1.0
    else:
        v = Node(3.0)
    push = fwdad.jit(fwdad.jvp, backend="numpy") if jit else fwdad.jvp
    with pytest.raises(SeedError, match="fields"):
        push(lambda rod: rod.length, rod, v)


# -- what is refused


class Closing:
    def __init__(self, a, how):
        self.a = a
        self.run = {
            "closure": lambda: self.a**2,
            "default": lambda o=self: o.a**2,
            "partial": __import__("functools").partial(Closing.square, self),
        }[how]

    def square(self):
        return self.a**2


@pytest.mark.parametrize("how", ["closure", "default", "partial"])
@pytest.mark.parametrize("jit", [False, True])
def test_a_function_that_reads_the_object_itself_is_refused(how, jit):
    g = fwdad.grad(lambda x: x.run())
    with pytest.raises(UnsupportedTypeError, match="can be read as a constant"):
        (fwdad.jit(g, backend="numpy") if jit else g)(Closing(3.0, how))


class Graph:
    def __init__(self, kind):
        self.nodes = [Node(2.0), Node(3.0)]
        made = {"set": set, "keys": dict.fromkeys, "deque": __import__("collections").deque}
        self.again = made[kind](self.nodes)

    def total(self):
        return sum(node.value for node in self.again)


@pytest.mark.parametrize("kind", ["set", "keys", "deque"])
def test_nodes_in_a_container_without_tangents_are_refused(kind):
    for ways in (fwdad.grad, fwdad.jacfwd):
        with pytest.raises(UnsupportedTypeError, match=r"x\.again.*read as a constant"):
            ways(Graph.total)(Graph(kind))


def test_named_tuples_with_a_constructor_of_their_own_under_jit():
    double = fwdad.jit(lambda p: p._replace(a=2.0 * p.a), backend="numpy")
    assert double(Pair(3.0)) == (6.0, 6.0)
    assert type(double(Pair(3.0))) is Pair

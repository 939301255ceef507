"""Traced derivatives with respect to objects of the user's, and of functions that return them."""

import functools
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad import NoTangent
from fwdad.errors import NonScalarOutputError, UnsupportedTypeError, UntraceableError
from tests.differences import central_differences


@dataclass
class Body:
    x: np.ndarray
    mass: float
    name: str = "moon"


BODY = Body(np.array([0.1, 0.2]), 2.0)


def energy(b, c):
    return np.sum(np.sin(b.x)) * b.mass * c


def moved(b, c):
    return Body(b.x * c, b.mass + c)


def test_gradient():
    gradient, dc = fwdad.jit(fwdad.grad(energy, argnums=(0, 1)), backend="numpy")(BODY, 3.0)
    np.testing.assert_allclose(gradient.x, 6.0 * np.cos(BODY.x), rtol=1e-14)
    np.testing.assert_allclose(gradient.mass, 3.0 * np.sum(np.sin(BODY.x)), rtol=1e-14)
    np.testing.assert_allclose(dc, 2.0 * np.sum(np.sin(BODY.x)), rtol=1e-14)
    assert gradient.name is NoTangent
    alone = fwdad.jit(fwdad.grad(energy), backend="numpy")(BODY, 3.0)
    assert np.array_equal(alone.x, gradient.x)


def test_value_and_tangent_of_a_function_that_returns_one():
    def pushed(c):
        return fwdad.jvp(lambda c: moved(BODY, c), c, 1.0)

    y, y_dot = fwdad.jit(pushed, backend="numpy")(3.0)
    np.testing.assert_allclose(y.x, 3.0 * BODY.x, rtol=1e-15)
    np.testing.assert_allclose(y_dot.x, BODY.x, rtol=1e-15)
    assert (y.mass, y_dot.mass) == (5.0, 1.0)


class Squared:
    """Keeps the square of what is stored, by the field's own name."""

    def __set_name__(self, _owner, name):
        self.name = name

    def __get__(self, o, _cls=None):
        return 1.5 if o is None else o.__dict__[self.name]

    def __set__(self, o, value):
        o.__dict__[self.name] = value * value


class Doubled(Squared):
    """Keeps twice what is stored, by another name."""

    def __get__(self, o, _cls=None):
        return 1.5 if o is None else getattr(o, f"_{self.name}")

    def __set__(self, o, value):
        object.__setattr__(o, f"_{self.name}", value * 2.0)


@dataclass
class Plain:
    squared: float = Squared()
    doubled: float = Doubled()


@dataclass(frozen=True)
class Frozen:
    squared: float = Squared()
    doubled: float = Doubled()


@dataclass
class Stored:
    squared: float
    doubled: float

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value**2 if name == "squared" else value * 2.0)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("cls", [Plain, Frozen, Stored])
def test_fields_of_a_dataclass_are_stored_as_its_class_says(cls, mode):
    def f(x):
        made = cls(x[0], doubled=x[1])
        return made.squared * made.doubled

    x = np.array([3.0, 5.0])
    expected = [2.0 * 3.0 * 2.0 * 5.0, 9.0 * 2.0]
    assert f(x) == 90.0
    np.testing.assert_allclose(fwdad.jacobian(f, x, mode=mode), expected, rtol=1e-14)
    compiled = fwdad.jit(lambda x: fwdad.jacobian(f, x, mode=mode), backend="numpy")
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-14)
    assert fwdad.jit(f, backend="numpy")(x) == 90.0


# -- reverse mode without jit runs a tape of them, too


@dataclass
class Spring:
    stiffness: float
    lengths: np.ndarray
    power: int = 2
    name: str = "spring"
    law: object = np.sin


@dataclass(frozen=True)
class Still:
    stiffness: float
    lengths: np.ndarray


@dataclass(slots=True)
class Slotted:
    stiffness: float
    lengths: np.ndarray


class Ordinary:
    def __init__(self, stiffness, lengths):
        self.stiffness, self.lengths = stiffness, lengths


@dataclass
class Machine:
    first: Spring
    others: list
    load: float


def strain(s):
    return s.stiffness ** getattr(s, "power", 2) * np.sum(getattr(s, "law", np.sin)(s.lengths))


def work(m):
    return m.load * strain(m.first) + sum(strain(s) for s in m.others)


V = np.array([1.3, 0.2, -0.7, 1.1])


def of_numbers(cls):
    return lambda v: cls(float(v[0]), v[1:])


def machine(v):
    first = Spring(float(v[0]), v[1:], 3)
    return Machine(first, [first, Still(float(v[1]), v[2:])], float(v[3]))


def numbers_of(s):
    return np.concatenate([[s.stiffness], s.lengths])


@pytest.mark.parametrize("cls", [Spring, Still, Slotted, Ordinary])
def test_reverse_mode_runs_a_tape_of_objects(cls):
    x, expected = of_numbers(cls)(V), central_differences(lambda v: strain(of_numbers(cls)(v)), V)
    assert fwdad.explain(fwdad.grad(strain), x).startswith("the tape of strain, forwards and back")
    columns = fwdad.jacobian(strain, x, mode="forward")
    rows = fwdad.jacobian(strain, x, mode="reverse")
    assert fwdad.explain(fwdad.vjp, strain, x).startswith("the tape of strain")
    y, pullback = fwdad.vjp(strain, x)
    y_of_linear, J = fwdad.linearize(strain, x)
    if cls is not Slotted:  # whose slots are in another order than its fields
        assert fwdad.explain(fwdad.linearize, strain, x).startswith("the tape of strain")
    np.testing.assert_allclose(J.rmatvec(np.ones(1)), expected, rtol=1e-7)
    np.testing.assert_allclose(J.matvec(V), expected @ V, rtol=1e-7)
    assert y == y_of_linear == strain(x)
    for found in (fwdad.grad(strain)(x), pullback(1.0), columns, rows):
        assert type(found) is cls
        np.testing.assert_allclose(numbers_of(found), expected, rtol=1e-7)
        if cls is Spring:
            assert (found.power, found.name, found.law) == (NoTangent,) * 3
    assert type(fwdad.grad(strain)(x).stiffness) is float


def test_a_tape_of_nested_objects_of_which_one_is_in_two_places():
    x, expected = machine(V), central_differences(lambda v: work(machine(v)), V)
    assert fwdad.explain(fwdad.grad(work), x).startswith("the tape of work")
    for found in (fwdad.grad(work)(x), fwdad.vjp(work, x)[1](1.0)):
        assert found.first is found.others[0]
        first, other = numbers_of(found.first), numbers_of(found.others[1])
        total = first + np.array([0.0, other[0], 0.0, 0.0])
        total[2:] += other[1:]
        total[3] += found.load
        np.testing.assert_allclose(total, expected, rtol=1e-7)


def test_a_tape_follows_what_the_object_holds_now():
    x = Spring(1.3, V[1:])
    gradient = fwdad.grad(strain)
    changes = ({}, {"stiffness": 0.4}, {"power": 4}, {"law": np.tanh}, {"name": "other"},
               {"lengths": np.linspace(0.1, 0.9, 5)}, {"stiffness": np.float32(0.5)})  # fmt: skip
    for change in changes:
        for name, value in change.items():
            setattr(x, name, value)
        found = gradient(x)
        slope = x.power * x.stiffness ** (x.power - 1) * np.sum(x.law(x.lengths))
        np.testing.assert_allclose(found.stiffness, slope, rtol=1e-6)
        assert type(found.stiffness) is type(x.stiffness)
        law_slope = np.cos if x.law is np.sin else lambda v: 1 - np.tanh(v) ** 2
        expected = x.stiffness**x.power * law_slope(x.lengths)
        np.testing.assert_allclose(found.lengths, expected, rtol=1e-6)


def test_complex_fields_are_recorded():
    x = Still(1.0 + 2.0j, V)
    f = lambda s: np.real(s.stiffness**2) * np.sum(s.lengths)
    assert "real floats" in fwdad.explain(fwdad.grad(f), x)
    assert fwdad.grad(f)(x).stiffness == np.conj(2 * x.stiffness) * np.sum(V)


# -- which classes these are is one fact, for tapes and for runs without one


class Finalised(Ordinary):
    def __del__(self):
        pass


class SlottedFinalised:
    __slots__ = ("lengths", "stiffness")

    def __init__(self, stiffness, lengths):
        self.stiffness, self.lengths = stiffness, lengths

    def __del__(self):
        pass


class Registered(Ordinary):
    pass


fwdad.register_tangent_type(
    Registered,
    flatten=lambda s: ((s.stiffness,), s.lengths),
    unflatten=lambda lengths, parts: Registered(parts[0], lengths),
)


class OfRegistered(Registered):
    pass


@dataclass
class FinalisedData:
    stiffness: float
    lengths: np.ndarray

    def __del__(self):
        pass


def in_list(pair):
    return strain(pair[0]) * pair[1]


JITTED = {
    "grad": lambda f, x: fwdad.jit(fwdad.grad(f), backend="numpy")(x),
    "vjp": lambda f, x: fwdad.jit(lambda x: fwdad.vjp(f, x)[1](1.0), backend="numpy")(x),
    "jacfwd": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
}


@pytest.mark.parametrize("way", JITTED)
@pytest.mark.parametrize("cls", [Finalised, SlottedFinalised, OfRegistered])
def test_what_eager_mode_refuses_is_refused_on_a_tape(cls, way):
    """A gradient of such an object in a list was ``NoTangent``, or one field by field."""
    for f, x in ((strain, cls(2.0, V)), (in_list, [cls(2.0, V), 3.0])):
        with pytest.raises(UnsupportedTypeError, match="which has numbers that would be constants"):
            fwdad.grad(f)(x)
        with pytest.raises((UnsupportedTypeError, UntraceableError), match=r"constants|composite"):
            JITTED[way](f, x)


@pytest.mark.parametrize("way", JITTED)
@pytest.mark.parametrize("cls", [Registered, FinalisedData])
def test_what_a_tape_cannot_take_apart_is_not_traced(cls, way):
    x = [cls(2.0, V), 3.0]
    found = fwdad.grad(in_list)(x)
    assert type(found[0]) is cls
    np.testing.assert_allclose(found[0].stiffness, 3.0 * 2 * 2.0 * np.sum(np.sin(V)))
    assert found[1] == strain(x[0])
    with pytest.raises(UntraceableError, match=cls.__name__):
        JITTED[way](in_list, x)


@pytest.mark.parametrize("cls", [Finalised, SlottedFinalised, OfRegistered])
@pytest.mark.parametrize("held", [lambda c: c, lambda c: [c]])
def test_a_result_with_hidden_derivatives_is_refused(cls, held):
    """Slots were not looked at: the derivative was ``NoTangent``."""

    def f(c):
        return [cls(held(c), V), c]

    with pytest.raises(UnsupportedTypeError, match="has no tangent type, and its attribute"):
        fwdad.jvp(f, 2.0, 1.0)
    jitted = fwdad.jit(lambda z: fwdad.jvp(f, z, 1.0)[1], backend="numpy")
    with pytest.raises(UntraceableError, match="holds traced values"):
        jitted(2.0)


@dataclass
class Scaled:
    k: float

    def __call__(self, a):
        return np.sum(np.sin(a * self.k))


def of_sines(a, k):
    return np.sum(np.sin(a * k))


HOLDERS = {"partial": lambda k: functools.partial(of_sines, k=k), "dataclass": Scaled}


@pytest.mark.parametrize("made", HOLDERS.values(), ids=HOLDERS)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_callables_that_hold_traced_values(made, backend):
    """They have no name, and are not asked for a text in place of it."""
    if backend == "numba":
        pytest.importorskip("numba")
    x = np.array([0.4, 0.9, -0.3])

    def f(x):
        return fwdad.grad(made(x[0]))(x)

    def f2(x):
        return fwdad.hvp(made(x[0]), x, x)

    for g in (f, f2):
        expected = central_differences(g, x)
        assert_allclose(fwdad.jit(g, backend=backend)(x), g(x), rtol=1e-12)
        assert_allclose(fwdad.jacfwd(g)(x), expected, rtol=1e-8, atol=1e-8)
        found = fwdad.jit(fwdad.jacrev(g), backend=backend)(x)
        assert_allclose(found, expected, rtol=1e-8, atol=1e-8)


def test_what_is_said_of_callables_without_a_name():
    x = np.array([0.4, 0.9, -0.3])

    def f(x):
        return fwdad.grad(functools.partial(np.multiply, x[0]))(x)

    for g in (f, fwdad.jit(f, backend="numpy")):
        with pytest.raises(NonScalarOutputError, match=r"; functools\.partial returned"):
            g(x)

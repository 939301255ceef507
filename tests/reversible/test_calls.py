"""Calls of reversible functions: keywords, defaults, methods, fields that are functions."""

import linecache
import pickle
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import AliasedArgumentError, InvertibilityError, IrreversibleError
from fwdad.reversible import ancilla, check_gradient, check_inverse, compute, copy_out, reversible


@reversible
def squared(a, b):
    a += b * b


@reversible
def powered(y, x, n=3, *, k=2):
    y += k * x**n


@reversible
def by_keyword(x, y):
    squared(b=y, a=x)
    (~squared)(y, b=x)
    powered(x, y)
    powered(x=y, y=x, n=2, k=1)
    powered(x, 0.5, k=y)


@reversible
def applied(f, x, y):
    f(b=y, a=x)
    (~f)(y, 2.0)


@reversible
def applies(x, y):
    applied(squared, x, y)
    applied(~squared, x, y)


@dataclass
class Part:
    m: float
    v: np.ndarray


@dataclass
class Model:
    e: float
    part: Part
    act: Any = np.sin

    @reversible
    def kick(self, x, scale=1.0):
        self.part.v += scale * x

    @reversible
    def step(self, x):
        self.kick(x)
        self.e += np.sum(self.part.v**2) * self.act(x)
        self.e += self.part.m
        (~self.kick)(x, scale=0.5)

    @reversible
    def loss(self, y, x):
        with compute():
            self.step(x)
            with copy_out():
                y += self.e

    unstep = ~step


def model():
    return Model(0.5, Part(2.0, np.ones(2)))


def after(x):
    """The energy after a step."""
    return 0.5 + 2 * (1 + x) ** 2 * np.sin(x) + 2.0


def slope(x):
    return 4 * (1 + x) * np.sin(x) + 2 * (1 + x) ** 2 * np.cos(x)


def test_keywords_and_defaults_from_outside():
    assert powered(1.0, 2.0) == (17.0, 2.0, 3, 2)
    assert powered(x=2.0, y=1.0, k=1) == (9.0, 2.0, 3, 1)
    assert (~powered)(x=2.0, y=17.0) == (1.0, 2.0, 3, 2)
    assert fwdad.grad(powered, argnums=1)(0.0, 2.0) == 24.0
    for grad in (fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f))):
        assert grad(lambda x: powered(y=0.0, x=x, k=1)[0])(2.0) == 12.0
    assert fwdad.jacobian(lambda x: powered(y=0.0, x=x)[0], 2.0) == 24.0
    with pytest.raises(TypeError, match="powered: missing a required argument: 'x'"):
        powered(1.0)
    with pytest.raises(TypeError, match="'z'"):
        powered(1.0, 2.0, z=3)
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="inplace"):
        fwdad.jvp(lambda x: powered(0.0, x, inplace=True)[0], 2.0, 1.0)


def test_keywords_between_reversible_functions():
    x, y = 0.3, 0.7
    a = x + y * y
    b = y - a * a
    a += 2 * b**3 + b * b + 0.5**3 * b
    assert_allclose(by_keyword(x, y), (a, b), rtol=1e-14)
    check_inverse(by_keyword, x, y)
    check_gradient(by_keyword, x, y)
    assert "squared(b=y, a=x)" in fwdad.show(by_keyword)


def test_functions_and_their_inverses_as_arguments():
    assert applied(squared, 1.0, 2.0)[1:] == (5.0, -2.0)
    check_inverse(applies, 1.0, 2.0)
    check_gradient(applies, 1.0, 2.0)


def test_arguments_that_do_not_fit_are_refused_with_their_line():
    @reversible
    def wrong(x, y):
        squared(a=x, c=y)

    with pytest.raises(IrreversibleError, match=r"(?s)missing a required argument: 'b'.*line \d+"):
        wrong(1.0, 2.0)


def test_a_parameter_called_inplace_is_refused():
    with pytest.raises(IrreversibleError, match="inplace"):

        @reversible
        def wrong(inplace, x):
            x += inplace


def test_methods():
    m = model()
    new, x = m.step(0.4)
    assert_allclose(new.e, after(0.4), rtol=1e-14)
    assert_allclose(new.part.v, 1.2)
    assert m.e == 0.5
    for back in ((~new.step)(x)[0], (~Model.step)(new, x)[0], new.unstep(x)[0]):
        assert_allclose((back.e, *back.part.v), (0.5, 1, 1), rtol=1e-14)
    assert m.step == m.step
    assert ~~m.step == m.step
    check_inverse(m.step, 0.4)
    check_gradient(m.step, 0.4)
    assert "self.kick(x)" in fwdad.show(m.step)


@pytest.mark.parametrize("wrap", [lambda f: f, fwdad.jit])
def test_gradients_of_methods(wrap):
    m = model()
    assert_allclose(wrap(fwdad.grad(lambda x: m.step(x)[0].e))(0.4), slope(0.4), rtol=1e-12)
    assert_allclose(wrap(fwdad.grad(m.loss, argnums=1))(0.0, 0.4), slope(0.4), rtol=1e-12)
    assert_allclose(wrap(fwdad.jacfwd(lambda x: m.loss(0.0, x)[1]))(0.4), slope(0.4), rtol=1e-12)


def test_a_method_and_a_field_of_its_object_are_not_apart():
    @dataclass
    class Bad:
        a: float

        @reversible
        def add(self, x):
            self.a += x

        @reversible
        def twice(self):
            self.add(self.a)

    with pytest.raises(IrreversibleError, match="share memory"):
        Bad(1.0).twice()


def test_fields_that_are_reversible_functions():
    @reversible
    def f(m):
        m.act(m.e, m.part.m)

    m = Model(1.0, Part(2.0, np.zeros(1)), squared)
    assert f(m).e == 5.0
    assert (~f)(f(m)).e == 1.0
    close = fwdad.grad(lambda x: f(Model(1.0, Part(x, np.zeros(1)), squared)).e)
    assert close(2.0) == 4.0


def test_a_record_within_a_record_is_an_argument():
    @reversible
    def inner(part, e):
        part.m += np.sum(part.v) * e

    @reversible
    def f(m, n):
        for _ in range(n):
            inner(m.part, m.e)

    new, _ = f(model(), 2)
    assert new.part.m == 4.0
    assert (~f)(new, 2)[0].part.m == 2.0


def test_a_call_that_updates_a_field_is_seen_around_compute():
    @reversible
    def bump(p):
        p.m += 1.0

    @reversible
    def f(y, p):
        with compute():
            t = ancilla(0.0)
            t += p.m
            with copy_out():
                y += t
                bump(p)

    with pytest.raises(InvertibilityError, match="'t'"):
        f(0.0, Part(1.0, np.zeros(1)))


def test_a_field_and_a_variable_of_its_name():
    @reversible
    def f(p, p_m):
        p.m += p_m

    new, other = f(Part(1.0, np.zeros(1)), 5.0)
    assert (new.m, other) == (6.0, 5.0)


def test_objects_with_slots():
    class Slots:
        __slots__ = ("a", "b")

        def __init__(self):
            self.a, self.b = 1.0, 2.0

    @reversible
    def f(p, x):
        p.a += x * p.b

    new, _ = f(Slots(), 3.0)
    assert new.a == 7.0


def test_inplace_updates_the_fields_of_objects():
    @reversible
    def f(m):
        m.e += m.part.m
        m.part.m += 1.0
        m.part.v += 1.0

    m = model()
    part, v = m.part, m.part.v
    assert f(m, inplace=True) is m
    assert (m.e, m.part.m) == (2.5, 3.0)
    assert m.part is part
    assert m.part.v is v
    assert np.all(v == 2.0)
    (~f)(m, inplace=True)
    assert (m.e, m.part.m, *v) == (0.5, 2.0, 1.0, 1.0)
    m.kick(1.0, inplace=True)
    assert np.all(v == 2.0)


def test_inplace_refuses_what_cannot_be_changed():
    Pair = namedtuple("Pair", "a b")  # noqa: PYI024

    @dataclass(frozen=True)
    class Frozen:
        a: float
        b: np.ndarray

    @reversible
    def number(p):
        p.a += 1.0

    @reversible
    def array(p):
        p.b += 1.0

    for p in (Pair(1.0, np.zeros(1)), Frozen(1.0, np.zeros(1))):
        with pytest.raises(fwdad.errors.UnsupportedTypeError, match=type(p).__name__):
            number(p, inplace=True)
        assert number(p).a == 2.0
        array(p, inplace=True)
        assert p.b[0] == 1.0


def test_one_object_twice():
    @reversible
    def f(p, q):
        p.m += q.m

    p = Part(1.0, np.zeros(1))
    with pytest.raises(AliasedArgumentError):
        f(p, p)


def test_pickle():
    assert pickle.loads(pickle.dumps(squared)) is squared
    assert pickle.loads(pickle.dumps(~squared)) is ~squared


# -- names from outside, which may mean something else later

scale = 2.0


@reversible
def inner(a, b):
    a += scale * b


@reversible
def outer(a, b):
    inner(a, b)
    a += shape(b)


def shape(b):
    return b


def test_names_from_outside_mean_what_they_mean_when_it_runs(monkeypatch):
    compiled = fwdad.jit(lambda b: outer(0.0, b)[0])
    slopes = [fwdad.grad(outer, argnums=1), fwdad.jit(fwdad.grad(outer, argnums=1))]

    def check(expected, slope):
        assert outer(0.0, 1.0)[0] == compiled(1.0) == expected
        assert [g(0.0, 1.0) for g in slopes] == [slope, slope]
        assert (~outer)(expected, 1.0)[0] == 0.0

    check(3.0, 3.0)
    monkeypatch.setitem(globals(), "scale", 5.0)
    check(6.0, 6.0)
    monkeypatch.setitem(globals(), "shape", lambda b: b * b)
    check(6.0, 7.0)

    @reversible
    def other(a, b):
        a += 10 * b

    monkeypatch.setitem(globals(), "inner", other)
    check(11.0, 12.0)
    monkeypatch.setitem(globals(), "inner", ~other)
    check(-9.0, -8.0)


def test_cells_are_read_when_it_runs():
    c = 5.0

    @reversible
    def f(y, x):
        y += c * x

    assert f(0.0, 1.0)[0] == 5.0
    c = 6.0
    assert f(0.0, 1.0)[0] == 6.0
    c = np.array([1.0, 2.0])
    assert np.array_equal(f(np.zeros(2), 1.0)[0], [1.0, 2.0])


def test_a_function_of_a_module_that_cannot_be_imported():
    code = "@reversible\ndef nowhere(y, x):\n    y += x * x\n"
    space = {"__name__": "a_module_that_is_not_there", "reversible": reversible}
    linecache.cache["<nowhere>"] = (len(code), None, code.splitlines(keepends=True), "<nowhere>")
    exec(compile(code, "<nowhere>", "exec"), space)
    f = space["nowhere"]
    for g in (fwdad.grad(f, argnums=1), fwdad.jit(fwdad.grad(f, argnums=1))):
        assert g(0.0, 3.0) == 6.0
    assert fwdad.jit(lambda x: f(0.0, x)[0])(3.0) == 9.0


def sin(x):
    return 3 * x


def test_functions_of_one_name():
    @dataclass
    class First:
        x: float

        @reversible
        def add(self, y):
            self.x += y

        @reversible
        def sin(self, y):
            self.x += sin(y)

    @dataclass
    class Second(First):
        @reversible
        def add(self, y):
            First.add(self, y)
            self.x += 1.0

    new, _ = Second(1.0).add(2.0)
    assert new.x == 4.0
    assert (~new.add)(2.0)[0].x == 1.0
    assert new.sin(2.0)[0].x == 10.0
    for wrap in (lambda f: f, fwdad.jit):
        assert wrap(fwdad.grad(lambda y: Second(1.0).add(y)[0].x))(2.0) == 1.0
        assert wrap(fwdad.grad(lambda y: First(1.0).sin(y)[0].x))(2.0) == 3.0

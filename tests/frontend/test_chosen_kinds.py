"""What a value chooses, of two kinds, used at once: by C code, as a text, a pattern, an argument."""

import collections
import dataclasses
import json
import operator
import types

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError

pytestmark = pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")


def chosen(x):
    return "aa" if x > 0 else "bb"


class Base:
    __match_args__ = ("v",)

    def __init__(self, v):
        self.v = v


class Derived(Base):
    pass


@dataclasses.dataclass
class Named:
    name: object


def lengths(x):
    match (x,) if x > 0 else (x, x):
        case (a,):
            return 2 * a
        case _:
            return x * x


def classes(x):
    match Derived(x) if x > 0 else Base(x):
        case Derived(v):
            return 2 * v
        case Base(v):
            return v * v


def mappings(x):
    match {"go": x} if x > 0 else {"sq": x}:
        case {"go": a}:
            return 2 * a
        case {"sq": a}:
            return a * a


def in_a_tuple(x):
    match ("go", [x] if x > 0 else (x, x)):
        case ("go", [a]):
            return 2 * a
        case ("go", [a, b]):
            return a * b


def starred_dict(x):
    d = {"p": 0.0, "q": 0.0, **({"p": x} if x > 0 else {"q": x})}
    return 2 * d["p"] + d["q"] ** 2


def two(x, condition):
    return 2 * x if condition else x * x


def raised(x):
    try:
        raise ValueError(chosen(x))
    except ValueError as error:
        return two(x, str(error) == "aa")


def named(**given):
    return 2 * given["a"] if "a" in given else given["b"] ** 2


space = types.SimpleNamespace
PROGRAMS = {
    "lengths": lengths,
    "classes": classes,
    "mappings": mappings,
    "in a tuple": in_a_tuple,
    "f-string": lambda x: two(x, f"{chosen(x)}" == "aa"),
    "conversion": lambda x: two(x, f"{chosen(x)!r}" == "'aa'"),
    "width": lambda x: two(x, f"{chosen(x):>4}" == "  aa"),
    "text of a list": lambda x: two(x, str([1] if x > 0 else [1, 2]) == "[1]"),
    "text of a tuple": lambda x: two(x, str((chosen(x),)) == "('aa',)"),
    "text of an object": lambda x: two(x, str(Named(chosen(x))) == "Named(name='aa')"),
    "modulo": lambda x: two(x, "%s%d" % (chosen(x), 1) == "aa1"),
    "format": lambda x: two(x, "{}".format(chosen(x)) == "aa"),
    "key": lambda x: {"k_aa": 2 * x}.get(f"k_{chosen(x)}", x * x),
    "attribute": lambda x: getattr(space(f_aa=2 * x, f_bb=x * x), f"f_{chosen(x)}"),
    "getter": lambda x: operator.attrgetter(chosen(x))(space(aa=2 * x, bb=x * x)),
    "raised": raised,
    "contained": lambda x: two(x, "a" in chosen(x)),
    "in a list": lambda x: two(x, 1 in ([1, 2] if x > 0 else [3])),
    "slice": lambda x: sum([x, x, x * x][slice(0, 2) if x > 0 else slice(2, None)]),
    "bound": lambda x: np.sum(np.array([2 * x, x * x - 2 * x])[: 1 if x > 0 else None]),
    "dtype": lambda x: two(x, x > 0) * np.ones(1).astype("f8" if x > 0 else float)[0],
    "sorted": lambda x: two(x, sorted(["b", chosen(x)]) == ["aa", "b"]),
    "json": lambda x: two(x, json.dumps({"k": chosen(x)}) == '{"k": "aa"}'),
    "joined": lambda x: two(x, "".join([chosen(x), ""]) == "aa"),
    "generated": lambda x: two(x, "".join("+" if v > 0 else "-" for v in (x, -x)) == "+-"),
    "starred dict": starred_dict,
    "keywords": lambda x: named(**({"a": x} if x > 0 else {"b": x})),
    "counted": lambda x: two(x, collections.Counter([chosen(x)])["aa"] == 1),
}


@pytest.mark.parametrize("backend", ["numpy", "auto"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_derivatives(name, backend, caplog):
    f = PROGRAMS[name]
    value = fwdad.jit(f, backend=backend)
    derivative = fwdad.jit(fwdad.grad(f), backend=backend)
    for x in (0.7, -1.3, 0.4):
        wanted, slope = (2 * x, 2.0) if x > 0 else (x * x, 2 * x)
        assert_allclose(f(x), wanted)
        assert_allclose(fwdad.jvp(f, x, 1.0), (wanted, slope))
        assert_allclose(fwdad.grad(f)(x), slope)
        try:
            assert_allclose(value(x), wanted)
            assert_allclose(derivative(x), slope)
        except UntraceableError:
            assert name == "counted"
    assert not caplog.records


class State:
    """Equal where its text is."""

    def __init__(self, x):
        self.x = x

    def __str__(self):
        return f"x: {self.x}"

    def __hash__(self):
        return hash(str(self))

    def __eq__(self, other):
        return str(self) == str(other)


TEXTS = {
    "set": lambda x: two(x, State(x + 1.0) in {State(x), State(9.0)}),
    "dict": lambda x: two(x, State(x + 1.0) in {State(x): 1}),
    "list": lambda x: two(x, State(x + 1.0) in [State(x), State(9.0)]),
    "length": lambda x: x * len({State(x), State(x + 1.0)}),
    "index": lambda x: x * [State(x), State(x + 1.0)].index(State(x + 1.0)),
    "get": lambda x: {State(x): 2 * x}.get(State(x + 1.0), x * x),
}


@pytest.mark.parametrize("f", TEXTS.values(), ids=TEXTS)
def test_texts_of_values_are_no_keys(f):
    """All values had the same text for C code, so that different objects were equal."""
    assert_allclose(fwdad.grad(f)(2.0), fwdad.jvp(f, 2.0, 1.0)[1])
    with pytest.raises(UntraceableError, match="as a text"):
        fwdad.jit(f)(2.0)


class Translates:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is ArithmeticError:
            self.fail()

    def fail(self):
        raise ValueError("translated")


def test_exceptions_that_a_manager_replaces():
    def f(x):
        with Translates():
            if x <= 0:
                raise ArithmeticError
            return np.sqrt(x)

    assert_allclose(fwdad.grad(f)(4.0), 0.25)
    with pytest.raises(ValueError, match="translated"):
        fwdad.grad(f)(-4.0)
    with pytest.raises(UntraceableError, match="raises others in place"):
        fwdad.jit(f)(4.0)


def test_flags_by_their_names():
    f = fwdad.jit(lambda x: np.sum(x) if x.flags["C_CONTIGUOUS"] else np.prod(x))
    x = np.arange(4.0)
    assert f(x) == 6.0
    assert f(x[::2]) == 0.0


def test_what_may_be_none_is_unpacked():
    def first_positive(x):
        for k, v in enumerate(x):
            if v > 0:
                return k, v
        return None

    def f(x):
        found = first_positive(x)
        if found is None:
            return -x.sum()
        k, v = found
        return (k + 1) * v

    compiled = fwdad.jit(fwdad.value_and_grad(f), backend="numpy")
    for x in ([0.7, -0.4, 1.3], [-0.7, -0.4, 1.3], [-1.0, -2.0, -3.0]):
        x = np.array(x)
        value, gradient = compiled(x)
        assert_allclose(value, f(x))
        assert_allclose(gradient, fwdad.jacobian(f, x, mode="forward"))


def test_exceptions_of_unpacked_arguments():
    def f(x):
        try:
            if x[0] <= 0:
                raise KeyError("a")
        except KeyError as error:
            raise ValueError(*error.args) from error
        return x.sum()

    compiled = fwdad.jit(f, backend="numpy")
    assert_allclose(compiled(np.array([0.7, -0.4])), 0.3)
    with pytest.raises(ValueError, match="a"):
        compiled(np.array([-0.7, -0.4]))


@pytest.mark.parametrize("f", [
    lambda x: (x * np.sign(x).astype(int)).sum(),
    lambda x: (x * (np.sign(x) + 1).astype(int)).sum(),
    lambda x: x[np.floor(np.abs(x)).astype(int)].sum(),
])  # fmt: skip
def test_signs_as_integers(f):
    """A real sign has no derivative that could be lost; under `jit` a gradient was refused."""
    x = np.array([0.7, -0.4, 1.3])
    wanted = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(fwdad.grad(f)(x), wanted)
    assert_allclose(fwdad.jit(fwdad.grad(f), backend="numpy")(x), wanted)

"""``tangent_type``: which type the tangents of each type have, and the classes that users add."""

import gc
import threading
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import DuplicateRuleError, SeedError, UnsupportedTypeError
from fwdad.tangents import registrations
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.kinds import (
    AnyTangent,
    ArrayTangent,
    ArrayType,
    CompositeTangent,
    NumberTangent,
    OwnTangent,
)
from fwdad.tangents.registrations import REGISTERED
from fwdad.tangents.registry import register_tangent_type, tangent_type, typeof
from fwdad.tangents.vectors import (
    OWN,
    add_tangents,
    inner_product,
    scale_tangent,
    zero_tangent,
)
from fwdad.tangents.zero import ZERO, NoTangent, undefined


class Point(NamedTuple):
    x: float
    y: np.ndarray


@dataclass(frozen=True)
class Body:
    mass: float
    place: np.ndarray
    name: str = "body"


T = TypeVar("T")


@dataclass
class Box(Generic[T]):
    content: T


class Unknown:
    def __repr__(self):
        return "Unknown()"


@pytest.fixture
def registered():
    """Forget what a test registers."""
    before = set(REGISTERED) | set(OWN)
    yield
    for table in (REGISTERED, OWN):
        for cls in set(table) - before:
            del table[cls]
    registrations._find_registration.cache_clear()


# -- one type for each (T, N)


@pytest.mark.parametrize(
    "T",
    [
        float,
        complex,
        np.float32,
        np.ndarray,
        ArrayType(np.complex64),
        tuple[float, np.ndarray],
        dict[str, float],
        list,
        Body,
        Point,
    ],
    ids=str,
)
def test_unique(T):
    first = tangent_type(T, 3)
    assert tangent_type(T, 3) is first
    assert tangent_type(T, 2) is not first
    assert (first.primal, first.n) != (tangent_type(T, 2).primal, tangent_type(T, 2).n)


def test_spellings_of_one_type_are_one():
    one = tangent_type(np.ndarray, 2)
    assert one is tangent_type(ArrayType(np.float64), 2)
    assert one is tangent_type(typeof(np.ones(3)), 2)
    assert one is tangent_type(npt.NDArray[np.float64], 2)
    assert one is not tangent_type(npt.NDArray[np.float32], 2)
    assert ArrayType("f4") == ArrayType(np.float32)


def test_unique_across_threads():
    made = []
    start = threading.Barrier(8)

    def ask():
        start.wait()
        made.append(tangent_type(tuple[float, list[complex]], 5))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(kind) for kind in made}) == 1


def test_nothing_is_kept_that_nobody_holds():
    from fwdad.tangents import registry  # noqa: PLC0415  (its table is looked into)

    gc.collect()
    before = len(registry._UNIQUE)
    for n in range(1000):
        tangent_type(tuple[float, float], n)
    gc.collect()
    assert len(registry._UNIQUE) <= before + 2


# -- what it answers


@pytest.mark.parametrize(
    ("T", "kind"),
    [
        (float, NumberTangent),
        (complex, NumberTangent),
        (np.float64, NumberTangent),
        (np.complex64, NumberTangent),
        (np.ndarray, ArrayTangent),
        (ArrayType(np.float32), ArrayTangent),
        (npt.NDArray[np.complex128], ArrayTangent),
        (tuple, CompositeTangent),
        (tuple[()], CompositeTangent),
        (tuple[float, ...], CompositeTangent),
        (list[np.ndarray], CompositeTangent),
        (dict[str, tuple[float, int]], CompositeTangent),
        (Point, CompositeTangent),
        (Body, CompositeTangent),
        (Box[float], CompositeTangent),
        (sp.csr_array, CompositeTangent),
        (Any, AnyTangent),
        (float | None, AnyTangent),
    ],
    ids=str,
)
def test_kind(T, kind):
    assert type(tangent_type(T, 2)) is kind


@pytest.mark.parametrize(
    "T",
    [int, bool, str, bytes, None, type(None), np.int64, np.bool_, ArrayType(int), ArrayType(bool),
     ArrayType("U3"), ArrayType("M8[s]"), type(len), type(lambda: 0), type, range, slice],
    ids=str,
)  # fmt: skip
def test_no_tangent(T):
    assert tangent_type(T, 2) is NoTangent


@pytest.mark.parametrize(
    ("T", "advice"),
    [
        (Unknown, "register_tangent_type"),
        (np.matrix, r"numpy\.asarray"),
        (np.ma.MaskedArray, r"x\.filled"),
        (ArrayType(object), "astype"),
        (ArrayType([("a", float)]), "dict of its fields"),
        (tuple[float, np.matrix], r"numpy\.asarray"),
        (set, "list or a tuple"),
        (3.0, "typeof"),
        ("float", "typeof"),
    ],
    ids=str,
)
def test_refused(T, advice):
    with pytest.raises(UnsupportedTypeError, match=advice):
        tangent_type(T, 2)


@pytest.mark.parametrize("n", [-1, 1.0, True, "2", None])
def test_lanes_are_counted(n):
    with pytest.raises(UnsupportedTypeError, match="number of lanes"):
        tangent_type(float, n)


@pytest.mark.parametrize(
    ("x", "T"),
    [
        (1.0, float),
        (np.float32(1), np.float32),
        (2, int),
        (None, type(None)),
        (np.ones(2, np.complex64), ArrayType(np.complex64)),
        ((1.0, np.ones(2)), tuple[float, ArrayType(float)]),
        ((), tuple),
        ([1.0, 2.0], list[float]),
        ([1.0, 2], list),
        ([], list),
        ({"a": 1.0, "b": 2.0}, dict[str, float]),
        ({"a": 1.0, 2: 2.0}, dict),
        ({"a": (1.0, 2)}, dict[str, tuple[float, int]]),
        (Point(1.0, np.ones(1)), Point),
        (Body(1.0, np.ones(3)), Body),
        (sp.csr_array(np.eye(2)), sp.csr_array),
    ],
    ids=str,
)
def test_typeof(x, T):
    assert typeof(x) == T


def test_typeof_ends_where_a_list_holds_itself():
    x = [1.0]
    x.append(x)
    assert typeof(x) is list
    assert typeof((x, 1.0)) == tuple[list, float]


def test_typeof_a_dual_is_that_of_its_primal():
    def f(x):
        assert typeof(x) == ArrayType(float)
        assert typeof((x[0], 1)) == tuple[np.float64, int]
        return x * 2

    assert_array_equal(fwdad.jvp(f, np.ones(2), np.ones(2))[1], [2.0, 2.0])


# -- what a type's tangents are

VALUES = [
    1.5,
    np.float32(2),
    2.0 + 1j,
    np.arange(3.0),
    np.zeros((2, 0)),
    np.array(1.0),
    np.ones((2, 3), np.complex64),
    (1.0, np.ones(2), 3),
    [np.ones(2), [1.0, "a"]],
    {"a": 1.0, "b": {"c": np.ones(2)}},
    Point(1.0, np.ones(2)),
    Body(2.0, np.ones(3)),
    sp.csr_array(np.eye(3)),
    (),
]


@pytest.mark.parametrize("x", VALUES, ids=str)
@pytest.mark.parametrize("n", [1, 3])
def test_zero_basis_and_random_are_tangents(x, n, rng):
    kind = tangent_type(typeof(x), n)
    zero, random = kind.zero(x), kind.random(x, rng)
    for x_dot in (zero, kind.basis(x), random):
        assert kind.holds(x, x_dot)
        if size_of(x):
            assert not tangent_type(typeof(x), n + 1).holds(x, x_dot)
    assert_array_equal(inner_product(zero, random), np.zeros(n) if size_of(x) else 0.0)


def size_of(x):
    """The dimension of a value's tangent space, counted by hand."""
    if isinstance(x, (float, complex, np.inexact)):
        return 1
    if isinstance(x, np.ndarray):
        return x.size
    if isinstance(x, Body):
        return 1 + x.place.size
    if isinstance(x, dict):
        return sum(map(size_of, x.values()))
    if isinstance(x, (list, tuple)):
        return sum(map(size_of, x))
    return x.data.size if sp.issparse(x) else 0


def test_basis_goes_leaf_after_leaf():
    x = (2.0, np.ones((2, 2)), 7)
    kind = tangent_type(typeof(x), 3)
    (a, b, c), (d, e, _) = kind.basis(x), kind.basis(x, start=3)
    assert_array_equal(a.lanes, [1, 0, 0])
    assert_array_equal(b.lanes.reshape(3, 4), [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0]])
    assert c is NoTangent
    assert d is ZERO
    assert_array_equal(e.lanes.reshape(3, 4), [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])


def test_random_directions_are_independent_and_complex_in_both_parts(rng):
    x = (np.zeros(50), np.zeros(50, complex))
    a, b = tangent_type(typeof(x), 4).random(x, rng)
    assert np.linalg.matrix_rank(a.lanes) == 4
    assert a.dtype == np.float64
    assert b.dtype == np.complex128
    assert 0.5 < np.std(b.lanes.imag) < 2
    again = tangent_type(typeof(x), 4).random(x, np.random.default_rng(1))[0]
    assert_array_equal(
        again.lanes, tangent_type(typeof(x), 4).random(x, np.random.default_rng(1))[0].lanes
    )


@pytest.mark.parametrize(
    ("x", "x_dot"),
    [
        (1.0, Chunk(np.ones((2, 1)))),
        (1.0, Chunk(np.ones(3))),
        (1.0, np.ones(2)),
        (1.0, Chunk(np.ones(2) * 1j)),
        (1.0, NoTangent),
        (np.ones(2), Chunk(np.ones((2, 3)))),
        (np.ones(2), Chunk(np.ones(2))),
        ((1.0, 2), (Chunk(np.ones(2)), Chunk(np.ones(2)))),
        ((1.0, 2), (Chunk(np.ones(2)),)),
        ((1.0, 2), [Chunk(np.ones(2)), NoTangent]),
        ({"a": 1.0}, {"b": Chunk(np.ones(2))}),
        (Body(1.0, np.ones(1)), (Chunk(np.ones(2)), Chunk(np.ones((2, 1))), NoTangent)),
    ],
    ids=str,
)
def test_what_is_no_tangent(x, x_dot):
    assert not tangent_type(typeof(x), 2).holds(x, x_dot)


def test_zero_and_undefined_are_tangents_of_everything():
    for x in (1.0, np.ones(2), [1.0, (np.ones(2), 3)]):
        kind = tangent_type(typeof(x), 2)
        assert kind.holds(x, ZERO)
    assert tangent_type(float, 2).holds(1.0, undefined("at a kink"))
    assert tangent_type(list, 2).holds([1.0, [2.0]], [ZERO, [undefined("at a kink")]])


@pytest.mark.parametrize(
    ("T", "x"),
    [
        (float, 1),
        (float, np.ones(1)),
        (np.ndarray, np.ones(2, np.float32)),
        (np.ndarray, [1.0]),
        (tuple[float, int], (1.0, 2.0)),
        (tuple[float, int], (1.0,)),
        (tuple[float, ...], (1.0, 2)),
        (list[float], [1.0, "a"]),
        (dict[str, float], {1: 1.0}),
        (dict[str, float], {"a": 1}),
        (Body, Point(1.0, np.ones(1))),
        (float | None, "a"),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_named(T, x):
    kind = tangent_type(T, 2)
    assert not kind.fits(x)
    with pytest.raises(UnsupportedTypeError, match="is wanted"):
        kind.zero(x)
    assert not kind.holds(x, ZERO)


@pytest.mark.parametrize(
    ("T", "x"),
    [
        (tuple[float, ...], (1.0, 2.0, 3.0)),
        (tuple[float, ...], ()),
        (float | None, None),
        (float | None, 2.0),
        (list[T], [1.0, "a"]),
        (tuple[np.ndarray, npt.NDArray[np.int64]], (np.ones(1), np.arange(2))),
        (Box[float], Box(1.0)),
        (Any, Unknown()),
    ],
    ids=str,
)
def test_values_that_fit(T, x):
    assert tangent_type(T, 2).fits(x)


# -- the vector space, pushed to the leaves


def test_sum_multiple_and_product_of_a_composite(rng):
    x = {"a": 2.0, "b": [np.ones((2, 3)), 5], "c": np.ones(2, complex)}
    kind = tangent_type(typeof(x), 3)
    u, v = kind.random(x, rng), kind.random(x, rng)
    w = add_tangents(u, scale_tangent(-2.0, v))
    assert kind.holds(x, w)
    assert_allclose(w["b"][0].lanes, u["b"][0].lanes - 2 * v["b"][0].lanes)
    assert w["b"][1] is NoTangent
    by_hand = [
        u["a"].lanes[k] * v["a"].lanes[k]
        + np.sum(u["b"][0].lanes[k] * v["b"][0].lanes[k])
        + np.vdot(u["c"].lanes[k], v["c"].lanes[k]).real
        for k in range(3)
    ]
    assert_allclose(inner_product(u, v), by_hand, rtol=1e-14)
    assert np.all(inner_product(u, u) > 0)


def test_zero_stands_for_a_whole_composite():
    x = (1.0, [np.ones(2), 2.0])
    one = tangent_type(typeof(x), 2).basis(x)
    part = (one[0], ZERO)
    assert add_tangents(one, ZERO) is one
    assert add_tangents(ZERO, one) is one
    total = add_tangents(part, one)
    assert_array_equal(total[0].lanes, 2 * one[0].lanes)
    assert_array_equal(total[1][0].lanes, one[1][0].lanes)
    assert_array_equal(add_tangents(one, part)[0].lanes, 2 * one[0].lanes)
    assert scale_tangent(3.0, ZERO) is ZERO
    assert inner_product(one, ZERO) == 0
    assert_array_equal(inner_product(part, one), one[0].lanes ** 2)


def test_plain_tangents_of_the_api_are_vectors_too():
    y_dot = (np.arange(3.0), 2.0, NoTangent)
    total = add_tangents(y_dot, scale_tangent(0.5, y_dot))
    assert_array_equal(total[0], [0, 1.5, 3])
    assert total[1:] == (3.0, NoTangent)
    assert inner_product(y_dot, y_dot) == 9.0


def test_different_structures_are_named():
    with pytest.raises(SeedError, match="the second tangent"):
        add_tangents((1.0, 2.0), (1.0, 2.0, 3.0))
    with pytest.raises(SeedError, match=r"the first\[1\]"):
        inner_product((1.0, [2.0]), (1.0, {"a": 2.0}))


def test_chunks_of_other_widths_do_not_multiply():
    with pytest.raises(fwdad.ChunkMismatchError):
        inner_product(Chunk(np.ones((2, 3))), Chunk(np.ones((3, 3))))
    with pytest.raises(fwdad.ChunkMismatchError):
        inner_product(Chunk(np.ones((2, 3))), np.ones(3))


def test_an_undefined_tangent_raises_where_it_is_multiplied():
    bad = (undefined("of a repeated eigenvalue"), 1.0)
    with pytest.raises(fwdad.UndefinedDerivativeError, match="repeated"):
        inner_product(bad, (1.0, 1.0))


def test_a_shared_leaf_is_one_tangent():
    """CASES, forward 4: a list of arrays that two fields of a tuple share."""
    a, b = np.ones(2), np.ones(3)
    shared = [a, b]
    x = (shared, shared, a)
    kind = tangent_type(tuple, 2)
    zero = kind.zero(x)
    assert zero[0] is zero[1]
    assert zero[2] is zero[0][0]
    ones = scale_tangent(2.0, add_tangents(zero, kind.basis(x)))
    assert ones[2] is ones[0][0]
    assert ones[0] is ones[1]
    # each leaf once: 2^2 for the one unit direction of each lane
    assert_array_equal(inner_product(ones, ones), [4.0, 4.0])


def test_equal_numbers_are_not_shared():
    x = (1.0, 1.0)
    one = scale_tangent(1.0, (2.0, 2.0))
    assert inner_product(one, one) == 8.0
    y, y_dot = fwdad.jvp(lambda x: x[0] + 10 * x[1], x, (1.0, 0.0))
    assert (y, y_dot) == (11.0, 1.0)


def test_a_list_that_holds_itself_ends():
    """CASES, forward 7: zero, scale and add terminate."""
    x = [1.0, np.ones(2)]
    x.append(x)
    zero = zero_tangent(x, 2)
    assert zero[2] is zero
    assert_array_equal(zero[1].lanes, np.zeros((2, 2)))
    unit = tangent_type(list, 2).basis(x)
    total = add_tangents(unit, scale_tangent(3.0, unit))
    assert total[2] is total
    assert_array_equal(total[0].lanes, [4.0, 0.0])
    assert_array_equal(inner_product(unit, unit), [1.0, 1.0])
    assert tangent_type(list, 2).holds(x, total)


# -- classes of the user's: taken apart


class Beam:
    def __init__(self, length, load, name):
        if not isinstance(name, str):
            raise TypeError(name)
        self.length, self.load, self.name = length, load, name


def register_beam():
    register_tangent_type(
        Beam,
        flatten=lambda beam: ((beam.length, beam.load), beam.name),
        unflatten=lambda name, children: Beam(*children, name),
    )


@pytest.mark.usefixtures("registered")
def test_a_registered_class_is_differentiated():
    register_beam()
    beam = Beam(2.0, np.array([1.0, 3.0]), "left")
    assert type(tangent_type(Beam, 2)) is CompositeTangent
    assert tangent_type(Beam, 2).holds(beam, zero_tangent(beam, 2))

    def bend(beam):
        return beam.length**3 * np.sum(beam.load**2)

    gradient = fwdad.grad(bend)(beam)
    assert type(gradient) is Beam
    assert_allclose(gradient.length, 3 * 4 * 10.0)
    assert_allclose(gradient.load, 8 * 2 * beam.load)
    assert gradient.name == "left"
    y, y_dot = fwdad.jvp(
        lambda beam: Beam(beam.length * 2, beam.load[::-1], "right"),
        beam,
        Beam(1.0, np.array([0.0, 5.0]), "direction"),
    )
    assert (y.length, y.name, y_dot.length) == (4.0, "right", 2.0)
    assert_array_equal(y_dot.load, [5.0, 0.0])


@pytest.mark.usefixtures("registered")
def test_a_seed_of_another_class_is_named():
    register_beam()
    with pytest.raises(SeedError, match="tuple"):
        fwdad.jvp(lambda beam: beam.length, Beam(2.0, 1.0, "left"), (1.0, 1.0))


@pytest.mark.usefixtures("registered")
def test_subclasses_are_not_taken_for_their_base():
    register_beam()

    class Strut(Beam):
        pass

    with pytest.raises(UnsupportedTypeError, match="register_tangent_type"):
        tangent_type(Strut, 2)
    with pytest.raises(UnsupportedTypeError):
        fwdad.jvp(lambda beam: beam.length, Strut(2.0, 1.0, "left"))


@pytest.mark.usefixtures("registered")
def test_registered_twice():
    register_beam()
    with pytest.raises(DuplicateRuleError, match="override=True"):
        register_beam()
    before = tangent_type(Beam, 2)
    register_tangent_type(
        Beam,
        flatten=lambda beam: ((beam.length,), beam),
        unflatten=lambda beam, children: Beam(*children, beam.load, beam.name),
        override=True,
    )
    assert tangent_type(Beam, 2) is not before
    gradient = fwdad.grad(lambda beam: beam.length * beam.load)(Beam(2.0, 5.0, "left"))
    assert (gradient.length, gradient.load) == (5.0, 5.0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"flatten": len},
        {"unflatten": len},
        {"tangent": float},
        {"tangent": float, "zero": len},
        {"flatten": len, "unflatten": len, "tangent": float},
        {"flatten": len, "unflatten": len, "zero": len},
        {"tangent": 3.0, "zero": len, "inner": len},
        {"flatten": 1, "unflatten": 2},
    ],
    ids=str,
)
def test_half_a_registration(options):
    with pytest.raises(UnsupportedTypeError, match="all of one form"):
        register_tangent_type(Unknown, **options)


def test_only_classes_are_registered():
    with pytest.raises(UnsupportedTypeError, match="wants a class"):
        register_tangent_type(Unknown(), flatten=len, unflatten=len)


# -- classes of the user's: a tangent class of its own


class Angle:
    """A point of the circle, kept as a unit vector."""

    def __init__(self, cos, sin):
        self.cos, self.sin = cos, sin


@dataclass(frozen=True)
class Turn:
    """A tangent of the circle: one number, whatever the point."""

    rate: float

    def __add__(self, other):
        return Turn(self.rate + other.rate)

    def __mul__(self, factor):
        return Turn(self.rate * factor)


def register_angle():
    register_tangent_type(
        Angle,
        tangent=Turn,
        zero=lambda _angle: Turn(0.0),
        inner=lambda t, u: t.rate * u.rate,
    )


@pytest.mark.usefixtures("registered")
def test_a_tangent_class_of_its_own():
    register_angle()
    x = [Angle(1.0, 0.0), 2.0]
    assert type(tangent_type(Angle, 2)) is OwnTangent
    zero = zero_tangent(x, 3)
    assert list(zero[0].lanes) == [Turn(0.0)] * 3
    turn = Chunk(np.array([Turn(1.0), Turn(2.0), Turn(3.0)], object))
    x_dot = [turn, Chunk(np.ones(3))]
    assert tangent_type(list, 3).holds(x, x_dot)
    assert tangent_type(Angle, 3).holds(x[0], turn)
    assert not tangent_type(Angle, 3).holds(x[0], Chunk(np.ones(3)))
    assert not tangent_type(Angle, 2).holds(x[0], turn)
    total = add_tangents(zero, scale_tangent(2.0, x_dot))
    assert list(total[0].lanes) == [Turn(2.0), Turn(4.0), Turn(6.0)]
    assert_array_equal(inner_product(x_dot, total), [2 + 2, 8 + 2, 18 + 2])
    assert inner_product([Turn(3.0), 1.0], [Turn(2.0), 1.0]) == 7.0


@pytest.mark.usefixtures("registered")
def test_nothing_is_known_of_a_tangent_class_beyond_its_operations(rng):
    register_angle()
    with pytest.raises(UnsupportedTypeError, match="no basis"):
        tangent_type(Angle, 2).basis(Angle(1.0, 0.0))
    with pytest.raises(UnsupportedTypeError, match="no basis"):
        tangent_type(Angle, 2).random(Angle(1.0, 0.0), rng)


def test_a_tangent_class_needs_its_operators():
    class Lame:
        def __add__(self, other):
            return self

    with pytest.raises(UnsupportedTypeError, match="Lame has no __mul__"):
        register_tangent_type(Unknown, tangent=Lame, zero=len, inner=len)

"""What cannot be followed of classes with a tangent class of their own says so."""

import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.eager.own_tangents import Affine, AffineDot, Angle, Turn, rates, registered


@pytest.fixture(autouse=True)
def _registered():
    with registered():
        yield


def put_cos(a):
    a.cos = 1.0
    return a.height()


def drop_cos(a):
    del a.cos
    return a.height()


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda a: a.sin + 1, "'sin' of an Angle"),
        (lambda a: getattr(a, "sin") + 1, "'sin' of an Angle"),  # noqa: B009
        (lambda a: a.__dict__["sin"], "'__dict__' of an Angle"),
        (put_cos, "'cos' of an Angle"),
        (drop_cos, "'cos' of an Angle"),
    ],
)
def test_attributes_without_a_rule(f, message):
    with pytest.raises(fwdad.errors.MissingRuleError, match=message) as caught:
        fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
    assert caught.value.filename == __file__


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a + 1,
        lambda a: 2.0 * a,
        lambda a: np.ones(3) @ a,
        lambda a: np.sin(a),
        lambda a: np.sum(a),
        lambda a: np.reshape(a, (1,)),
        lambda a: np.array([a, a]),
        lambda a: np.asarray(a),
        lambda a: np.multiply(a.height(), a),
        lambda a: np.concatenate([[a], [a]]),
        lambda a: np.linalg.norm(a),
        lambda a: math.sin(a),
        lambda a: math.hypot(a, 1.0),
        lambda a: abs(a),
        lambda a: float(a),
        lambda a: complex(a),
        lambda a: int(a),
        lambda a: -a,
        lambda a: a[0],
        lambda a: sum(a),
        lambda a: list(a),
        lambda a: {a: 1.0}[a],
        lambda a: {Angle.of(0.7): 1.0}[a],
        lambda a: pickle.dumps(a),
        lambda a: a(1.0),
        lambda a: a.tan,
    ],
)
def test_uses_that_are_refused(f):
    with pytest.raises((TypeError, AttributeError, fwdad.errors.MissingRuleError)) as caught:
        fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
    assert "Opaque" not in str(caught.value)


def test_attributes_that_have_the_builders_names():
    affine = Affine(2.0, 0.5)
    _, y_dot = fwdad.jvp(lambda f: f.image(3.0), affine, [AffineDot(1.0, 0.0), AffineDot(0.0, 1.0)])
    assert_allclose(y_dot, [3.0, 1.0])
    for name in ("p", "t", "tag"):
        for f in (lambda f, n=name: getattr(f, n), eval(f"lambda f: f.{name}")):
            with pytest.raises(
                fwdad.errors.MissingRuleError, match=f"attribute '{name}'|it might read"
            ):
                fwdad.jvp(f, affine, AffineDot(1.0, 0.0))


def test_code_without_source_calls_methods():
    f = eval("lambda a: 2 * a.height()")
    _, y_dot = fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
    assert_allclose(y_dot, 2 * math.cos(0.7))
    with pytest.raises(fwdad.errors.MissingRuleError, match="'sin' of an Angle"):
        fwdad.jvp(eval("lambda a: a.sin"), Angle.of(0.7), Turn(1.0))


def test_seeds_are_of_the_tangent_class():
    for seed in (1.0, [Turn(1.0), 1.0], []):
        with pytest.raises(fwdad.errors.SeedError, match="Turn"):
            fwdad.jvp(Angle.height, Angle.of(0.7), seed)
    with pytest.raises(fwdad.errors.SeedError, match="no basis"):
        fwdad.jacobian(Angle.height, Angle.of(0.7))


def test_a_linear_operator_acts_on_numbers():
    for f, x in ((Angle.height, Angle.of(0.7)), (Angle.of, 0.7)):
        with pytest.raises(fwdad.errors.UnsupportedTypeError, match="acts on numbers"):
            fwdad.linearize(f, x)


def half(a):
    return a.turned(0.5)


@pytest.mark.parametrize(
    "y_dot",
    [
        lambda a_dot: rates(a_dot),
        lambda a_dot: fwdad.Chunk(a_dot.lanes[:, np.newaxis]),
        lambda a_dot: fwdad.Chunk(np.append(a_dot.lanes, a_dot.lanes)),
    ],
)
def test_rules_that_return_another_tangent(y_dot):
    @fwdad.frule(half)
    def half_frule(primals, tangents):
        return half(primals[0]), y_dot(tangents[0])

    with pytest.raises(fwdad.errors.ChunkMismatchError, match=r"each a Turn|4 lanes"):
        fwdad.jvp(half, Angle.of(0.7), [Turn(1.0), Turn(2.0)])


def test_objects_as_the_tangent_of_a_number():
    @fwdad.frule(half)
    def half_frule(primals, tangents):
        return primals[0].height(), tangents[0]

    with pytest.raises(
        fwdad.errors.ChunkMismatchError, match="tangent of a float is a Chunk of objects"
    ):
        fwdad.jvp(half, Angle.of(0.7), Turn(1.0))


def set_upright(a):
    a.cos, a.sin = 0.0, 1.0


def test_rules_that_write():
    @fwdad.frule(set_upright, mutates=(0,))
    def upright_frule(primals, tangents):
        return (None, Angle.of(math.pi / 2)), (fwdad.tangents.zero.ZERO, tangents[0])

    def f(a):
        set_upright(a)
        return a.height()

    with pytest.raises(fwdad.errors.MissingRuleError, match="a rule can write into arrays only"):
        fwdad.jvp(f, Angle.of(0.7), Turn(1.0))


def test_kinds_whose_tangents_are_known():
    for base in (float, np.ndarray, tuple, dict):
        cls = type("Other", (base,), {})
        with pytest.raises(fwdad.errors.UnsupportedTypeError, match="tangents are fixed"):
            fwdad.register_tangent_type(cls, tangent=Turn, zero=lambda _: Turn(0.0), inner=max)


def test_an_instance_that_outlives_its_call():
    kept = []
    unseen = {"keep": kept.append}  # without source, the list is not restored
    exec("def f(a):\n    keep(a)\n    return a.height()\n", unseen)
    _, y_dot = fwdad.jvp(unseen["f"], Angle.of(0.7), Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7))
    for use in (Angle.height, lambda a: a.height(), lambda a: a.turns, lambda a: a < Angle.of(0.1)):
        with pytest.raises(fwdad.errors.DeadDualError):
            use(kept[0])
        with pytest.raises(fwdad.errors.DeadDualError):
            fwdad.jvp(lambda b, use=use: use(kept[0]) or b.height(), Angle.of(0.7), Turn(1.0))

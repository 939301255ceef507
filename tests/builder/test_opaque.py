"""Classes with a tangent class of their own, through derivatives."""

import functools
import math
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.rules.registry import RULES
from fwdad.tangents import registrations
from fwdad.tangents.laws.listing import dense
from fwdad.tangents.zero import Zero

# -- the circle: a point is a unit vector, a tangent one number


class Angle:
    """A point of the circle, kept as a unit vector."""

    turns = 2 * math.pi

    def __init__(self, cos, sin):
        self.cos, self.sin = cos, sin

    def turned(self, by):
        return Angle(
            self.cos * math.cos(by) - self.sin * math.sin(by),
            self.sin * math.cos(by) + self.cos * math.sin(by),
        )

    def height(self):
        return self.sin

    def width(self):
        return self.cos

    def twice_height(self):
        return 2 * self.height()

    @property
    def up(self):
        return 3 * self.height()

    @staticmethod
    def of(t):
        return Angle(math.cos(t), math.sin(t))

    @classmethod
    def full(cls):
        return cls.turns

    def __lt__(self, other):
        return self.sin < other.sin

    def __eq__(self, other):
        return (self.cos, self.sin) == (other.cos, other.sin)

    def __hash__(self):
        return hash((self.cos, self.sin))


@dataclass(frozen=True)
class Turn:
    """A tangent of the circle."""

    rate: float

    def __add__(self, other):
        return Turn(self.rate + other.rate)

    def __mul__(self, factor):
        return Turn(self.rate * factor)


def rates(angle_dot):
    """The plain lanes of a chunk of turns."""
    return fwdad.Chunk(np.array([turn.rate for turn in angle_dot.lanes]))


def turns(t_dot):
    """A chunk of turns of plain lanes."""
    lanes = np.empty(t_dot.n, object)
    for k in range(t_dot.n):
        lanes[k] = Turn(t_dot.lanes[k])
    return fwdad.Chunk(lanes)


# -- rotations: a value is a unit quaternion, a tangent the angular velocity in the body's frame


class Rotation:
    def __init__(self, w, v):
        self.w, self.v = w, v

    @staticmethod
    def about(r):
        """The rotation by the length of r about r."""
        angle = math.sqrt(r @ r)
        return Rotation(math.cos(angle / 2), 0.5 * np.sinc(angle / (2 * math.pi)) * r)

    def __mul__(self, other):
        return Rotation(
            self.w * other.w - self.v @ other.v,
            self.w * other.v + other.w * self.v + np.cross(self.v, other.v),
        )

    def __matmul__(self, x):
        return x + 2 * np.cross(self.v, np.cross(self.v, x) + self.w * x)

    def __call__(self, x):
        return self @ x

    def matrix(self):
        return np.stack([self @ e for e in np.eye(3)], axis=1)


@dataclass(frozen=True)
class Spin:
    w: np.ndarray

    def __add__(self, other):
        return Spin(self.w + other.w)

    def __mul__(self, factor):
        return Spin(self.w * factor)


def spins(lanes):
    made = np.empty(len(lanes), object)
    made[:] = [Spin(w) for w in lanes]
    return fwdad.Chunk(made)


def velocities(r_dot):
    return np.stack([spin.w for spin in r_dot.lanes])


def moved(r, w):
    """The rotation a little further, as the tangent class means it."""
    return r * Rotation.about(w)


# -- a class whose attributes have the names that the builder's own have


class Affine:
    def __init__(self, p, t):
        self.p, self.t, self.tag = p, t, "affine"

    def image(self, x):
        return self.p * x + self.t


@dataclass(frozen=True)
class AffineDot:
    p: float
    t: float

    def __add__(self, other):
        return AffineDot(self.p + other.p, self.t + other.t)

    def __mul__(self, factor):
        return AffineDot(self.p * factor, self.t * factor)


def _register_rules():
    @fwdad.frule(Angle.height)
    def height_frule(primals, tangents):
        (angle,), (angle_dot,) = primals, tangents
        return angle.height(), angle.width() * rates(angle_dot)

    @fwdad.frule(Angle.width)
    def width_frule(primals, tangents):
        (angle,), (angle_dot,) = primals, tangents
        return angle.width(), -angle.height() * rates(angle_dot)

    @fwdad.frule(Angle.of)
    def of_frule(primals, tangents):
        (t,), (t_dot,) = primals, tangents
        return Angle.of(t), turns(t_dot)

    @fwdad.frule(Angle.turned)
    def turned_frule(primals, tangents):
        (angle, by), (angle_dot, by_dot) = primals, tangents
        y_dot = angle_dot
        if not isinstance(by_dot, Zero):
            y_dot = turns(by_dot) + y_dot
        return angle.turned(by), y_dot

    @fwdad.frule(Rotation.about)
    def about_frule(primals, tangents):
        (r,), (r_dot,) = primals, tangents
        angle = math.sqrt(r @ r)
        k = np.cross(np.eye(3), r)  # k @ x is the cross product of r and x
        right = (  # the right Jacobian of the exponential map of rotations
            np.eye(3)
            - (1 - math.cos(angle)) / angle**2 * k
            + (angle - math.sin(angle)) / angle**3 * k @ k
        )
        return Rotation.about(r), spins(r_dot.lanes @ right.T)

    @fwdad.frule(Rotation.__mul__)
    def mul_frule(primals, tangents):
        (a, b), (a_dot, b_dot) = primals, tangents
        y_dot = b_dot
        if not isinstance(a_dot, Zero):
            y_dot = spins(velocities(a_dot) @ b.matrix()) + dense(b_dot, b, a_dot.n)
        return a * b, y_dot

    @fwdad.frule(Rotation.__matmul__)
    def matmul_frule(primals, tangents):
        (r, x), (r_dot, x_dot) = primals, tangents
        matrix = r.matrix()
        y_dot = fwdad.tangents.zero.ZERO
        if not isinstance(r_dot, Zero):
            y_dot = fwdad.Chunk(np.cross(velocities(r_dot), x) @ matrix.T)
        return r @ x, y_dot + matrix @ x_dot

    @fwdad.frule(Affine.image)
    def image_frule(primals, tangents):
        (f, x), (f_dot, x_dot) = primals, tangents
        y_dot = fwdad.Chunk(np.array([d.p * x + d.t for d in f_dot.lanes]))
        return f.image(x), y_dot + f.p * x_dot


@pytest.fixture(autouse=True)
def _registered():
    before = dict(RULES)
    fwdad.register_tangent_type(
        Angle, tangent=Turn, zero=lambda _: Turn(0.0), inner=lambda t, u: t.rate * u.rate
    )
    fwdad.register_tangent_type(
        Rotation, tangent=Spin, zero=lambda _: Spin(np.zeros(3)), inner=lambda t, u: t.w @ u.w
    )
    fwdad.register_tangent_type(
        Affine,
        tangent=AffineDot,
        zero=lambda _: AffineDot(0.0, 0.0),
        inner=lambda t, u: t.p * u.p + t.t * u.t,
    )
    _register_rules()
    yield
    for f in set(RULES) - set(before):
        del RULES[f]
    for cls in (Angle, Rotation, Affine):
        del registrations.OWN[cls]


def differences(f, h=1e-6):
    return (f(h) - f(-h)) / (2 * h)


def test_one_direction():
    y, y_dot = fwdad.jvp(lambda a: 3 * a.height() ** 2, Angle.of(0.7), Turn(1.0))
    assert_allclose(y, 3 * math.sin(0.7) ** 2)
    assert_allclose(y_dot, 6 * math.sin(0.7) * math.cos(0.7))


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_directions_and_answers_of_the_class(chunk, count):
    turn, time = np.arange(count) - 1.0, np.arange(count) ** 2 + 0.5
    y, y_dot = fwdad.jvp(
        lambda x: (x["a"].turned(x["t"]), x["a"].turned(2 * x["t"]).height()),
        {"a": Angle.of(0.3), "t": 0.5},
        {"a": [Turn(rate) for rate in turn], "t": time},
        chunk=chunk,
    )
    assert_allclose([y[0].cos, y[0].sin], [math.cos(0.8), math.sin(0.8)])
    assert_allclose([each.rate for each in y_dot[0]], turn + time)
    assert_allclose(y_dot[1], (turn + 2 * time) * math.cos(1.3))


def squared_height(t):
    return Angle.of(t * t).height()


def test_made_inside():
    assert_allclose(fwdad.derivative(squared_height, 0.9), 1.8 * math.cos(0.81))


def pose(r, x):
    """A program: rotations made, composed, applied by operators and calls, in containers."""
    turn = Rotation.about(0.3 * x + np.array([0.1, -0.2, 0.4]))
    chain = [turn, r * turn, turn * r]
    y = x
    for each in chain:
        y = each @ y + np.sin(each(y))
    return y


@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_rotations(chunk):
    rng = np.random.default_rng(1)
    r, x = Rotation.about(rng.normal(size=3)), rng.normal(size=3)
    w, v = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    y, y_dot = fwdad.jvp(
        lambda both: pose(*both), (r, x), ([Spin(each) for each in w], v), chunk=chunk
    )
    assert_allclose(y, pose(r, x), rtol=1e-14)
    expected = [
        differences(lambda h, k=k: pose(moved(r, h * w[k]), x + h * v[k])) for k in range(5)
    ]
    assert_allclose(y_dot, expected, rtol=1e-7, atol=1e-8)


def test_jacobian_of_a_program_with_rotations_inside():
    r, x = Rotation.about(np.array([0.2, 0.5, -0.3])), np.array([0.4, -0.7, 1.1])
    expected = np.stack([differences(lambda h, e=e: pose(r, x + h * e)) for e in np.eye(3)], axis=1)
    for chunk in (1, 2, None):
        got = fwdad.jacobian(lambda x: pose(r, x), x, chunk=chunk)
        assert_allclose(got, expected, rtol=1e-7, atol=1e-8)


def test_jacobian_of_an_answer_of_the_class():
    x = np.array([0.4, -0.7, 1.1])
    columns = fwdad.jacobian(lambda x: Rotation.about(0.5 * x), x, chunk=2)
    assert columns.shape == (3,)
    for k, spin in enumerate(columns):
        moving = differences(lambda h, k=k: Rotation.about(0.5 * (x + h * np.eye(3)[k])).matrix())
        rate = Rotation.about(0.5 * x).matrix().T @ moving  # the matrix of the cross product
        assert_allclose(spin.w, [rate[2, 1], rate[0, 2], rate[1, 0]], atol=1e-8)


def test_seeds_and_scalings_of_the_chunk():
    def program(a):
        return a.turned(0.0).turned(1.0).height()

    _, y_dot = fwdad.jvp(program, Angle.of(0.2), [Turn(1.0), Turn(-2.0)])
    assert_allclose(y_dot, np.array([1.0, -2.0]) * math.cos(1.2))
    _, y_dot = fwdad.jvp(
        lambda x: x[0].turned(x[1]).height(), (Angle.of(0.2), 1.0), (fwdad.tangents.zero.ZERO, 1.0)
    )
    assert_allclose(y_dot, math.cos(1.2))


def test_an_answer_that_does_not_move():
    _, y_dot = fwdad.jvp(lambda t: (Angle.of(1.0), t), 2.0, [1.0, 2.0])
    assert [turn.rate for turn in y_dot[0]] == [0.0, 0.0]


# -- nested


def test_second_derivative():
    t = 0.6
    second = 2 * math.cos(t * t) - 4 * t * t * math.sin(t * t)
    assert_allclose(fwdad.derivative(fwdad.jacfwd(squared_height), t), second)
    assert_allclose(fwdad.hessian(squared_height, t), second)


def test_an_inner_derivative_of_an_outer_instance():
    def f(a):  # cos(angle + s) at s = 0.4, differentiated by s: -sin(angle + 0.4)
        return fwdad.derivative(lambda s: a.turned(s).width(), 0.4)

    y, y_dot = fwdad.jvp(f, Angle.of(0.3), [Turn(1.0), Turn(2.0)])
    assert_allclose(y, -math.sin(0.7))
    assert_allclose(y_dot, np.array([-1.0, -2.0]) * math.cos(0.7))


def test_outer_and_inner_directions_are_kept_apart():
    def f(t):
        inner = fwdad.derivative(lambda s: Angle.of(t).turned(s).height(), 0.0)
        return inner * t  # cos(t) t

    assert_allclose(fwdad.derivative(f, 1.1), math.cos(1.1) - 1.1 * math.sin(1.1))


def test_derivatives_of_a_tangent():
    def speed(t):  # d/ds of the angle s t**2, at s = 1
        return fwdad.jvp(lambda s: Angle.of(s * t * t), 1.0, 1.0)[1].rate

    assert_allclose(fwdad.derivative(speed, 0.6), 1.2)
    assert_allclose(fwdad.derivative(fwdad.jacfwd(speed), 0.6), 2.0)

    def second(x):
        return fwdad.jacobian(lambda s: Angle.of(s @ x**2), np.ones(2))[1].rate

    for chunk in (1, 2):
        assert_allclose(fwdad.jacobian(second, np.array([0.6, 0.7]), chunk=chunk), [0.0, 1.4])


# -- what a program may ask of an instance


def test_methods_properties_and_constants_of_the_class():
    for f, scale in (
        (Angle.height, 1.0),
        (lambda a: a.twice_height(), 2.0),
        (lambda a: a.up, 3.0),
        (lambda a: getattr(a, "up") * 1.0, 3.0),  # noqa: B009  (the builtin is what is tested)
        (lambda a: a.turns * a.height(), 2 * math.pi),
        (lambda a: a.full() * a.height(), 2 * math.pi),
        (lambda a: sum([a.height(), *map(Angle.height, [a])]), 2.0),
    ):
        _, y_dot = fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
        assert_allclose(y_dot, scale * math.cos(0.7))


def test_decisions_see_the_value():
    high = Angle.of(1.5)

    def f(a):
        assert isinstance(a, Angle)
        assert type(a) is Angle
        assert a < high
        assert not high < a
        assert a == Angle(a_plain.cos, a_plain.sin)
        assert a != high
        assert bool(a)
        assert hasattr(a, "cos")
        assert not hasattr(a, "tan")
        assert not callable(a)
        return min(a, high, key=Angle.height).height()

    a_plain = Angle.of(0.7)
    _, y_dot = fwdad.jvp(f, a_plain, Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7))


def test_containers_and_closures_hold_instances():
    @dataclass
    class Arm:
        joint: Angle
        length: float

    def f(a, length):
        arms = {"upper": Arm(a, length), "lower": [Arm(a.turned(0.5), 2.0)]}

        def reach(arm):
            return arm.joint.height() * arm.length

        return reach(arms["upper"]) + sum(reach(arm) for arm in arms["lower"])

    _, y_dot = fwdad.jvp(lambda x: f(*x), (Angle.of(0.2), 1.5), (Turn(1.0), 1.0))
    assert_allclose(y_dot, 1.5 * math.cos(0.2) + math.sin(0.2) + 2 * math.cos(0.7))


def test_cached_functions_do_not_mix_tangents():
    @functools.cache
    def high(a):
        return a.height()

    high(Angle.of(0.7))
    _, y_dot = fwdad.jvp(high, Angle.of(0.7), Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7))


def test_stop_gradient_and_auxiliary_values():
    a = Angle.of(0.7)
    _, y_dot = fwdad.jvp(lambda a: a.height() * fwdad.stop_gradient(a).sin, a, Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7) * math.sin(0.7))
    y, _, aux = fwdad.jvp(lambda a: (a.height(), a), a, Turn(1.0), has_aux=True)
    assert_allclose(y, math.sin(0.7))
    assert type(aux) is Angle


# -- what cannot be followed says so


def put_cos(a):
    a.cos = 1.0
    return a.height()


def drop_cos(a):
    del a.cos
    return a.height()


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda a: a.sin + 1, "'sin' of a Angle"),
        (lambda a: getattr(a, "sin") + 1, "'sin' of a Angle"),  # noqa: B009
        (lambda a: a.__dict__["sin"], "'__dict__' of a Angle"),
        (put_cos, "'cos' of a Angle"),
        (drop_cos, "'cos' of a Angle"),
    ],
)
def test_attributes_without_a_rule(f, message):
    with pytest.raises(fwdad.MissingRuleError, match=message) as caught:
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
    with pytest.raises((TypeError, AttributeError, fwdad.MissingRuleError)) as caught:
        fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
    assert "Opaque" not in str(caught.value)


def test_attributes_that_have_the_builders_names():
    affine = Affine(2.0, 0.5)
    _, y_dot = fwdad.jvp(lambda f: f.image(3.0), affine, [AffineDot(1.0, 0.0), AffineDot(0.0, 1.0)])
    assert_allclose(y_dot, [3.0, 1.0])
    for name in ("p", "t", "tag"):
        for f in (lambda f, n=name: getattr(f, n), eval(f"lambda f: f.{name}")):
            with pytest.raises(fwdad.MissingRuleError, match=f"attribute '{name}'|it might read"):
                fwdad.jvp(f, affine, AffineDot(1.0, 0.0))


def test_code_without_source_calls_methods():
    f = eval("lambda a: 2 * a.height()")
    _, y_dot = fwdad.jvp(f, Angle.of(0.7), Turn(1.0))
    assert_allclose(y_dot, 2 * math.cos(0.7))
    with pytest.raises(fwdad.MissingRuleError, match="'sin' of a Angle"):
        fwdad.jvp(eval("lambda a: a.sin"), Angle.of(0.7), Turn(1.0))


def test_seeds_are_of_the_tangent_class():
    for seed in (1.0, [Turn(1.0), 1.0], []):
        with pytest.raises(fwdad.SeedError, match="Turn"):
            fwdad.jvp(Angle.height, Angle.of(0.7), seed)
    with pytest.raises(fwdad.SeedError, match="no basis"):
        fwdad.jacobian(Angle.height, Angle.of(0.7))


def test_a_linear_operator_acts_on_numbers():
    for f, x in ((Angle.height, Angle.of(0.7)), (Angle.of, 0.7)):
        with pytest.raises(fwdad.UnsupportedTypeError, match="acts on numbers"):
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
def test_rules_that_answer_another_tangent(y_dot):
    @fwdad.frule(half)
    def half_frule(primals, tangents):
        return half(primals[0]), y_dot(tangents[0])

    with pytest.raises(fwdad.ChunkMismatchError, match="each a Turn"):
        fwdad.jvp(half, Angle.of(0.7), [Turn(1.0), Turn(2.0)])


def test_objects_as_the_tangent_of_a_number():
    @fwdad.frule(half)
    def half_frule(primals, tangents):
        return primals[0].height(), tangents[0]

    with pytest.raises(fwdad.ChunkMismatchError, match="tangent of a float is a chunk of objects"):
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

    with pytest.raises(fwdad.MissingRuleError, match="only arrays can be written"):
        fwdad.jvp(f, Angle.of(0.7), Turn(1.0))


def test_kinds_whose_tangents_are_known():
    for base in (float, np.ndarray, tuple, dict):
        cls = type("Other", (base,), {})
        with pytest.raises(fwdad.UnsupportedTypeError, match="tangents are known"):
            fwdad.register_tangent_type(cls, tangent=Turn, zero=lambda _: Turn(0.0), inner=max)


def test_an_instance_that_outlives_its_call():
    kept = []
    unseen = {"keep": kept.append}  # without source, the list is not put back
    exec("def f(a):\n    keep(a)\n    return a.height()\n", unseen)
    _, y_dot = fwdad.jvp(unseen["f"], Angle.of(0.7), Turn(1.0))
    assert_allclose(y_dot, math.cos(0.7))
    for use in (Angle.height, lambda a: a.height(), lambda a: a.turns, lambda a: a < Angle.of(0.1)):
        with pytest.raises(fwdad.DeadDualError):
            use(kept[0])
        with pytest.raises(fwdad.DeadDualError):
            fwdad.jvp(lambda b, use=use: use(kept[0]) or b.height(), Angle.of(0.7), Turn(1.0))

"""The harness catches what it is there for: each planted fault is seen by exactly one check."""

import numpy as np
import pytest

from fwdad.errors import (
    ChunkMismatchError,
    ChunkOperationError,
    MissingRuleError,
    MissingTransposeError,
    NonlinearTangentError,
)
from fwdad.rules.adjoints import TRANSPOSES, transpose
from fwdad.rules.define import frule
from fwdad.rules.registry import RULES
from fwdad.tangents.chunk import Chunk, map_lanes, plain
from fwdad.tangents.zero import ZERO, Zero, undefined
from fwdad.testing import CheckError, check_derivatives, check_frule, check_transpose
from fwdad.testing.frules import failing_checks
from fwdad.testing.recording import OpaqueTangentError, RecordingTangent, pull_back

X = np.array([0.3, -1.2, 2.1])
M = np.array([[0.7, 1.9, -0.4], [1.1, -0.6, 0.8]])


@pytest.fixture
def plant():
    """Register a rule for a fresh function, and take it away again."""
    planted = []

    def register(function, body, **options):
        frule(function, **options)(body)
        planted.append(function)
        return function

    yield register
    for function in planted:
        RULES.pop(function)
        TRANSPOSES.pop(function, None)


def sine(x):
    return np.sin(x)


def product(x, y):
    return x * y


def sine_body(primals, tangents):
    """The right rule of sine, beside which the faults are planted."""
    (x,), (x_dot,) = primals, tangents
    return np.sin(x), np.cos(x) * x_dot


def product_body(primals, tangents):
    (x, y), (x_dot, y_dot) = primals, tangents
    return x * y, x_dot * y + x * y_dot


def caught(function, *args, options=None, **settings):
    return sorted(failing_checks(function, args, options, **settings))


# -- the right rules pass: a harness that fails everything would catch every fault


def test_right_rules_pass(plant):
    plant(sine, sine_body)
    plant(product, product_body)
    check_frule(sine, X)
    check_frule(sine, 0.3)
    check_frule(sine, np.float64(0.3))
    check_frule(sine, X + 0.5j)
    check_frule(sine, X.astype(np.float32))
    check_frule(product, X, M)
    check_frule(product, 2.0, M.T)
    check_frule(product, X, M + 1j)


# -- planted faults


def test_unaligned_chunk(plant):
    """A bare leading axis: at N = 2 and y of two rows the answer is wrong with the right shape."""

    def body(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        if isinstance(x_dot, Zero) or isinstance(y_dot, Zero):
            return x * y, x_dot * y + x * y_dot
        return x * y, Chunk(x_dot.lanes * y + x * y_dot.lanes)

    plant(product, body)
    assert caught(product, X, M, chunk=(1, 2), opaque=True) == ["lanes"]
    with pytest.raises(AssertionError, match=r"N = 2, lane 0 .* active x, y: max error"):
        check_frule(product, X, M, opaque=True)


def test_unaligned_chunk_needs_a_width_equal_to_a_length(plant):
    """Transposed as ``lanes.T`` the fault hides at every width but N = 3, the length of x."""

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        lanes = np.cos(x) * x_dot.lanes
        return np.sin(x), Chunk(lanes.T if lanes.shape == (3, 3) else lanes)

    plant(sine, body)
    assert caught(sine, X, chunk=(1, 2), opaque=True) == ["lanes"]


def test_one_seed_for_all_lanes(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        lanes = x_dot.lanes
        return np.sin(x), Chunk(np.broadcast_to(np.cos(x) * lanes[:1], lanes.shape))

    plant(sine, body)
    assert caught(sine, X, opaque=True) == ["lanes"]


def test_affine_leak(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), Chunk((np.cos(x) * x_dot).lanes + 1e-9)

    plant(sine, body)
    assert caught(sine, X, opaque=True) == ["linearity"]


def test_dropped_term(plant):
    """Right for each argument alone, wrong where both are active."""

    def body(primals, tangents):
        (x, y), (x_dot, y_dot) = primals, tangents
        return x * y, (x * y_dot if isinstance(x_dot, Zero) else (x_dot * y) + 0 * x * y_dot)

    plant(product, body)
    assert caught(product, M, M + 1) == ["patterns"]


def test_mutated_input(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y, y_dot = np.sin(x), np.cos(x) * x_dot
        x[-1] = 0.0
        return y, y_dot

    plant(sine, body)
    x = X.copy()
    assert caught(sine, x) == ["inputs"]
    np.testing.assert_array_equal(x, X)


def test_mutated_lanes(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        y_dot = Chunk((np.cos(x) * x_dot).lanes)
        x_dot.lanes[...] *= 2
        return np.sin(x), y_dot

    plant(sine, body)
    assert caught(sine, X, opaque=True) == ["inputs"]


def test_mutated_option(plant):
    def weighted(x, *, weights=None):
        return x * weights

    def body(primals, tangents, *, weights):
        (x,), (x_dot,) = primals, tangents
        y, y_dot = x * weights, x_dot * weights
        weights += 1
        return y, y_dot

    plant(weighted, body)
    assert caught(weighted, X, options={"weights": np.arange(3.0)}) == ["inputs"]


def test_aliased_output(plant):
    def duplicate(x):
        return x.copy()

    plant(duplicate, lambda primals, tangents: (primals[0], +tangents[0]))
    assert caught(duplicate, X) == ["aliasing"]


def test_lost_view(plant):
    """The other way round: what is a view of the argument has to stay one."""

    def reverse(x):
        return x[::-1]

    plant(reverse, lambda primals, tangents: (primals[0][::-1].copy(), tangents[0][::-1]))
    assert caught(reverse, X) == ["aliasing"]


def test_aliased_tangent(plant):
    """A scaling that is the caller's own array would change when the caller writes there."""

    def square(x):
        return x * x

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x * x, 2 * x_dot.scale(x, x.shape)

    plant(square, body)
    assert caught(square, X) == []  # the 2 made a new array

    def half_square(x):
        return x * x / 2

    def half_body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x * x / 2, x_dot.scale(x, x.shape)

    plant(half_square, half_body)
    assert caught(half_square, X) == ["aliasing"]


def test_read_only_output(plant):
    def total(x):
        return np.full(4, x.sum())

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.broadcast_to(x.sum(), 4), np.broadcast_to(np.sum(x_dot), (4,))

    plant(total, body)
    assert caught(total, X) == ["writeable"]


def test_wrong_dtype_of_the_primal(plant):
    def to_complex(x):
        return np.sin(x).astype(complex)

    plant(to_complex, sine_body)
    assert caught(to_complex, X) == ["primal"]
    with pytest.raises(AssertionError, match="dtype float64 came, complex128 is right"):
        check_frule(to_complex, X)


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda y: np.asarray(y * (1 + 3e-16)), "not bit-equal"),
        (np.float64, "float64 came, ndarray is right"),
        (lambda y: [y], "list came, ndarray is right"),
    ],
)
def test_wrong_primal(plant, wrap, message):
    def total(x):
        return np.asarray(np.sum(x))

    def body(primals, tangents):
        return wrap(np.asarray(np.sum(primals[0]))), np.sum(tangents[0])

    plant(total, body)
    with pytest.raises(CheckError, match=message) as failure:
        check_frule(total, X)
    assert failure.value.check == "primal"


@pytest.mark.parametrize(
    "body",
    [
        lambda primals, tangents: (np.sin(primals[0]), tangents[0] * tangents[0]),
        lambda primals, tangents: (np.sin(primals[0]), np.sin(tangents[0])),
        lambda primals, tangents: (np.sin(primals[0]), tangents[0] + 1.0),
        lambda primals, tangents: (np.sin(primals[0]), np.sort(tangents[0])),
    ],
)
def test_nonlinear_use(plant, body):
    plant(sine, body)
    assert caught(sine, X) == ["operations"]


def test_wrong_derivative(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), np.cos(x) * (1 + 1e-5) * x_dot

    plant(sine, body)
    assert caught(sine, X) == ["differences"]


def test_derivative_right_on_the_real_axis_only(plant):
    """The seed of a complex argument has real and imaginary parts."""

    def conjugate(x):
        return np.conj(x)

    plant(conjugate, lambda primals, tangents: (np.conj(primals[0]), +tangents[0]))
    assert caught(conjugate, X + 0j) == ["differences"]


def test_complex_tangent_of_a_real_result(plant):
    def real_part(x):
        return np.real(x).copy()

    plant(real_part, lambda primals, tangents: (np.real(primals[0]).copy(), tangents[0]))
    assert "structure" in caught(real_part, X + 1j)


@pytest.mark.parametrize(
    ("y_dot", "message"),
    [
        (lambda t: (t, t), "no tangent"),
        (lambda t: t.lanes, "ndarray is no tangent"),
        (lambda t: np.sum(t), "for 2 lanes of shape"),
        (lambda t: undefined("never"), "every tangent is undefined"),
    ],
)
def test_wrong_structure(plant, y_dot, message):
    plant(sine, lambda primals, tangents: (np.sin(primals[0]), y_dot(tangents[0])))
    with pytest.raises(CheckError, match=message) as failure:
        check_frule(sine, X, opaque=True)
    assert failure.value.check == "structure"


def test_tangents_of_too_few_results(plant):
    def both(x):
        return np.sin(x), np.cos(x)

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return both(x), (np.cos(x) * x_dot,)

    plant(both, body)
    with pytest.raises(CheckError, match="a tuple of 2 parts, but 1 tangents came"):
        check_frule(both, X)


def test_promoted_float32(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), np.float64(1.0) * (np.cos(x) * x_dot)

    plant(sine, body)
    assert caught(sine, X) == ["float32"]


def test_opaque_rule_without_a_transpose(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), Chunk(np.cos(x) * x_dot.lanes)

    plant(sine, body)
    assert caught(sine, X) == ["recording"]
    assert caught(sine, X, opaque=True) == []


def double(x):
    return 2 * x


def double_body(primals, tangents):
    return 2 * primals[0], Chunk(2 * tangents[0].lanes)


def test_transpose_of_an_opaque_rule(plant):
    plant(double, double_body)
    with pytest.raises(MissingTransposeError, match="double has no transpose for argument 0"):
        check_transpose(double, X)
    transpose(double)(lambda y_bar, x: 2 * y_bar)
    check_transpose(double, X)
    assert caught(double, X) == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda y_bar, x: y_bar,
        lambda y_bar, x: 2 * y_bar + Chunk(np.full(y_bar.lanes.shape, 1e-9)),
        lambda y_bar, x: 2 * y_bar[::-1],
        lambda y_bar, x: ZERO,
        lambda y_bar, x: np.sum(y_bar),
    ],
)
def test_wrong_transpose(plant, wrong):
    plant(double, double_body)
    transpose(double)(wrong)
    assert caught(double, X) == ["recording"]
    with pytest.raises(CheckError) as failure:
        check_transpose(double, X)
    assert failure.value.check == "transpose"


@pytest.mark.parametrize(
    "wrong", [lambda y_bar, x: (1 + 2j) * y_bar, lambda y_bar, x: (1 - 2j) * np.conj(y_bar)]
)
def test_wrong_complex_transpose(plant, wrong):
    """Under Re<., .> the adjoint of a complex factor is its conjugate."""

    def turn(x):
        return (1 + 2j) * x

    def body(primals, tangents):
        return turn(primals[0]), Chunk((1 + 2j) * tangents[0].lanes)

    plant(turn, body)
    transpose(turn)(wrong)
    with pytest.raises(CheckError, match="adjoint"):
        check_transpose(turn, X + 1j)
    transpose(turn, override=True)(lambda y_bar, x: (1 - 2j) * y_bar)
    check_transpose(turn, X + 1j)
    with pytest.raises(CheckError, match="complex cotangent came for the real x"):
        check_transpose(turn, X)


def test_rule_that_loses_an_enclosing_derivative(plant):
    """The cosine is a constant to whoever differentiates the pushforward again."""

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), np.cos(plain(x)) * x_dot

    plant(sine, body)
    assert caught(sine, X) == ["second order"]
    check_frule(sine, X, second_order=False)


def test_rule_that_cannot_be_nested(plant):
    """An enclosing derivative's number would become an int, which has no tangent."""

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        one = int(0 * x[0]) + 1
        return np.sin(x), one * np.cos(x) * x_dot

    plant(sine, body)
    assert caught(sine, X) == ["second order"]


# -- what the harness asks of its user


def test_a_looser_tolerance_carries_its_reason(plant):
    plant(sine, sine_body)
    with pytest.raises(ValueError, match=r"rtol=0\.001 is looser than 1e-07: say why"):
        check_frule(sine, X, rtol=1e-3)
    check_frule(sine, X, rtol=1e-3, reason="to show it")
    check_frule(sine, X, rtol=1e-9)


def test_a_kink_is_no_place_for_differences(plant):
    def size(x):
        return np.abs(x)

    plant(size, lambda primals, tangents: (np.abs(primals[0]), np.sign(primals[0]) * tangents[0]))
    check_frule(size, X)
    with pytest.raises(CheckError, match="away from kinks") as failure:
        check_frule(size, np.array([1.0, 1e-9]))
    assert failure.value.check == "differences"


def test_arguments_without_a_tangent_space():
    with pytest.raises(ValueError, match="no argument has a tangent space"):
        check_frule(np.sin, 3)


def test_a_failing_rule_says_where_it_failed(plant):
    def body(primals, tangents):
        raise RuntimeError("planted")

    plant(sine, body)
    with pytest.raises(RuntimeError, match="planted"):
        check_frule(sine, X)


def test_containers(plant):
    def joined(parts, scale):
        return parts[0] * scale + parts[1].sum(), scale * 2

    def body(primals, tangents):
        (parts, scale), (parts_dot, scale_dot) = primals, tangents
        first, second = (ZERO, ZERO) if isinstance(parts_dot, Zero) else parts_dot
        total = parts[0] * scale + parts[1].sum()
        grown = first * scale + np.broadcast_to(parts[0] * scale_dot, total.shape)
        summed = np.broadcast_to(np.sum(second), total.shape)
        return (total, scale * 2), (grown + summed, scale_dot * 2)

    plant(joined, body)
    check_frule(joined, [X, M], 1.5)
    check_frule(joined, (X, M), 1.5)


# -- derived rules


def logistic(x, rate=1.0):
    y = np.empty_like(x)
    y[...] = 1 / (1 + np.exp(-rate * x))
    return y


def test_derived_rule_without_a_written_one():
    check_frule(logistic, X)
    check_frule(logistic, X, rate=0.5)
    check_frule(logistic, X, 0.5)
    check_frule(logistic, X + 0.25j)
    check_derivatives(logistic, X)
    assert caught(logistic, M) == []


def test_derived_and_written_rules_agree(plant):
    def body(primals, tangents, *, rate):
        (x,), (x_dot,) = primals, tangents
        y = logistic(x, rate)
        return y, rate * y * (1 - y) * x_dot

    plant(logistic, body)
    check_derivatives(logistic, X, rate=0.5)
    assert RULES[logistic].body is body


def test_wrong_written_rule_beside_the_derived_one(plant):
    def body(primals, tangents, *, rate):
        (x,), (x_dot,) = primals, tangents
        y = logistic(x, rate)
        return y, (1 + 1e-9) * rate * y * (1 - y) * x_dot

    plant(logistic, body)
    check_frule(logistic, X, rate=0.5)  # too small for differences
    with pytest.raises(CheckError, match="written rule and the derived one differ") as failure:
        check_derivatives(logistic, X, rate=0.5)
    assert failure.value.check == "derivatives"
    assert RULES[logistic].body is body


def test_derivatives_of_a_function_without_a_source():
    with pytest.raises(MissingRuleError, match=r"numpy\.sin"):
        check_derivatives(np.sin, X)
    assert np.sin in RULES


# -- recording


def recorded(n=2):
    return RecordingTangent(Chunk(np.ones((n, 3))))


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda t: t.lanes, OpaqueTangentError),
        (lambda t: t.terms, OpaqueTangentError),
        (lambda t: map_lanes(lambda lane: lane, t), OpaqueTangentError),
        (lambda t: t * t, NonlinearTangentError),
        (lambda t: t / t, NonlinearTangentError),
        (lambda t: 1 / t, NonlinearTangentError),
        (lambda t: t**2, NonlinearTangentError),
        (lambda t: np.sin(t), NonlinearTangentError),
        (lambda t: t @ t, NonlinearTangentError),
        (lambda t: np.multiply(t, t), NonlinearTangentError),
        (lambda t: t + 1.0, ChunkOperationError),
        (lambda t: np.sort(t), ChunkOperationError),
        (lambda t: np.asarray(t), ChunkOperationError),
        (lambda t: t + recorded(4), ChunkMismatchError),
    ],
)
def test_a_recording_tangent_takes_the_closed_list_only(use, error):
    with pytest.raises(error):
        use(recorded())


def test_a_recording_tangent_passes_for_a_chunk():
    x_dot = recorded()
    assert isinstance(x_dot, Chunk)
    assert (x_dot.n, x_dot.shape, x_dot.ndim, x_dot.size, len(x_dot)) == (2, (3,), 1, 3, 3)
    assert x_dot.dtype == np.float64
    assert x_dot + ZERO is x_dot
    assert ZERO + x_dot is x_dot
    assert x_dot * ZERO is ZERO
    assert x_dot @ ZERO is ZERO
    y_dot = np.sum(2.0 * x_dot - x_dot[::-1])
    assert isinstance(y_dot, RecordingTangent)
    np.testing.assert_array_equal(y_dot.value.lanes, [3.0, 3.0])
    assert [part.shape for part in x_dot] == [(), (), ()]


def test_a_record_is_read_backwards_once_for_each_use():
    """X enters three times; a shared intermediate is transposed once, with both cotangents."""
    x_dot = recorded(1)
    shared = X * x_dot
    y_dot = 2.0 * shared + shared[::-1] + x_dot
    x_bar = pull_back([(y_dot, Chunk(np.array([[1.0, 10.0, 100.0]])))])[id(x_dot)]
    np.testing.assert_allclose(x_bar.lanes, [[1 + 102 * X[0], 10 + 30 * X[1], 100 + 201 * X[2]]])


def test_a_tangent_from_nowhere_is_not_transposed(plant):
    """A constant chunk that a rule adds makes it affine, also where its lanes happen to agree."""

    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        leak = Chunk(np.full((x_dot.n, 3), 1e-13, x_dot.dtype))
        return np.sin(x), np.cos(x) * x_dot + leak

    plant(sine, body)
    assert caught(sine, X) == ["recording"]

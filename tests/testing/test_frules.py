"""The harness catches what it is there for: each planted fault is seen by exactly one check."""

import numpy as np
import pytest

from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain
from fwdad.tangents.zero import Zero, undefined
from fwdad.testing import CheckError, check_frule
from tests.testing.planted import M, X, caught, product, product_body, sine, sine_body

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
    """A bare leading axis: at N = 2 and y of two rows the result is wrong with the right shape."""

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
    with pytest.raises(AssertionError, match="got dtype float64, expected complex128"):
        check_frule(to_complex, X)


@pytest.mark.parametrize(
    ("wrap", "message"),
    [
        (lambda y: np.asarray(y * (1 + 3e-16)), "not bit-equal"),
        (np.float64, "got float64, expected ndarray"),
        (lambda y: [y], "got list, expected ndarray"),
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
        (lambda t: (t, t), "not a tangent"),
        (lambda t: t.lanes, "ndarray is not a tangent"),
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
    with pytest.raises(CheckError, match="a tuple of 2 parts, but got 1 tangents"):
        check_frule(both, X)


def test_promoted_float32(plant):
    def body(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return np.sin(x), np.float64(1.0) * (np.cos(x) * x_dot)

    plant(sine, body)
    assert caught(sine, X) == ["float32"]


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

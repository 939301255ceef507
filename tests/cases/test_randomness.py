"""Random generators are rewound between chunks; what cannot be rewound is found."""

import itertools
import random
import secrets
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences

CHUNKS = [1, 2, 3, 5, None]
X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


def new_generator():
    rng = np.random.default_rng(3)
    return rng, lambda: rng.bit_generator.state


def legacy_generator():
    rng = np.random.RandomState(3)
    return rng, lambda: repr(rng.get_state())


def global_generator():
    np.random.seed(3)
    return np.random, lambda: repr(np.random.get_state())


def draws(rng, x):
    a, b = rng.normal(size=5), rng.uniform(0.5, 1.5)
    permuted = rng.permutation(5)
    order = np.arange(5)
    rng.shuffle(order)
    return x[permuted] * a + b * x[order] + rng.standard_normal(5) * x[0]


@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("make", [new_generator, legacy_generator, global_generator])
def test_generator_from_outside(make, chunk):
    """The same draws in every chunk, and at the end it stands where one plain call leaves it."""
    rng, state = make()
    plain = draws(rng, X)
    after = state()
    expected = central_differences(lambda x: draws(make()[0], x), X)
    rng, state = make()
    y, jacobian = fwdad.value_and_jacobian(lambda x: draws(rng, x), X, chunk=chunk)
    assert_array_equal(y, plain)
    assert_allclose(jacobian, expected, rtol=1e-9, atol=1e-9)
    assert state() == after


@pytest.mark.parametrize("chunk", CHUNKS)
def test_generator_as_argument_attribute_and_in_a_callee(chunk):
    class Noisy:
        def __init__(self):
            self.rng = np.random.default_rng(5)

        def step(self, x, rng):
            return x * self.rng.normal() + rng.normal(size=5) * x[0]

    def program():
        noisy, rng = Noisy(), np.random.default_rng(7)
        return noisy, rng, lambda x, rng: noisy.step(x, rng) * noisy.step(x, rng)

    noisy, rng, f = program()
    plain = f(X, rng)
    after = (noisy.rng.bit_generator.state, rng.bit_generator.state)
    noisy, rng, f = program()
    y, jacobian = fwdad.value_and_jacobian(f, X, args=(rng,), chunk=chunk)
    assert_array_equal(y, plain)
    assert (noisy.rng.bit_generator.state, rng.bit_generator.state) == after

    def once(x):
        _, rng, f = program()
        return f(x, rng)

    assert_allclose(jacobian, central_differences(once, X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("chunk", CHUNKS)
def test_generators_of_the_standard_library(chunk):
    own = random.Random(3)

    def f(x):
        values = [
            own.random(),
            random.gauss(0, 1),
            own.uniform(1, 2),
            random.choice([1.0, 2.0, 3.0]),
        ]
        order = list(range(5))
        random.shuffle(order)
        return x[order] * sum(values)

    random.seed(11)
    plain = f(X)
    after = (own.getstate(), random.getstate())
    own.seed(3)
    random.seed(11)
    y, jacobian = fwdad.value_and_jacobian(f, X, chunk=chunk)
    assert_array_equal(y, plain)
    assert (own.getstate(), random.getstate()) == after
    assert np.count_nonzero(jacobian) == 5
    assert_allclose(jacobian @ X, plain, rtol=1e-14)  # f is linear


def test_generator_made_inside_and_seeded():
    def f(x):
        rng = np.random.default_rng(1)
        np.random.seed(4)
        return x * rng.normal(size=5) * np.random.rand()

    plain = f(X)
    y, jacobian = fwdad.value_and_jacobian(f, X, chunk=2)
    assert_array_equal(y, plain)
    assert_allclose(jacobian, np.diag(plain / X), rtol=1e-14)


def test_generator_ends_where_a_plain_call_leaves_it_after_an_exception():
    rng = np.random.default_rng(3)

    def f(x):
        x = x * rng.normal(size=5)
        if rng.random() >= 0:
            message = "half-way"
            raise ArithmeticError(message)
        return x

    with pytest.raises(ArithmeticError):
        f(X)
    after = rng.bit_generator.state
    rng.bit_generator.state = np.random.default_rng(3).bit_generator.state
    with pytest.raises(ArithmeticError):
        fwdad.jacobian(f, X, chunk=2)
    assert rng.bit_generator.state == after


COUNTER = itertools.count()


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize(
    "source",
    [
        lambda: next(COUNTER),
        lambda: float(time.perf_counter_ns()),
        lambda: np.random.default_rng().normal(),
        lambda: next(endless),
    ],
)
def test_source_that_cannot_be_rewound(source, chunk):
    with pytest.raises(fwdad.errors.NondeterministicFunctionError) as caught:
        fwdad.jacobian(lambda x: x * source(), X, chunk=chunk)
    assert caught.value.filename == __file__
    # in one chunk nothing has to agree
    y, jacobian = fwdad.value_and_jacobian(lambda x: x * source(), X, chunk=None)
    assert_allclose(jacobian.diagonal() * X, y, rtol=1e-14)


@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize(
    "source", [lambda: secrets.randbits(40), lambda: random.SystemRandom().random()]
)
def test_what_the_system_returns_is_asked_once(source, chunk):
    y, jacobian = fwdad.value_and_jacobian(lambda x: x * source(), X, chunk=chunk)
    assert_allclose(jacobian.diagonal() * X, y, rtol=1e-14)


def draw_for_ever():
    value = 0.0
    while True:
        yield value
        value += 1.0


endless = draw_for_ever()


@pytest.mark.parametrize("chunk", [1, 2])
def test_nan_is_no_nondeterminism(chunk):
    """NaN != NaN, yet it is the same value in every chunk."""
    with np.errstate(all="ignore"):
        y = fwdad.value_and_jacobian(lambda x: np.log(x), X, chunk=chunk)[0]  # noqa: PLW0108
    assert np.isnan(y[1])


@pytest.mark.parametrize(
    "write",
    [
        lambda rng, a: rng.shuffle(a),
        lambda rng, a: rng.permuted(a, out=a),
        lambda rng, a: rng.standard_normal(out=a),
        lambda _, a: np.random.shuffle(a),  # noqa: NPY002
        lambda _, a: random.shuffle(a),
    ],
    ids=["shuffle", "permuted", "out", "global", "python"],
)
@pytest.mark.parametrize("chunk", CHUNKS)
def test_arrays_from_outside(write, chunk):
    rng, outside = np.random.default_rng(5), np.arange(20.0)

    def f(x):
        write(rng, outside)
        return x * np.sum(outside * np.arange(20.0))

    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    write(rng, outside)
    after, rng = outside, np.random.default_rng(5)
    outside = np.arange(20.0)
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    fwdad.jacobian(f, X, chunk=chunk)
    assert_array_equal(outside, after)


def test_last_bits_of_a_derivative_inside():
    """It is summed in another order where another argument carries tangents: that is no draw."""

    def f(x):
        return np.expm1(np.abs(np.exp(1j * np.median(x)) + 1) * 0.2)

    x = np.array([1.2103, 0.4947, 0.6707, 1.2392, 0.9098, 0.7255, 0.5254, 0.6418], np.float32)
    v = np.full(8, -0.101, np.float32)

    def g(x, d):
        return fwdad.jvp(f, x, v)[1]

    J, _ = fwdad.jacobian(g, x, args=(1.0,), argnums=(0, 1), chunk=1, mode="forward")
    whole = fwdad.jacobian(g, x, args=(1.0,), chunk=None, mode="forward")
    assert_allclose(J, whole, rtol=1e-4, atol=1e-7)
    with pytest.raises(fwdad.errors.NondeterministicFunctionError):
        fwdad.jacobian(lambda x: x * time.perf_counter(), np.ones(3), chunk=1, mode="forward")

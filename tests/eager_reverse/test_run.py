"""What a recorded run leaves: the world as one plain call leaves it, and a record that stands."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager.memory.shadow import KEPT, SHADOWED
from fwdad.eager_reverse import gradient
from fwdad.eager_reverse.operations import Call
from fwdad.errors import (
    ChunkMismatchError,
    ChunkOperationError,
    MissingTransposeError,
    NonlinearTangentError,
    NonScalarOutputError,
    NoOutputError,
    UnsupportedTypeError,
)
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.registrations import OWN
from fwdad.tangents.zero import ZERO
from tests.cases.test_world import (
    WORLDS,
    after_a_plain_call,
    assert_same,
    clean_globals,  # noqa: F401
    fresh,
)
from tests.differences import difference_along
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not SHADOWED
    assert not KEPT


@pytest.mark.parametrize("make", WORLDS, ids=lambda make: make.__name__)
def test_world_is_as_a_plain_call_leaves_it(make):
    make = fresh(make)
    want = fwdad.jacobian(make()[0], X.copy())
    for _ in range(2):
        _, after = after_a_plain_call(make)
        f, state = make()
        outcome = record(f, X.copy())
        assert_same(state(), after)
        assert_allclose(jacobian_of(outcome, X, 3), want, rtol=1e-10, atol=1e-12)
        assert_same(state(), after)


def test_world_after_an_exception():
    work, seen = np.zeros(5), []

    def f(x):
        work[:] = x * 2
        seen.append(x[0])
        return np.sum(work) / {}["missing"]

    with pytest.raises(KeyError):
        record(f, X.copy())
    assert_array_equal(work, X * 2)
    assert seen == [X[0]]
    assert type(seen[0]) is np.float64


# -- the record stands


def program(matrix, offset):
    def f(x):
        y = matrix @ x
        z = np.linalg.solve(matrix, y * offset)
        x[0] = z[1]
        return z * y, np.stack([x, y])

    return f


def test_the_callers_arrays_may_change_afterwards(rng):
    matrix = rng.normal(size=(5, 5)) + 4 * np.eye(5)
    offset, x = rng.normal(size=5), rng.normal(size=5)
    y_bars = [rng.normal(size=5), rng.normal(size=(2, 5))]
    outcome = record(program(matrix, offset), x)
    (first,) = outcome.pull(y_bars)
    kept = first.copy()
    first[:] = np.nan
    for a in (matrix, offset, x, *outcome.leaves):
        a[...] = np.nan
    (second,) = outcome.pull(y_bars)
    assert_array_equal(second, kept)
    (many,) = outcome.pull([Chunk(np.stack([b, 2 * b, -b])) for b in y_bars])
    assert_allclose(many.lanes, [kept, 2 * kept, -kept], rtol=1e-13)


def test_a_partial_of_a_sum_may_change_afterwards():
    """A rule's partial may be the user's array: the record has a copy, also beside a sum."""
    table = np.arange(1.0, 6.0)
    fwdad.elementwise(doubled, lambda x, y: table)

    def f(x, y):
        return np.sum(doubled(2.0 * x + 3.0 * y))

    try:
        outcome = record(f, X, X.copy(), argnums=(0, 1))
    finally:
        del RULES[doubled]
    table[:] = np.nan
    x_bar, y_bar = outcome.pull([1.0])
    assert_allclose(x_bar, 2.0 * np.arange(1.0, 6.0), rtol=1e-15)
    assert_allclose(y_bar, 3.0 * np.arange(1.0, 6.0), rtol=1e-15)


def test_captured_arrays_are_copied_and_scratch_is_not(monkeypatch):
    def f(x):
        a = np.outer(np.arange(300.0), np.ones(300))  # nobody else's
        return np.sum(a @ x)

    def g(x):
        return np.sum(captured @ x)

    captured = np.ones((300, 300))
    copied = []
    monkeypatch.setattr(Call, "copy_from", lambda _call, owner, _copies: copied.append(owner))
    record(f, np.ones(300))
    assert copied == []
    record(g, np.ones(300))
    assert len(copied) == 1
    assert copied[0] is captured
    assert_array_equal(gradient(g, np.ones(300)), captured.sum(axis=0))
    assert len(copied) == 1, "a pull that follows at once needs no copy"


def test_threads_agree_with_a_serial_run(rng):
    matrix = rng.normal(size=(5, 5))

    def f(x):
        y = np.zeros(5)
        for i in range(1, 5):
            y[i] = matrix[i] @ x + y[i - 1] * x[i]
        return np.tanh(matrix @ y)

    outcome, bars = record(f, X), rng.normal(size=(8, 5))
    want = [outcome.pull([bar])[0] for bar in bars]
    with ThreadPoolExecutor(8) as pool:
        pulled = list(pool.map(lambda bar: outcome.pull([bar])[0], bars))
        recorded = list(pool.map(lambda bar: record(f, X).pull([bar])[0], bars))
    assert_array_equal(pulled, want)
    assert_array_equal(recorded, want)


def test_cotangents_are_not_written_and_not_handed_out():
    outcome = record(lambda x: x, X)
    y_bar = np.ones(5)
    (x_bar,) = outcome.pull([y_bar])
    assert not np.shares_memory(x_bar, y_bar)
    x_bar[:] = 0
    assert_array_equal(y_bar, np.ones(5))


def test_a_value_that_is_never_used_costs_nothing_backwards():
    def f(x):
        np.linalg.solve(np.diag(x), x)
        return x[0] * 2.0

    (x_bar,) = record(f, X).pull([1.0])
    assert_array_equal(x_bar, [2.0, 0, 0, 0, 0])


def test_inactive_values_have_no_cotangent():
    outcome = record(lambda x, y: (np.ones(3), x * 2.0), 1.5, 2.5, argnums=(0, 1))
    assert outcome.pull([np.ones(3), ZERO]) == [ZERO, ZERO]
    assert outcome.pull([ZERO, 1.0]) == [2.0, ZERO]


# -- structures


def test_a_composite_goes_in_and_comes_out():
    def f(model):
        w, (b, steps) = model["w"], model["rest"]
        for _ in range(steps):
            w = np.tanh(w * b)
        return {"w": w, "sum": np.sum(w) * b}

    model = {"w": X.copy(), "rest": (0.7, 3)}
    outcome = record(f, model)
    assert set(outcome.y) == {"w", "sum"}
    at = {key: k for k, key in enumerate(outcome.y)}
    bars = [None, None]
    bars[at["w"]], bars[at["sum"]] = np.arange(5.0), 2.0
    w_bar, b_bar = outcome.pull(bars)

    def total(model):
        y = f(model)
        return np.sum(y["w"] * np.arange(5.0)) + 2.0 * y["sum"]

    want = fwdad.grad(total)(model)
    assert_allclose(w_bar, want["w"], rtol=1e-12)
    assert_allclose(b_bar, want["rest"][0], rtol=1e-12)
    assert type(b_bar) is float


def test_arguments_that_are_updated_are_outputs():
    def kernel(x, y):
        for i in range(1, 5):
            y[i] += x[i] * y[i - 1]

    x, y = X.copy(), np.ones(5)
    outcome = record(kernel, x, y, argnums=(0, 1), outputs="mutated")
    assert_array_equal(y, np.ones(5))
    y_dot = [fwdad.jacobian(kernel, x, args=(y,), argnums=k, outputs="mutated") for k in (0, 1)]
    bar = np.arange(1.0, 6.0)
    for x_bar, dot in zip(outcome.pull([bar]), y_dot, strict=True):
        assert_allclose(x_bar, bar @ dot, rtol=1e-13)


def test_aux():
    outcome = record(lambda x: (np.sum(x * x), {"x": x}), X, has_aux=True)
    assert_array_equal(outcome.aux["x"], X)
    assert_array_equal(outcome.pull([1.0])[0], 2 * X)


def test_complex_values_under_the_real_inner_product(rng):
    def f(z):
        w = np.zeros(3, complex)
        w[:] = z * z[::-1].conj()
        w[0] += abs(z[1])
        return np.exp(w) + z.real

    z = rng.normal(size=3) + 1j * rng.normal(size=3)
    z_dot = rng.normal(size=3) + 1j * rng.normal(size=3)
    y_bar = rng.normal(size=3) + 1j * rng.normal(size=3)
    y_dot = difference_along(f, z, z_dot)
    (z_bar,) = record(f, z).pull([y_bar])
    assert_allclose(np.vdot(z_bar, z_dot).real, np.vdot(y_bar, y_dot).real, rtol=1e-8)


# -- refusals


def test_an_opaque_linear_rule_with_a_transpose():
    def reverse(x):
        return np.asarray(x)[::-1].copy()

    @fwdad.frule(reverse)
    def reverse_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return reverse(x), fwdad.map_lanes(reverse, x_dot)

    @fwdad.transpose(reverse)
    def reverse_transpose(y_bar, x):
        return y_bar[::-1]

    try:
        x_bar = gradient(lambda x: np.sum(reverse(x * x) * np.arange(5.0)), X)
        assert_allclose(x_bar, 2 * X * np.arange(5.0)[::-1], rtol=1e-14)
    finally:
        del RULES[reverse]


def doubled(x):
    return 2.0 * x


def lane_by_lane(x, x_dot):
    lanes = np.zeros((x_dot.n, *x.shape))
    for k in range(x_dot.n):
        lanes[k] = 2.0 * x_dot.lanes[k]
    return fwdad.Chunk(lanes)


@pytest.mark.parametrize(
    ("tangent", "error"),
    [
        (lane_by_lane, MissingTransposeError),
        (lambda x, x_dot: fwdad.Chunk(2.0 * x_dot.lanes), MissingTransposeError),
        (lambda x, x_dot: fwdad.Chunk(np.ones((x_dot.n, *x.shape))), NonlinearTangentError),
        (lambda x, x_dot: x_dot * x_dot, NonlinearTangentError),
        (lambda x, x_dot: x_dot + 1.0, ChunkOperationError),
    ],
)
def test_a_rule_that_would_lose_its_tangent_raises(tangent, error):
    @fwdad.frule(doubled)
    def doubled_frule(primals, tangents):
        return doubled(*primals), tangent(*primals, *tangents)

    try:
        with pytest.raises(error):
            record(lambda x: np.sum(doubled(x)), X)
    finally:
        del RULES[doubled]


@pytest.fixture
def opaque():
    @fwdad.frule(doubled)
    def doubled_frule(primals, tangents):
        return doubled(*primals), lane_by_lane(*primals, *tangents)

    yield
    del RULES[doubled]


@pytest.mark.usefixtures("opaque")
def test_what_cannot_be_run_backwards_is_named():
    def f(x):
        y = x * 2.0
        return doubled(y)

    with pytest.raises(MissingTransposeError, match=r"doubled cannot be run backwards") as caught:
        record(f, X)
    assert caught.value.filename == __file__
    assert caught.value.text.strip() == "return doubled(y)"


@pytest.mark.usefixtures("opaque")
def test_a_missing_transpose_is_not_swallowed():
    def f(x):
        try:
            return np.sum(doubled(x))
        except SyntaxError:
            return x[0]

    with pytest.raises(MissingTransposeError):
        record(f, X)


def test_zeros_that_a_rule_writes_out():
    @fwdad.frule(doubled)
    def doubled_frule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return doubled(x), fwdad.Chunk(np.zeros((x_dot.n, *x.shape))) + 2.0 * x_dot

    try:
        assert_array_equal(gradient(lambda x: np.sum(doubled(x)), X), np.full(5, 2.0))
    finally:
        del RULES[doubled]


def test_wrong_cotangents():
    outcome = record(lambda x: x * 2.0, X)
    with pytest.raises(ChunkMismatchError, match="shape"):
        outcome.pull([np.ones(4)])
    with pytest.raises(ChunkMismatchError, match="complex"):
        outcome.pull([1j * np.ones(5)])
    two = record(lambda x: (x, 2.0 * x), X)
    with pytest.raises(ChunkMismatchError, match="widths"):
        two.pull([np.ones(5), Chunk(np.ones((2, 5)))])


def test_wrong_outputs():
    with pytest.raises(NonScalarOutputError):
        gradient(lambda x: x, X)
    with pytest.raises(NoOutputError):
        record(lambda x: None, X)


def test_a_tangent_class_of_its_own_is_refused():
    class Angle:
        turns = 0.5

    class Turn:
        rate = 1.0

        def __add__(self, other):
            return self

        __mul__ = __add__

    fwdad.register_tangent_type(
        Angle, tangent=Turn, zero=lambda _: Turn(), inner=lambda t, u: t.rate * u.rate
    )
    try:
        with pytest.raises(UnsupportedTypeError, match="tangent class"):
            record(lambda o: o, Angle())
    finally:
        del OWN[Angle]


def test_zero_cotangents_and_infinite_partials():
    """An exactly zero cotangent contributes zero, also through an infinite partial."""
    x = np.array([0.0, 4.0])
    with np.errstate(all="ignore"):
        assert_array_equal(gradient(lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0)), x), [0, 0.25])
        log = gradient(lambda x: np.log(0 * x[0] + x[1]), np.array([1.0, 0.0]))
        assert_array_equal(log, [np.nan, np.inf])  # 0 * inf among partials, as in forward mode
        assert gradient(lambda x: min(1.0, 1 / x), np.float64(0.0)) == 0.0

        def stored(x):
            y = np.sqrt(x)
            y[0] = 1.0
            return np.sum(y)

        assert_array_equal(gradient(stored, x), [0, 0.25])
    (bars,) = record(lambda x: np.sqrt(x), x).pull([Chunk(np.eye(2))])
    assert_array_equal(bars.lanes, [[np.inf, 0], [0, 0.25]])


def test_undefined_derivatives_raise_as_in_forward_mode():
    def f(a):
        return np.linalg.eigh(a)[1]

    with pytest.raises(fwdad.errors.UndefinedDerivativeError):
        record(f, np.eye(2))
    outcome = record(np.linalg.eigvalsh, np.diag([1.0, 2.0]))
    assert_array_equal(outcome.pull([np.array([1.0, 3.0])])[0], np.diag([1.0, 3.0]))


@pytest.mark.filterwarnings("error")
def test_real_arguments_of_complex_functions_have_real_cotangents():
    outcome = record(lambda x: np.mean(x, dtype=complex) * (3 - 2j), X)
    (x_bar,) = outcome.pull([1 - 1j])
    assert x_bar.dtype == float
    assert_allclose(x_bar, np.full(5, ((1 - 1j) * (3 + 2j)).real / 5))

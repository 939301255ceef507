"""``out``, ``where``, ``dtype`` and ufunc methods: written as keywords or by position."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.check import check_jacobian, programs, with_widths
from tests.eager_reverse.pulling import jacobian_of, record

WRITES, writes = programs()

X = np.array([0.7, 1.3, 0.4])
A = np.arange(9.0).reshape(3, 3)


@writes(X)
def clip_into_position(x):
    y, z = np.zeros(3), np.zeros(3)
    np.clip(x, 0.5, 1.0, y)
    x.clip(0.5, 1.0, z)
    return y + 2 * z


@writes(X, products=True)
def dot_into_position(x):
    y, z = np.zeros(3), np.zeros(3)
    np.dot(A, x, y)
    A.dot(x, z)
    return y * z


@writes(X)
def cumsum_into_position(x):
    y, z = np.zeros(3), np.zeros(3)
    np.cumsum(x, 0, None, y)
    x.cumprod(0, None, z)
    return y * z


@writes(X)
def sums_into_position(x):
    s, t = np.zeros(()), np.zeros(())
    x.sum(0, None, s)
    np.mean(x**2, 0, None, t)
    return np.array([s[()], t[()]])


@writes(X)
def take_into_position(x):
    y, z = np.zeros(2), np.zeros(2)
    x.take([0, 2], None, y)
    np.take(x, [2, 1], None, z, "wrap")
    return y * z


@writes(X)
def inactive_result_clears_the_tangents(x):
    y, z, w = np.zeros(3), np.zeros(3), np.zeros(3)
    y[:] = z[:] = w[:] = x
    np.clip(np.ones(3) * 7, 0, 2, y)
    np.dot(np.eye(3), np.arange(3.0), z)
    np.multiply(np.ones(3), 2.0, out=w)
    return y + z + w + x


@writes(X)
def reductions_of_ufuncs(x):
    y = np.zeros(())
    np.add.reduce(x * x, 0, None, y)
    return np.array([
        y[()],
        np.multiply.reduce(x),
        np.add.reduce(x, initial=x[1]),
        np.maximum.reduce(x, initial=0.2),
    ])  # fmt: skip


@writes(X)
def masked_ufunc_leaves_the_rest(x):
    y = np.array([5.0, 6.0, 7.0])
    np.log(x - 0.5, out=y, where=x > 0.5)
    np.multiply(y, x, y, where=np.array([True, False, True]))
    return y


@writes(X)
def casts_into_single_precision(x):
    y = np.zeros(3, np.longdouble)
    np.multiply(x, x, out=y)
    return np.sqrt(y).astype(float)


@writes(X)
def outer_and_accumulate(x):
    return np.multiply.outer(x, x[:2]).ravel() + np.add.accumulate(np.repeat(x, 2))


@pytest.mark.parametrize(("program", "chunk"), with_widths(WRITES))
def test_written_outputs(program, chunk):
    check_jacobian(program, chunk)


def test_outputs_made_outside():
    y = np.array([5.0, 6.0, 7.0])

    def f(x):
        np.clip(np.ones(3) * 7, 0, 2, y)
        np.dot(A, np.ones(3), y)
        np.exp(x, y)
        x.cumsum(0, None, y)
        return y * 2

    assert_array_equal(fwdad.jacobian(f, X, chunk=2), 2 * np.tril(np.ones((3, 3))))
    assert_array_equal(y, X.cumsum())


def test_integer_output_is_refused():
    def f(x):
        y = np.zeros(3, int)
        np.add(x, 1.0, out=y, casting="unsafe")
        return y

    with pytest.raises(fwdad.errors.DualLeakError, match="int64"):
        fwdad.jacobian(f, X)


def test_where_without_out_is_refused():
    with pytest.raises(fwdad.errors.MissingRuleError, match="out="):
        fwdad.jacobian(lambda x: np.exp(x, where=x > 0.5), X)


def test_ufuncs_from_elsewhere_have_their_own_name():
    def halve(v):
        return v / 2

    outside = np.frompyfunc(halve, 1, 1)
    for f in (lambda x: np.frompyfunc(halve, 1, 1)(x), lambda x: outside(x)):
        with pytest.raises(
            fwdad.errors.MissingRuleError, match=r"no frule for halve \(vectorized\)"
        ):
            fwdad.jacobian(f, X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sin(x, x, x),
        lambda x: np.sin(x, 1.5),
        lambda x: np.isfinite(x, 2),
        lambda x: np.add(x, x, 7),
        lambda x: np.any(x, 0, 9),
        lambda x: np.where(x > 0, x),
        lambda x: np.shape(x, axis=1),
        lambda x: np.ndim(x, dtype=float),
        lambda x: np.linalg.matrix_power(np.outer(x, x)),
    ],
)
def test_what_numpy_refuses_is_refused(f):
    with pytest.raises((TypeError, ValueError)) as theirs:
        f(X)
    with pytest.raises(theirs.type):
        fwdad.jvp(f, X, X)
    with pytest.raises((theirs.type, fwdad.errors.UntraceableError)):
        fwdad.jit(f, backend="numpy")(X)


def test_an_output_that_is_not_given():
    def f(x):
        whole = np.zeros(3)
        part, _ = np.modf(x * 1.5, None, whole)
        return part + 2 * whole

    assert_array_equal(fwdad.jacobian(f, X), 1.5 * np.eye(3))
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))


def stepped_down(x, given):
    v = x * 2
    v -= given
    return v**2


@pytest.mark.parametrize("given", [range(1, 4), [1, 2, 3], (1.0, 2.0, 3.0)])
@pytest.mark.parametrize(
    "f",
    [
        lambda x, r: (x + r) ** 2, lambda x, r: (r * x) ** 2, lambda x, r: np.multiply(x, r) ** 2,
        lambda x, r: x**r, lambda x, r: np.dot(x, r), stepped_down,
    ],
)  # fmt: skip
def test_sequences_beside_arrays(f, given):
    """Without a tape and on one: NumPy makes arrays of them."""
    x = np.array([1.5, 0.4, -0.7])
    wanted = fwdad.jacobian(lambda x: f(x, np.array(given)), x, mode="forward")
    assert_allclose(fwdad.jacobian(lambda x: f(x, given), x, mode="forward"), wanted, rtol=1e-15)
    assert_allclose(fwdad.jacrev(lambda x: f(x, given))(x), wanted, rtol=1e-15)
    on_a_tape = fwdad.jit(fwdad.jacfwd(lambda x: f(x, given)), backend="numpy")
    assert_allclose(on_a_tape(x), wanted, rtol=1e-15)


PLACES, WEIGHTS = np.array([[3, 0, 0], [6, 2, 3]]), np.array([[0.5, -1.0, 2.0], [1.5, 0.3, -0.7]])
X5 = np.array([0.3, -1.2, 0.7, 2.1, -0.4])
V5 = np.array([1.0, 0.5, -0.2, 0.1, 2.0])


def added_at_places(x):
    y = np.ones(7) * x[0]
    np.add.at(y, PLACES, WEIGHTS * x[1])
    np.subtract.at(y, [0, 0, 1], x[2:5])
    np.add.at(y, 2, x[3])
    return y * x[1]


def added_to_views(x):
    y = np.zeros((3, 4))
    np.add.at(y, (slice(None), [0, 1, 1]), x[:3, None] * np.arange(3.0))
    np.add.at(y, (0, slice(1, 3)), x[4])
    np.add.at(y, ([0, 0],), np.ones((2, 1)) * x[:4])
    np.add.at(y[::-1, 1:], ([0, 0], [1, 2]), x[1])
    return y


def added_from_itself(x):
    y = x * 1.0
    np.add.at(y, [0, 0], y[1:3])
    return y


def differences(f, x):
    return np.stack([(f(x + h) - f(x - h)) / 2e-6 for h in 1e-6 * np.eye(x.size)], -1)


def added_from_lists(x):
    y = np.zeros(4)
    np.add.at(y, [0, 1, 1], [x[0], x[1] * 2, 3.0])
    np.add.at(y, [0, 3], y[:2])
    np.add.at(y, [1, 1], y[1:3])
    return y


@pytest.mark.parametrize(
    "f", [added_at_places, added_to_views, added_from_itself, added_from_lists]
)
def test_sums_at_places(f):
    wanted = differences(f, X5)
    for chunk in (1, 2, 3, 5):
        found = fwdad.jacobian(f, X5, mode="forward", chunk=chunk)
        assert_allclose(found, wanted, atol=1e-8)
    y, y_dot = fwdad.jvp(f, X5, X5)
    assert_array_equal(y, f(X5))  # added up in the same order
    assert_allclose(y_dot, wanted @ X5, atol=1e-8)
    assert_allclose(fwdad.jacrev(f)(X5), wanted, atol=1e-8)
    second = differences(fwdad.grad(lambda x: np.sum(f(x) ** 2)), X5)
    assert_allclose(fwdad.hessian(lambda x: np.sum(f(x) ** 2), X5), second, atol=1e-7)

    def along(x):
        return fwdad.jvp(lambda x: f(x) ** 2, x, V5)[1]

    nested = fwdad.jvp(along, X5, V5)[1]
    assert_allclose(nested, fwdad.jvp(fwdad.jit(along), X5, V5)[1], rtol=1e-12, atol=1e-13)
    assert_allclose(nested, differences(along, X5) @ V5, atol=1e-7)


@pytest.mark.parametrize("index", [(), ..., (...,)])
@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.negative])
def test_the_one_element_of_an_array_without_axes(ufunc, index):
    def f(x):
        y = np.array(x[0])
        ufunc.at(y, index, *x[1 : ufunc.nin])
        return y * y * x[1]

    wanted = differences(f, X)
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode), wanted, atol=1e-8)
    for transformed in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        assert_allclose(fwdad.jit(transformed, backend="numpy")(X), wanted, atol=1e-8)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_a_number_of_an_array_without_axes(kind):
    def f(x):
        y = np.array(x[0] * x[1])
        z = kind(y)
        y[...] = 3.0
        assert isinstance(z, np.floating)
        return np.float64(z) ** 2 * x[2]

    wanted = [2 * X[0] * X[1] ** 2 * X[2], 2 * X[0] ** 2 * X[1] * X[2], (X[0] * X[1]) ** 2]
    assert fwdad.jvp(f, X, X)[0] == f(X)
    for chunk in (1, 2, 3):
        found = fwdad.jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(found, wanted, rtol=1e-6)
    assert_allclose(fwdad.jit(fwdad.jacrev(f), backend="numpy")(X), wanted, rtol=1e-6)


def test_sums_at_places_in_a_recorded_run():
    def f(x):
        return np.sum(added_at_places(x) ** 2)

    found = jacobian_of(record(f, X5), X5, 1)
    assert_allclose(found, differences(f, X5), rtol=1e-7)
    found = jacobian_of(record(added_at_places, X5), X5, 3)
    assert_allclose(found, differences(added_at_places, X5), atol=1e-8)

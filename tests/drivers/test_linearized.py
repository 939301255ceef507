"""``linearize`` on a tape: both directions at the point, whatever the caller changes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.core.fallbacks import Untraced
from fwdad.drivers import jitted_function, linearized
from fwdad.errors import SeedError
from tests.differences import central_differences

X = np.linspace(0.2, 1.0, 5)
TABLE = np.array([1.0, -2.0, 0.5, 3.0, 1.5])
UNREAD = np.ones(7)
OTHER = X[::-1].copy()


def table(x, a, unused):
    x[0] = x[0] * a[1]
    for k in range(1, len(x)):
        x[k] = x[k] * x[k - 1] + TABLE[k]
    return np.stack([x * TABLE, np.sin(x)]), 2, x[1] * a[0]


def pytree(z):
    return {"s": z["a"] * z["b"][0], "t": (np.outer(z["b"], z["b"]), 1)}


def rows_of(f, x, args=()):
    """The Jacobian of the leaves, one above the other."""

    def flat(x):
        return np.concatenate([np.ravel(y) for y in leaves(f(x, *args))])

    return fwdad.jacobian(flat, x, mode="forward")


def leaves(y):
    return [y[0], y[2]]


@pytest.mark.parametrize("backend", ["plain", "numpy", "numba"])
def test_what_is_read_may_change(backend):
    if backend == "numba":
        pytest.importorskip("numba")
    f = table if backend == "plain" else fwdad.jit(table, backend=backend)
    x, a, unused, before = X.copy(), X[::-1].copy(), UNREAD.copy(), TABLE.copy()
    expected = rows_of(table, X, (a, unused))
    y, J = fwdad.linearize(f, x, args=(a, unused), chunk=2)
    assert type(J._at) is linearized.Linearized
    assert_array_equal(x, X)
    assert_allclose(y[0], table(X.copy(), a, unused)[0], rtol=1e-14)
    try:
        x[:] = a[:] = TABLE[:] = y[0][:] = 7.0
        for _ in range(2):
            assert_allclose(J @ np.eye(5), expected, rtol=1e-12, atol=1e-14)
            assert_allclose(J.matvec(X), expected @ X, rtol=1e-12, atol=1e-14)
            assert_allclose(J.T @ np.eye(11), expected.T, rtol=1e-12, atol=1e-14)
            assert_allclose(J.rmatvec(np.arange(11.0)), np.arange(11) @ expected, rtol=1e-12)
    finally:
        TABLE[:] = before


def test_copies_what_is_read():
    x, a, unused = X.copy(), X.copy(), UNREAD.copy()
    _, J = fwdad.linearize(table, x, args=(a, unused))
    held = J._at._leaves
    assert not any(np.shares_memory(held[k], given) for k, given in enumerate((x, a)))
    assert held[2] is unused
    report = fwdad.memory_report(table, x, a, unused)
    assert report.of("linearized") == x.nbytes + a.nbytes + TABLE.nbytes


def test_again_traces_nothing(monkeypatch):
    """Another point finds the tapes of the first one."""
    _, J = fwdad.linearize(table, X, args=(OTHER, UNREAD))
    J @ np.eye(5)
    J.T @ np.eye(11)

    def refused(*_args, **_options):
        raise AssertionError

    monkeypatch.setattr(jitted_function, "trace_optimised", refused)
    monkeypatch.setattr(linearized, "push_forward", refused)
    point = X + 0.3
    _, J = fwdad.linearize(table, point, args=(OTHER, UNREAD))
    assert_allclose(J @ np.eye(5), rows_of_forward(point), rtol=1e-6, atol=1e-8)
    assert_allclose(J.T @ np.eye(11), rows_of_forward(point).T, rtol=1e-6, atol=1e-8)


def rows_of_forward(x):
    """By differences."""

    def flat(x):
        return np.concatenate([np.ravel(y) for y in leaves(table(x, OTHER, UNREAD))])

    return central_differences(flat, x)


def test_composites():
    z = {"a": np.array([[1.0, 2.0]]), "b": np.array([3.0, -1.0, 0.5])}
    y, J = fwdad.linearize(pytree, z)
    assert y["t"][1] == 1
    z["b"][:] = 0.0
    v = np.arange(5.0)
    s = v[:2] * 3.0 + np.array([1.0, 2.0]) * v[2]
    b = np.array([3.0, -1.0, 0.5])
    wanted = np.concatenate([s, np.ravel(np.outer(v[2:], b) + np.outer(b, v[2:]))])
    assert_allclose(J.matvec(v), wanted, rtol=1e-14)
    u = np.random.default_rng(0).normal(size=11)
    assert_allclose(J.rmatvec(u) @ v, u @ wanted, rtol=1e-13)


def test_numbers():
    y, J = fwdad.linearize(lambda x: x * x * 3.0, 2.0)
    assert y == 12.0
    assert_allclose(J @ np.eye(1), [[12.0]])
    assert_allclose(J.T @ np.eye(1), [[12.0]])


def test_complex_values():
    f = lambda x: np.exp(1j * x) * x  # noqa: E731 (a line)
    y, J = fwdad.linearize(f, X)
    assert_allclose(y, f(X))
    assert_allclose(J @ X, (1j * X + 1) * np.exp(1j * X) * X, rtol=1e-13)


def test_what_raises():
    def f(x, k):
        return x[k] * x

    with pytest.raises(IndexError, match="out of bounds"):
        fwdad.linearize(f, X, args=(9,))
    with pytest.raises(fwdad.errors.SeedError):
        fwdad.linearize(np.exp, X)[1] @ (1j * X)


def test_what_a_tape_cannot_push():
    """A view that may be a copy: f itself is run on duals."""

    def f(x):
        m = x[:4].reshape(2, 2) * 1.0
        a = np.asfortranarray(m)
        a[1] = a[0] * m[1]
        return a.ravel() * x[4]

    expected = fwdad.jacobian(f, X, mode="forward")
    _, J = fwdad.linearize(f, X)
    assert type(J._at) is not linearized.Linearized
    assert_allclose(J @ np.eye(5), expected, rtol=1e-13, atol=1e-15)
    assert_allclose(J.T @ np.eye(4), expected.T, rtol=1e-13, atol=1e-15)


def test_without_a_reverse_pass_on_a_tape(monkeypatch):
    """All directions, then."""
    monkeypatch.setattr(
        linearized, "tape_at",
        lambda evaluate, *given: Untraced(table) if evaluate is linearized.value_and_pullback
        else real(evaluate, *given),
    )  # fmt: skip
    expected = rows_of(table, X, (OTHER, UNREAD))
    _, J = fwdad.linearize(table, X, args=(OTHER, UNREAD))
    assert_allclose(J.T @ np.eye(11), expected.T, rtol=1e-12, atol=1e-14)


real = linearized.tape_at


def recorded(f):
    """The same function, which no tape has."""

    def g(x):
        class Local:  # no tape has a class statement
            pass

        return f(x)

    return g


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize(
    "f", [lambda x: (x, x), lambda x: [[x * 2]] * 2, lambda x: (x + 1, x * x, x + 2)]
)
def test_an_array_that_is_returned_twice(f, traced):
    """It has as many rows, on a tape or not, and its cotangents are added."""
    f = f if traced else recorded(f)

    def flat(x):
        return np.concatenate([np.ravel(y) for y in f(x)])

    expected = fwdad.jacobian(flat, X, mode="forward")
    rows = len(expected)
    _, J = fwdad.linearize(f, X, chunk=2)
    assert_allclose(J @ np.eye(5), expected)
    assert_allclose(J.T @ np.eye(rows), expected.T)
    for mode in ("forward", "reverse", "auto"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode, stack=True), expected)
    y, pullback = fwdad.vjp(f, X)
    same = np.arange(1.0, 6.0)
    for bars in ([same] * len(y), [same * k for k in range(len(y))]):
        given = type(y)([bar] if type(y[0]) is list else bar for bar in bars)
        assert_allclose(pullback(given), np.concatenate(bars) @ expected)
        many = [np.stack([bar, 2 * bar]) for bar in bars]
        given = type(y)([bar] if type(y[0]) is list else bar for bar in many)
        assert_allclose(pullback(given)[1], 2 * np.concatenate(bars) @ expected)
    if not traced and type(y[0]) is not list and len(y) == 2:
        with pytest.raises(SeedError, match="two places of one array"):
            pullback((same, np.stack([same])))


@pytest.mark.parametrize("traced", [True, False])
@pytest.mark.parametrize(
    ("f", "x", "shape"),
    [
        (lambda x: x * 2, X, (5, 5)),
        (lambda x: x * 2, np.zeros(0), (0, 0)),
        (lambda x: x[:0], X, (0, 5)),
        (lambda x: np.sum(x) + np.ones(3), np.zeros(0), (3, 0)),
    ],
)
def test_nothing_to_multiply(f, x, shape, traced):
    _, J = fwdad.linearize(f if traced else recorded(f), x)
    m, n = J.shape
    assert (m, n) == shape
    assert J.matmat(np.zeros((n, 0))).shape == (m, 0)
    assert J.rmatmat(np.zeros((m, 0))).shape == (n, 0)
    assert_array_equal(J @ np.ones(n), 2.0 * np.ones(m) if n == m else np.zeros(m))
    assert_array_equal(J.rmatvec(np.ones(m)), 2.0 * np.ones(n) if n == m else np.zeros(n))


def test_arguments_that_share_a_cotangent():
    p = {"a": X, "b": X + 1}
    _, J = fwdad.linearize(recorded(lambda p: p["a"] + p["b"]), p)
    assert_array_equal(J.T @ np.eye(5), np.concatenate([np.eye(5), np.eye(5)]))


def test_complex_arguments():
    z = X + 1j * OTHER
    _, J = fwdad.linearize(lambda z: z**2, z, holomorphic=True)
    assert_allclose(J @ z, 2 * z * z)
    assert_allclose(J.H @ z, 2 * z.conj() * z)
    assert_allclose(J.T @ z, 2 * z * z)
    with pytest.raises(fwdad.errors.NotHolomorphicError, match="with holomorphic=True"):
        fwdad.linearize(lambda z: z**2, z)
    with pytest.raises(fwdad.errors.NotHolomorphicError, match="does not hold"):
        fwdad.linearize(np.abs, z, holomorphic=True)


def test_what_is_no_argument_and_no_value():
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match=r"Write 3\.0"):
        fwdad.linearize(lambda x: x * x, 3)
    with pytest.raises(fwdad.errors.NoOutputError, match="returned None"):
        fwdad.linearize(lambda x: None, X)
    with pytest.raises(SeedError, match="chunk must be a positive integer"):
        fwdad.linearize(np.sin, X, chunk=0)
    _, J = fwdad.linearize(np.sin, X)
    for product in (J.matvec, J.rmatvec):
        with pytest.raises(SeedError, match="dtype object"):
            product(np.array([None] * 5))


def powers(x, exponents):
    return sum((x**k for k in exponents), 0 * x)


@pytest.mark.parametrize(
    ("kind", "name"), [(iter, "list_iterator"), (lambda ks: (k for k in ks), "generator")]
)
def test_what_can_be_read_once(kind, name):
    """At zero the value tells nothing: f returns zeros, whether it has anything to read or not."""
    x, given = np.zeros(3), [1, 2, 3]
    with pytest.raises(
        fwdad.errors.UnsupportedTypeError, match=f"got a {name} among the arguments"
    ):
        fwdad.linearize(powers, x, args=(kind(given),))
    with pytest.raises(
        fwdad.errors.UnsupportedTypeError, match=f"got a {name} among the arguments"
    ):
        fwdad.jacobian(powers, x, args=(kind(given),), chunk=1)
    assert_array_equal(fwdad.jacobian(powers, x, args=(iter(given),)), np.eye(3))
    assert_array_equal(fwdad.linearize(powers, x, args=(given,))[1] @ x, x)


def test_what_is_another_function_later():
    """What is not traced is run again: its value must be the one that was linearized."""
    held = {"factor": 2.0, "draws": np.random.default_rng(0)}
    f = recorded(lambda x: x**2 * held["factor"])
    y, J = fwdad.linearize(f, X)
    y[:] = 7.0
    assert_allclose(J @ X, 4 * X**2)
    held["factor"] = 3.0
    with pytest.raises(fwdad.errors.NondeterministicFunctionError, match="runs it again"):
        J @ X
    with pytest.raises(fwdad.errors.NondeterministicFunctionError, match="runs it again"):
        J.rmatvec(X)
    held["factor"] = 2.0
    assert_allclose(J.rmatvec(X), 4 * X**2)
    y, J = fwdad.linearize(recorded(lambda x: x * held["draws"].random()), X)
    assert_allclose(J @ X, y)  # the generator is as it was found


SHORT = {
    "steps in place": (lambda x: np.cumsum(x) * x[::-1] ** 2, np.linspace(0.5, 1.5, 6)),
    "a matrix": (lambda x: (x @ x.T)[0], np.arange(6.0).reshape(2, 3) + 1),
    "to a matrix": (lambda x: np.outer(x, x), np.linspace(0.5, 1.5, 3)),
    "a number": (lambda x: np.array([x, x**2]), 1.5),
    "to a number": (lambda x: np.sum(x**3), np.linspace(0.5, 1.5, 4)),
    "the argument": (lambda x: x, np.linspace(0.5, 1.5, 4)),
    "a view": (lambda x: x[::2], np.linspace(0.5, 1.5, 5)),
    "single precision": (lambda x: np.sin(x) * x, np.linspace(0.5, 1.5, 4, dtype=np.float32)),
    "one array twice": (lambda x: (x * 2,) * 2, np.linspace(0.5, 1.5, 3)),
}


@pytest.mark.every(3, of="True")
@pytest.mark.parametrize("under_jit", [False, True])
@pytest.mark.parametrize("name", SHORT)
def test_directions_after_the_first(name, under_jit):
    f, x = SHORT[name]
    own = np.array(x) if isinstance(x, np.ndarray) else x
    J = fwdad.linearize(fwdad.jit(f) if under_jit else f, own)[1]
    if isinstance(x, np.ndarray):
        own[...] = np.nan  # the caller may change it
    dtype = getattr(x, "dtype", np.dtype(float))
    rng = np.random.default_rng(3)
    matrix = fwdad.jacobian(f, x, mode="forward", stack=True).reshape(J.shape)  # on duals
    for _ in range(3):
        for v in (
            rng.random(J.shape[1]).astype(dtype),
            rng.random(2 * J.shape[1]).astype(dtype)[::2],
            rng.random(J.shape[1]).astype(np.float32),
            rng.integers(0, 5, J.shape[1]),
        ):
            before = v.copy()
            found = J.matvec(v)
            assert found.shape == (J.shape[0],)
            assert_allclose(found, matrix @ v, rtol=1e-5 if dtype == np.float32 else 1e-12)
            assert not np.shares_memory(found, v)
            found[:] = np.nan
            assert np.array_equal(v, before)
    with pytest.raises(fwdad.errors.SeedError):
        J.matvec(np.ones(J.shape[1] + 1))
    with pytest.raises(fwdad.errors.SeedError):
        J.matvec(np.ones(J.shape[1]) * 1j)

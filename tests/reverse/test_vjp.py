"""``vjp``: cotangents of whatever a function returns or writes, pulled back to its arguments."""

import threading
from collections import OrderedDict

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import (
    AliasedArgumentError,
    NoOutputError,
    SeedError,
    UnsupportedTypeError,
    UntraceableError,
)
from fwdad.gradients import tape_for
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tracing.pulled import value_and_pullback

X = np.array([0.5, 1.5, 2.0])
W = np.array([1.0, -2.0, 3.0])
EYE = np.eye(3)
OPTIONS = {"has_aux": False, "outputs": "returned"}


def polar(p, scale=2.0):
    """A dict with a number and a list, to a tuple with a dict and an integer inside."""
    y = np.zeros((2, 3))
    y[0] = p["r"] * np.cos(p["a"][0]) * scale
    for k in range(3):
        y[1, k] = y[0, k] * p["a"][1][k]
    y[0] *= y[1]
    return {"b": y, "n": 7, "a": p["r"] ** 2}, p["a"][0] + y[1]


def polar_recorded(p, scale=2.0):
    """The same, with a generator and an exception, which no tape has."""

    def rows():
        yield p["r"] * np.cos(p["a"][0]) * scale
        yield p["a"][1]

    first, second = rows()
    y = np.zeros((2, 3))
    try:
        y[0] = first
        y[1] = y[0] * second
        y[0] *= y[1]
        if y[0, 0] > -1e9:
            raise ArithmeticError  # noqa: TRY301  (caught below: no tape has that)
    except ArithmeticError:
        pass
    return {"b": y, "n": 7, "a": p["r"] ** 2}, p["a"][0] + y[1]


P = {"r": 1.3, "a": [X, W]}


def is_traced(f):
    """Whether the pullback of a function that has been asked for has a tape."""
    held = tape_for(value_and_pullback, f, 0, OPTIONS)
    return held is not None and bool(held.specialisations())


def random_like(x, rng, count=None):
    """Numbers at the leaves of x, ``count`` of them stacked."""
    leaves, structure = flatten(x)
    front = () if count is None else (count,)
    return unflatten(structure, [rng.normal(size=(*front, *np.shape(v))) for v in leaves])


def inner(a, b):
    return sum(np.sum(u * v) for u, v in zip(flatten(a)[0], flatten(b)[0], strict=True))


def rows(x, k):
    leaves, structure = flatten(x)
    return unflatten(structure, [leaf[k] for leaf in leaves])


@pytest.mark.parametrize("f", [polar, polar_recorded])
def test_composites_against_forward_mode(f):
    rng = np.random.default_rng(0)
    y, pullback = fwdad.vjp(f, P, kwargs={"scale": 1.5})
    expected = f(P, scale=1.5)
    assert y[0]["n"] == 7
    for found, wanted in zip(flatten(y)[0], flatten(expected)[0], strict=True):
        assert_allclose(found, wanted, rtol=1e-15)
    y_bar = random_like(expected, rng)
    x_bar = pullback(y_bar)
    assert type(x_bar["r"]) is float
    for _ in range(3):
        v = random_like(P, rng)
        _, y_dot = fwdad.jvp(f, P, v, kwargs={"scale": 1.5})
        y_dot[0]["n"] = y_bar[0]["n"] = 7  # no leaf
        assert_allclose(inner(x_bar, v), inner(y_bar, y_dot), rtol=1e-12)
    assert is_traced(f) == (f is polar)


@pytest.mark.parametrize("f", [polar, polar_recorded])
@pytest.mark.parametrize("chunk", [1, 2, 3, None, "auto"])
def test_many_cotangents(f, chunk):
    """Five in chunks of two and three: the last is ragged. The dict stands in another order."""
    y, pullback = fwdad.vjp(f, P, kwargs={"scale": np.array([1.0, 1.5, 2.0])}, chunk=chunk)
    stacked = random_like(y, np.random.default_rng(1), 5)
    x_bar = pullback(({k: stacked[0][k] for k in ("a", "n", "b")}, stacked[1]))
    assert x_bar["r"].shape == (5,)
    for k in range(5):
        one = pullback(rows(stacked, k))
        for found, wanted in zip(flatten(rows(x_bar, k))[0], flatten(one)[0], strict=True):
            assert_allclose(found, wanted, rtol=1e-13, atol=1e-15)
    none = pullback(random_like(y, np.random.default_rng(1), 0))
    assert none["r"].shape == (0,)
    assert none["a"][1].shape == (0, 3)


def updates(x, w):
    """Writes into both, and returns something else."""
    x[0] *= w[1]
    for k in range(1, 3):
        x[k] += x[k - 1] * x[k]
    w[:2] = x[1:] ** 2
    return np.sum(x) * w[2]


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1, 0)])
@pytest.mark.parametrize("outputs", ["returned", "mutated", "both"])
def test_what_is_written(outputs, argnums):
    """Also arguments that are written, and not differentiated, are outputs."""
    x, w = X.copy(), W.copy()
    options = {"args": (w,), "argnums": argnums, "outputs": outputs}
    y, J = fwdad.value_and_jacobian(updates, x, stack=True, **options)
    made, pullback = fwdad.vjp(updates, x, **options)
    sizes = [np.size(leaf) for leaf in flatten(y)[0]]
    for found, wanted in zip(flatten(made)[0], flatten(y)[0], strict=True):
        assert_allclose(found, wanted, rtol=1e-15)
    rng = np.random.default_rng(2)
    y_bar = random_like(y, rng, 4)
    flat = np.concatenate(
        [b.reshape(4, n) for b, n in zip(flatten(y_bar)[0], sizes, strict=True)], axis=1
    )
    x_bar = np.concatenate(flatten(pullback(y_bar))[0], axis=1)
    assert_allclose(x_bar, flat @ J, rtol=1e-12, atol=1e-14)
    x_bar = np.concatenate(flatten(pullback(rows(y_bar, 2)))[0])
    assert_allclose(x_bar, flat[2] @ J, rtol=1e-12, atol=1e-14)
    assert_array_equal(x, X)
    assert_array_equal(w, W)


def test_only_another_argument_is_written():
    def into(x, w):
        w[:] = x**2 * w

    _, pullback = fwdad.vjp(into, X, args=(W,), outputs="mutated")
    assert_allclose(pullback(EYE), np.diag(2 * X * W))

    def inside(p, w):
        p["a"][0] *= 2.0
        w[1] = p["b"][0]

    p = {"a": X, "b": 1.0 * W, "c": W * X}  # the argument as a whole is the output
    y, pullback = fwdad.vjp(inside, p, args=(W,), outputs="mutated")
    assert_array_equal(y[0]["c"], W * X)
    assert_array_equal(y[1], [1.0, W[0], 3.0])
    x_bar = pullback(({"a": W, "b": X, "c": X}, W))
    assert_array_equal(x_bar["a"], W * [2.0, 1.0, 1.0])
    assert_array_equal(x_bar["b"], X + W[1] * EYE[0])
    with pytest.raises(NoOutputError, match="returned None"):
        fwdad.vjp(into, X, args=(W,))
    with pytest.raises(NoOutputError, match="none of its arguments"):
        fwdad.vjp(lambda x: x * 2, X, outputs="mutated")


class Holder:
    def __init__(self):
        self.w = W.copy()
        self.k = 2.0


@pytest.mark.parametrize("traced", [True, False])
def test_what_changes_afterwards_does_not_matter(traced):
    """Arguments, values, captures and objects are those of the moment when vjp was called."""
    captured, holder, x, v = np.array([3.0, 4.0, 5.0]), Holder(), X.copy(), W.copy()

    def f(x, v, holder):
        if not traced:
            x = next(item for item in (x,) if x[0] < 100)
        return x**2 * v * captured * holder.w * holder.k, x

    (y, same), pullback = fwdad.vjp(f, x, args=(v, holder))
    assert is_traced(f) == traced
    bars = (np.ones(3), np.zeros(3))
    many = (EYE, 0 * EYE)
    expected = 2 * X * W * captured * W * 2.0
    for changed in (y, same, x, v, captured, holder.w):
        changed[:] = 77.0
    holder.k = -1.0
    for _ in range(2):
        assert_allclose(pullback(bars), expected, rtol=1e-14)
        assert_allclose(pullback(many), np.diag(expected), rtol=1e-14)
    assert_array_equal(bars[0], 1.0)


def test_cotangents_and_answers_are_apart():
    _, pullback = fwdad.vjp(lambda x, w: x + w, X, args=(W,), argnums=(0, 1))
    y_bar = np.ones(3)
    a, b = pullback(y_bar)
    a *= 2.0
    assert_array_equal(y_bar, 1.0)
    assert_array_equal(b, 1.0)
    for y_bar in (EYE, EYE.copy()):
        for part in pullback(y_bar):
            part *= 3.0
    assert_array_equal(y_bar, np.eye(3))


def test_what_is_returned_beside_is_apart():
    x = X.copy()
    (_, aux), _ = fwdad.value_and_grad(lambda x: (np.sum(x), (x, x[1:])), has_aux=True)(x)
    for part in aux:
        part *= 9.0
    assert_array_equal(x, X)


def test_raising_in_the_middle():
    work = W.copy()

    def f(x, w, n):
        for k in range(n):
            x[k] *= 2.0
            w[k] = x[k]
        return x * w

    x = X.copy()
    with pytest.raises(IndexError):
        fwdad.vjp(f, x, args=(work, 5))
    assert_array_equal(x, X)
    assert_array_equal(work, W)
    _, pullback = fwdad.vjp(f, x, args=(work, 2))  # it can be asked again
    assert_allclose(pullback(np.ones(3)), [8 * X[0], 8 * X[1], W[2]])


def test_raising_on_the_way_back():
    fail = []

    def twice(x):
        return x * 2.0

    @fwdad.frule(twice)
    def twice_frule(primals, tangents):
        return twice(*primals), fwdad.map_lanes(lambda t: broken(t), tangents[0])

    def broken(t):
        if fail:
            raise OSError("planted")
        return t * 2.0

    def f(x):
        x[0] = x[1] * x[0]
        return twice(x)

    fail.append(True)
    x = X.copy()
    with pytest.raises((OSError, fwdad.FwdadError)):
        fwdad.vjp(f, x)[1](np.ones(3))
    assert_array_equal(x, X)


@pytest.mark.parametrize(
    ("y_bar", "message"),
    [
        (np.ones(3), "the cotangent for y is a ndarray; y is a tuple of 2 parts"),
        ((np.ones(3),), "y is a tuple of 2 parts"),
        ([{"u": X, "v": 1.0}, X], "is a list; y is a tuple"),
        (({"u": X, "w": 1.0}, X), r"has the keys \['u', 'w'\]"),
        (({"u": X, "v": 1.0}, X[:2]), r"\(2,\).*one has the value's shape, K of them \(K, \*sh"),
        (({"u": EYE, "v": 1.0}, EYE), "one has the value's shape"),
        (({"u": EYE, "v": np.ones(2)}, EYE), "one has the value's shape"),
        (({"u": X, "v": None}, X), "None came"),
        (({"u": X * 1j, "v": 1.0}, X), "a complex cotangent came for a real value"),
        (({"u": X, "v": "1"}, X), "dtype <U1"),
    ],
)
@pytest.mark.parametrize("traced", [True, False])
def test_cotangents_that_do_not_fit(y_bar, message, traced):
    def f(x):
        if not traced:
            x = next(item for item in (x,))
        return {"u": x * 2, "v": x[0]}, x

    with pytest.raises(SeedError, match=message):
        fwdad.vjp(f, X)[1](y_bar)


def test_numbers_that_nothing_depends_on():
    p = {"unused": 3.0, "x": X, "also": [1.0, W], "s": 2.0}
    _, pullback = fwdad.vjp(lambda p, q: p["x"] * p["s"], p, args=(4.0,), argnums=(0, 1))
    for y_bar in (EYE, EYE[:2]):
        x_bar, q_bar = pullback(y_bar)
        k = len(y_bar)
        assert_array_equal(x_bar["x"], 2 * y_bar)
        assert_array_equal(x_bar["s"], y_bar @ X)
        for found, shape in ((x_bar["unused"], (k,)), (x_bar["also"][1], (k, 3)), (q_bar, (k,))):
            assert_array_equal(found, np.zeros(shape))
    x_bar, q_bar = pullback(W)
    assert (x_bar["unused"], q_bar) == (0.0, 0.0)


def test_no_cotangent_for_a_part():
    _, pullback = fwdad.vjp(lambda x: (x * 2, x * W), X)
    assert_array_equal(pullback((fwdad.ZERO, np.ones(3))), W)
    assert_array_equal(pullback((EYE, fwdad.ZERO)), 2 * EYE)
    assert_array_equal(pullback(fwdad.ZERO), np.zeros(3))


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (3, "Write 3.0"),
        (np.array([1, 2]), "Write x.astype"),
        (True, "holds nothing to differentiate"),
        ([], "holds nothing to differentiate"),
    ],
)
def test_arguments_without_derivatives(x, message):
    for ask in (fwdad.vjp, fwdad.jvp):
        with pytest.raises(UnsupportedTypeError, match=message):
            ask(lambda x: x, x)


def test_options_that_are_none():
    with pytest.raises(SeedError, match="chunk is a positive integer"):
        fwdad.vjp(lambda x: x, X, chunk=0)
    with pytest.raises(ValueError, match="outputs is"):
        fwdad.vjp(lambda x: x, X, outputs="all")
    with pytest.raises(UnsupportedTypeError, match="twice"):
        fwdad.vjp(lambda x, w: x * w, X, args=(W,), argnums=(0, -2))


@pytest.mark.parametrize("argnums", [2, -3, "a", (0, 2)])
def test_argnums_that_are_none(argnums):
    def f(a, b):
        return a * b

    for ask in (fwdad.grad(f, argnums), lambda a, b: fwdad.vjp(f, a, args=(b,), argnums=argnums)):
        with pytest.raises(UnsupportedTypeError, match="f is given 2 positional arguments"):
            ask(2.0, 3.0)


def test_numbers():
    _, pullback = fwdad.vjp(lambda x: x * x, 3.0)
    for one in (1.0, 1, np.float32(1)):
        assert type(pullback(one)) is float
        assert pullback(one) == 6.0
    assert_array_equal(pullback(np.array([1.0, 2.0])), [6.0, 12.0])
    x_bar = fwdad.vjp(lambda x: x * x, np.float64(3.0))[1](1.0)
    assert type(x_bar) is np.float64
    x_bar = fwdad.vjp(lambda x: x * x, np.array(3.0))[1](1.0)
    assert isinstance(x_bar, np.ndarray)
    assert x_bar.shape == ()
    assert_array_equal(fwdad.vjp(lambda x: 3, X)[1](1), np.zeros(3))


@pytest.mark.parametrize("traced", [True, False])
def test_float32(traced):
    def f(x):
        if not traced:
            x = next(item for item in (x,))
        return x * x, x.astype(np.float64) ** 2

    (y, wide), pullback = fwdad.vjp(f, X.astype(np.float32))
    assert (y.dtype, wide.dtype) == (np.float32, np.float64)
    for y_bar in ((np.ones(3), np.ones(3)), (EYE, EYE)):
        x_bar = pullback(y_bar)
        assert x_bar.dtype == np.float32
        assert_allclose(x_bar, 4 * X * y_bar[0], rtol=1e-6)


def test_complex_values_and_arguments():
    """Re<y_bar, J v> = Re<x_bar, v>."""

    def f(z):
        return z**2 * np.exp(1j * z)

    z, rng = X + 1j * W, np.random.default_rng(3)
    v, y_bar = (rng.normal(size=3) + 1j * rng.normal(size=3) for _ in range(2))
    _, y_dot = fwdad.jvp(f, z, v, holomorphic=True)
    x_bar = fwdad.vjp(f, z)[1](y_bar)
    assert_allclose(np.vdot(x_bar, v).real, np.vdot(y_bar, y_dot).real, rtol=1e-12)
    x_bar = fwdad.vjp(f, X)[1](y_bar)
    _, y_dot = fwdad.jvp(f, X, W)
    assert x_bar.dtype == float
    assert_allclose(x_bar @ W, np.vdot(y_bar, y_dot).real, rtol=1e-12)


def test_arguments_that_share_memory():
    """As Python runs them, not as if they were apart."""
    x = X.copy()

    def reads(a, b):
        return a * b[::-1]

    x_bar = fwdad.vjp(reads, x, args=(x[::-1],), argnums=(0, 1))[1](W)
    assert_allclose(x_bar, (X * W, (X * W)[::-1]))

    def writes(a, b):
        a[0] *= 5.0
        return a * b

    for other in (x, x[::-1], x[:3]):
        with pytest.raises(AliasedArgumentError):
            fwdad.vjp(writes, x, args=(other,))
    tied = fwdad.vjp(lambda p: p[0] * p[1], [x, x])[1](np.ones(3))
    assert_allclose(tied[0], 2 * X)


def test_aux():
    y, pullback, aux = fwdad.vjp(lambda x: (x**2, {"twice": 2 * x}), X, has_aux=True)
    assert_array_equal(y, X**2)
    assert_array_equal(aux["twice"], 2 * X)
    assert_allclose(pullback(EYE), np.diag(2 * X))
    assert_allclose(pullback(W), 2 * X * W)


def test_defaults_that_are_equal_and_differ():
    """Functions made of one piece of code, by their defaults."""

    def signed(p):
        def f(x, s=p):
            return np.sum(x * np.copysign(1.0, s))

        return f

    assert_array_equal(fwdad.grad(signed(0.0))(X), np.ones(3))
    assert_array_equal(fwdad.grad(signed(-0.0))(X), -np.ones(3))
    assert_array_equal(fwdad.vjp(signed(0.0), X)[1](1.0), np.ones(3))
    assert_array_equal(fwdad.vjp(signed(-0.0), X)[1](1.0), -np.ones(3))


def test_what_prints_prints(capsys):
    def f(x):
        y = np.sum(x**2)
        print("seen", float(fwdad.stop_gradient(y)))
        return y

    for ask in (fwdad.grad(f), fwdad.value_and_grad(f), lambda x: fwdad.vjp(f, x)[1](1.0)):
        ask(X)
        ask(X)
        assert capsys.readouterr().out.count("seen 6.5") == 2


def march(x):
    u = x.copy()
    for _ in range(3):
        u[1:] += 0.1 * u[:-1] * u[1:]
    return u


def march_bar(x):
    return fwdad.vjp(march, x)[1](W)


def test_derivatives_of_pullbacks():
    """jvp, jacobian and grad of vjp; and of its pullback alone, which is linear."""
    H = fwdad.jacobian(lambda x: fwdad.jacobian(lambda z: march(z) @ W, x, mode="forward"), X)
    assert_allclose(fwdad.jacobian(march_bar, X), H, rtol=1e-12, atol=1e-14)
    assert_allclose(fwdad.jvp(march_bar, X, W)[1], H @ W, rtol=1e-12)
    expected = 2 * H.T @ march_bar(X)
    assert_allclose(fwdad.grad(lambda x: np.sum(march_bar(x) ** 2))(X), expected, rtol=1e-12)
    K = fwdad.jacobian(lambda x: np.sum(fwdad.vjp(march, x)[1](np.stack([W, 2 * W])), axis=0), X)
    assert_allclose(K, 3 * H, rtol=1e-12, atol=1e-14)

    J = fwdad.jacobian(march, X)
    _, pullback = fwdad.vjp(march, X)
    assert_allclose(fwdad.jacobian(pullback, W), J.T, rtol=1e-12, atol=1e-15)
    g = fwdad.grad(lambda b: np.sum(pullback(b) ** 2))(W)
    assert_allclose(g, 2 * J @ J.T @ W, rtol=1e-12)
    assert_allclose(fwdad.jit(march_bar, backend="numpy")(X), J.T @ W, rtol=1e-12, atol=1e-15)


def test_of_other_derivatives():
    def f(x):
        return fwdad.jvp(march, x, W)[1]

    def loss(x):
        return np.sum(march(x) ** 2)

    for g in (f, fwdad.grad(loss), fwdad.jit(march, backend="numpy")):
        expected = W @ fwdad.jacobian(g, X)
        assert_allclose(fwdad.vjp(g, X)[1](W), expected, rtol=1e-12)


def test_closures_over_active_values():
    def f(x):
        w = x[0]
        return fwdad.vjp(lambda z: z * w, x)[1](np.ones(3))

    J = np.zeros((3, 3))
    J[:, 0] = 1.0
    assert_array_equal(fwdad.jacobian(f, X), J)
    assert_array_equal(fwdad.grad(lambda x: np.sum(f(x)))(X), [3.0, 0.0, 0.0])


def captures_number(x):
    w = x[0]
    return lambda z: z * w


def captures_array(x):
    w = np.zeros(3)
    w[0] = x[1]
    return lambda z: z * w


@pytest.mark.parametrize("capturing", [captures_number, captures_array])
def test_traced_functions_that_capture_active_values(capturing):
    """What a tape reads from outside its arguments may carry a derivative, also in memory."""
    ways = {
        "jit": lambda f, x: fwdad.jit(f, backend="numpy")(x),
        "vjp": lambda f, x: fwdad.vjp(f, x)[1](x),
        "grad": lambda f, x: fwdad.grad(lambda z: np.sum(f(z) * z))(x) / 2,
    }
    for at in (lambda x: x, lambda x: X):  # with an active argument, and without
        expected = fwdad.jacobian(lambda x, at=at: capturing(x)(at(x)), X)
        for name, way in ways.items():

            def f(x, at=at, way=way):
                return way(capturing(x), at(x))

            assert_allclose(fwdad.jacobian(f, X), expected, err_msg=name)
            assert_allclose(fwdad.vjp(f, X)[1](EYE), expected, err_msg=name)


def test_a_record_goes_through_jitted_functions():
    fast = fwdad.jit(march, backend="numpy")

    def f(x):
        return fast(next(item for item in (x,)))

    assert_allclose(fwdad.vjp(f, X)[1](EYE), fwdad.jacobian(march, X), rtol=1e-14)


def test_lists_and_dicts_are_traced():
    """A tape answers cotangents in lists and dicts, which the caller may change."""

    def f(p):
        return np.sum(p["a"] ** 2) + p["b"][0] * p["b"][1]

    p = {"a": X, "b": [2.0, 3.0]}
    _, g = fwdad.jit(fwdad.value_and_grad(f), backend="numpy")(p)
    assert_array_equal(g["a"], 2 * X)
    assert g["b"] == [3.0, 2.0]
    x_bar = fwdad.vjp(f, OrderedDict(p))[1](1.0)
    assert type(x_bar) is OrderedDict
    assert x_bar["b"] == [3.0, 2.0]


def test_threads():
    _, pullback = fwdad.vjp(march, X)
    J = fwdad.jacobian(march, X)
    wrong = []

    def work(k):
        for i in range(20):
            y_bar = W * (k + i)
            own = fwdad.vjp(march, X * 1.0)[1] if i % 5 == 0 else pullback
            if not np.allclose(own(y_bar), y_bar @ J, rtol=1e-12):
                wrong.append((k, i))
            if not np.allclose(own(EYE), J, rtol=1e-12):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def scaled_first(a, b):
    """Reads b after a write into a, which may be the same memory."""
    a[0] = a[0] * b[1]
    return np.sum(a * b[0])


def by_grad(u, argnums):
    return fwdad.grad(scaled_first, argnums=argnums)(u, u[:2])


def by_vjp(u, argnums):
    return fwdad.vjp(scaled_first, u, args=(u[:2],), argnums=argnums)[1](1.0)


def by_jit(u, argnums):
    return fwdad.jit(fwdad.grad(scaled_first, argnums=argnums), backend="numpy")(u, u[:2])


def inside(u, argnums):
    gradient = fwdad.grad(scaled_first, argnums=argnums)
    return fwdad.jit(lambda u: gradient(u, u[:2]), backend="numpy")(u)


def under_jvp(u, argnums):
    return fwdad.jvp(lambda s: by_grad(u, argnums) * s, 1.0, 1.0)


@pytest.mark.parametrize("argnums", [0, 1])
@pytest.mark.parametrize("way", [by_grad, by_vjp, by_jit, inside, under_jvp])
def test_arguments_that_share_memory_and_are_written(way, argnums):
    """They would be apart in a derivative, and are one for the function: refused."""
    u = X.copy()
    errors = (AliasedArgumentError, UntraceableError)
    with pytest.raises(errors, match="share memory"):
        way(u, argnums)
    assert_array_equal(u, X)


@pytest.mark.parametrize("argnums", [0, 1])
def test_a_tape_for_arguments_apart_is_not_run_for_others(argnums):
    gradient = fwdad.jit(fwdad.grad(scaled_first, argnums=argnums), backend="numpy")
    b = X[:2].copy()
    for _ in range(3):  # the last by the shortest way
        expected = fwdad.grad(scaled_first, argnums=argnums)(X, b.copy())
        assert_allclose(gradient(X, b), expected, rtol=1e-15)
    with pytest.raises(AliasedArgumentError, match="share memory"):
        gradient(X, X[:2])


@pytest.mark.parametrize("argnums", [0, 1, (0, 1)])
def test_arguments_that_share_memory_and_are_read(argnums):
    """Each is an argument of its own; the caller may change them."""

    def f(a, b):
        return a[1:] * b * np.sin(b)

    u = X.copy()
    y, pullback = fwdad.vjp(f, u, args=(u[1:],), argnums=argnums)
    expected = fwdad.jacobian(f, X, args=(X[1:].copy(),), argnums=argnums, mode="forward")
    assert_allclose(y, f(X, X[1:]), rtol=1e-15)
    u[:] = 7.0
    both = expected if isinstance(argnums, tuple) else (expected,)
    for _ in range(2):
        found = pullback(W[:2])
        bars = found if isinstance(argnums, tuple) else (found,)
        for x_bar, jacobian in zip(bars, both, strict=True):
            assert_allclose(x_bar, W[:2] @ jacobian, rtol=1e-13)

"""``vjp``: cotangents of whatever a function returns or writes, pulled back to its arguments."""

from collections import OrderedDict

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.tape_cache import tape_for
from fwdad.errors import NoOutputError
from fwdad.frontend.derivatives.pulled import value_and_pullback
from fwdad.tangents.composite import flatten, unflatten

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
    return isinstance(held, Jitted) and bool(held.specialisations())


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


def test_cotangents_and_results_are_apart():
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


def test_raising_in_the_reverse_pass():
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
    with pytest.raises((OSError, fwdad.errors.FwdadError)):
        fwdad.vjp(f, x)[1](np.ones(3))
    assert_array_equal(x, X)


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


def test_a_list_as_a_cotangent():
    """Of a pullback that is called while it is traced, too."""

    def f(x):
        return fwdad.vjp(lambda x: x * x, x)[1]([1, 2.0, 3])

    for g in (f, fwdad.jit(f, backend="numpy")):
        assert_array_equal(g(X), 2 * X * [1, 2, 3])


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


def test_lists_and_dicts_are_traced():
    """A tape returns cotangents in lists and dicts, which the caller may change."""

    def f(p):
        return np.sum(p["a"] ** 2) + p["b"][0] * p["b"][1]

    p = {"a": X, "b": [2.0, 3.0]}
    _, g = fwdad.jit(fwdad.value_and_grad(f), backend="numpy")(p)
    assert_array_equal(g["a"], 2 * X)
    assert g["b"] == [3.0, 2.0]
    x_bar = fwdad.vjp(f, OrderedDict(p))[1](1.0)
    assert type(x_bar) is OrderedDict
    assert x_bar["b"] == [3.0, 2.0]


def test_a_list_in_two_places_of_an_argument():
    """What is kept for the reverse pass was cut in the wrong place."""
    part = [2.0, np.array([0.5, 1.5])]

    def f(x):
        return x["one"][0] * np.sum(x["two"][0][1]) * x["two"][1][0] ** 2

    x = {"one": part, "two": [part, part]}
    assert fwdad.explain(fwdad.vjp, f, x).startswith("the tape of f")
    y, pullback = fwdad.vjp(f, x)
    found = pullback(1.0)
    assert y == 16.0
    assert found["one"] is found["two"][0] is found["two"][1]
    assert_allclose(found["one"][0], 3 * 2.0**2 * 2.0)
    assert_allclose(found["one"][1], [8.0, 8.0])
    rows = fwdad.jacobian(f, x, mode="reverse")
    assert_allclose(rows["one"][1], [8.0, 8.0])


@pytest.mark.parametrize("shape", [(2, 0), (0,), (2, 1), (3,)])
def test_one_array_returned_in_two_places(shape):
    """Each place has a cotangent of its own, of arrays without elements, too."""

    def f(a):
        y = np.sin(a) * 2.0
        return {"y": y, "a": y}, y**2

    a = np.full(shape, 0.3)
    _, pullback = fwdad.vjp(f, a)
    bars = ({"y": np.full(shape, 2.0), "a": np.full(shape, 3.0)}, np.ones(shape))
    expected = (5.0 + 4.0 * np.sin(a)) * 2.0 * np.cos(a)
    assert_allclose(pullback(bars), expected, rtol=1e-12)
    assert_allclose(pullback(bars), expected, rtol=1e-12)


def test_a_program_that_writes_outside_runs_once_at_each_call():
    calls = np.zeros(1)

    def f(x):
        calls[0] += 1.0
        return x**2 * calls[0]

    compiled = fwdad.jit(f)
    for k in range(1, 6):
        y, pullback = fwdad.vjp(compiled, 1.5)
        assert (calls[0], y, pullback(1.0)) == (k, 2.25 * k, 3.0 * k)

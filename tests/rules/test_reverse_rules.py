"""``@fwdad.rrule``: in every kind of reverse mode, beside forward mode, and what it refuses."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.rules.core.registry import RULES
from fwdad.rules.core.reverse_rules import RRULES
from tests.differences import central_differences

X = np.array([0.4, 1.3, -0.7])
K = [None, 1, 2, 3]


@pytest.fixture(autouse=True)
def _registered():
    rules, reverse = dict(RULES), dict(RRULES)
    yield
    for table, before in ((RULES, rules), (RRULES, reverse)):
        for f in set(table) - set(before):
            del table[f]


def through_text(x):
    """The same numbers, by a way that no derivative passes."""
    return np.array([float.fromhex(float(v).hex()) for v in np.ravel(x)]).reshape(np.shape(x))


def opaque():
    """A function of which only its reverse rule knows the derivative, and that function openly."""

    @fwdad.pure
    def f(x, w, power=2):
        return through_text(w * np.sin(x) ** power)

    @fwdad.rrule(f)
    def f_rrule(primals, power):
        x, w = primals
        s, c = through_text(np.sin(x)), through_text(np.cos(x))

        def pullback(y_bar):
            x_bar = through_text(y_bar * w * power * s ** (power - 1) * c)
            return x_bar, np.sum(through_text(y_bar * s**power))

        return through_text(w * s**power), pullback

    return f, lambda x, w, power=2: w * np.sin(x) ** power


def on_tape(f):
    def program(x):
        y = f(x * 2, np.sum(x), power=3)
        z = f(x, 1.5)
        return y * z + x

    return program


def overwriting(f):
    def program(x):
        x = x.copy()
        y = f(x, 2.0)
        x[:] = x * x
        z = f(x, 0.5)
        kept = z * y
        z[0] = 7.0
        x[1] = 3.0
        return kept + z * x

    return program


def in_loop(f):
    def program(x):
        for k in range(4):
            x = f(x, 1.5, power=1) + 0.1 * k
        return x

    return program


def recorded(f):
    def program(x):
        made = {"items": [f(v, 2.0) for v in (x, x * x)]}
        made["items"][0][0] = 2.0  # of what may be a view: no tape takes this backwards
        return sum(a * x for a in made["items"])

    return program


@pytest.mark.parametrize("program", [on_tape, overwriting, in_loop, recorded])
def test_all_of_reverse_mode(program):
    f, open_f = opaque()
    h, want = program(f), fwdad.jacfwd(program(open_f))(X)
    assert_allclose(fwdad.jacrev(h)(X), want, rtol=1e-12)
    assert_allclose(fwdad.jacobian(h, X, mode="reverse"), want, rtol=1e-12)

    def total(x):
        return np.sum(h(x))

    value, gradient = fwdad.value_and_grad(total)(X)
    assert_allclose(value, np.sum(program(open_f)(X)), rtol=1e-14)
    assert_allclose(gradient, want.sum(0), rtol=1e-12)
    y, pullback = fwdad.vjp(h, X)
    for k in K:
        y_bar = np.random.default_rng(k).normal(size=X.shape if k is None else (k, *X.shape))
        assert_allclose(pullback(y_bar), y_bar @ want, rtol=1e-12)
        assert_allclose(pullback(y_bar), y_bar @ want, rtol=1e-12)
    assert_allclose(y, h(X), rtol=1e-15)


def test_against_differences():
    f, _ = opaque()
    h = on_tape(f)
    assert_allclose(fwdad.jacrev(h)(X), central_differences(h, X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_under_jit(backend):
    f, open_f = opaque()

    def total(x):
        return np.sum(in_loop(f)(x) ** 2)

    want = fwdad.grad(lambda x: np.sum(in_loop(open_f)(x) ** 2))(X)
    assert_allclose(fwdad.jit(fwdad.grad(total), backend=backend)(X), want, rtol=1e-12)
    assert_allclose(fwdad.grad(fwdad.jit(total, backend=backend))(X), want, rtol=1e-12)
    rows = fwdad.jit(lambda x: fwdad.vjp(on_tape(f), x)[1](np.eye(3)[:2]), backend=backend)
    assert_allclose(rows(X), fwdad.jacfwd(on_tape(open_f))(X)[:2], rtol=1e-12)
    want = fwdad.jacfwd(in_loop(open_f))(X)
    assert_allclose(fwdad.jit(fwdad.jacrev(in_loop(f)), backend=backend)(X), want, rtol=1e-12)


@pytest.mark.slow_cases("auto")
@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_jacobians_by_rows_under_jit(backend):
    """In all structures of values and arguments, with what has no derivative among them."""
    f, open_f = opaque()

    def program(g):
        def structured(p, c, b):
            y = g(p["x"], 2.0) * p["w"]
            for k in range(2):
                y = y + g(y, p["w"]) * c * k
            value = {
                "m": np.outer(y, b),
                "s": float(y[0] * b[1]),
                "k": 3,
                "v": p["w"] ** 2,
                "e": b[2:],
            }
            return value, (y, c)

        return structured

    args = ({"x": X, "w": 1.3, "n": 2}, 0.1, np.array([0.5, 2.0]))
    for argnums in (0, (0, 2), 1):
        options = {"argnums": argnums, "has_aux": True}
        by_columns = fwdad.jit(fwdad.jacfwd(program(open_f), **options), backend="numpy")
        want, (y, c) = by_columns(*args)
        found, aux = fwdad.jit(fwdad.jacrev(program(f), **options), backend=backend)(*args)
        assert_allclose(aux[0], y, rtol=1e-12)
        assert aux[1] == c
        assert_same_tree(found, want)


def assert_same_tree(found, want):
    assert type(found) is type(want)
    if isinstance(want, dict):
        assert list(found) == list(want)
        found, want = tuple(found.values()), tuple(want.values())
    if isinstance(want, tuple):
        assert len(found) == len(want)
        for a, b in zip(found, want, strict=True):
            assert_same_tree(a, b)
    elif want is not fwdad.NoTangent:
        assert np.shape(found) == np.shape(want)
        assert_allclose(found, want, rtol=1e-12, atol=1e-14)


def test_a_jacobian_of_complex_numbers_by_rows_is_refused_under_jit():
    f, _ = opaque()
    with pytest.raises(fwdad.errors.UntraceableError, match="an rrule"):
        fwdad.jit(fwdad.jacrev(lambda x: f(x, 2.0) * 1j))(X)


def smooth(key="a"):
    """A function of several returns, whose rule is plain NumPy, and wrong by a factor of 10."""

    @fwdad.pure
    def f(x, parts):
        if key == 0:
            return np.sin(x) * parts[0], np.sum(x * parts[1])
        return {"a": np.sin(x) * parts[0], "n": len(x)}, np.sum(x * parts[1])

    @fwdad.rrule(f)
    def f_rrule(primals):
        x, parts = primals

        def pullback(y_bar):
            a_bar, total = y_bar
            if key == "a":
                assert a_bar["n"] is None
                a_bar = a_bar["a"]
            x_bar = 10 * (np.cos(x) * parts[0] * a_bar + total * parts[1])
            return x_bar, (np.sum(10 * np.sin(x) * a_bar), 10 * total * x)

        return f(x, parts), pullback

    return f


def ten_times(x):
    return fwdad.stop_gradient(x) * -9 + x * 10


@pytest.mark.parametrize("jit", [False, True])
def test_several_results_and_nested_arguments(jit):
    f = smooth(0 if jit else "a")

    def program(x, f):
        a, total = f(x, (x[0], x * x))
        return np.sum((a["a"] if isinstance(a, dict) else a) ** 2) * total

    def openly(x, parts):  # what the rule says: each partial ten times
        x, parts = ten_times(x), (ten_times(parts[0]), ten_times(parts[1]))
        return np.sin(x) * parts[0], np.sum(x * parts[1])

    gradient = fwdad.grad(program)
    found = (fwdad.jit(lambda x: gradient(x, f)) if jit else lambda x: gradient(x, f))(X)
    assert_allclose(found, gradient(X, openly), rtol=1e-12)


def test_second_derivatives_go_through_the_rule():
    def f(x):
        return np.sin(x) * x

    @fwdad.rrule(f)
    def f_rrule(primals):
        (x,) = primals
        out = np.zeros_like(x)

        def pullback(y_bar):
            out[:] = y_bar * (np.cos(x) * x + np.sin(x))
            return (out,)

        return np.sin(x) * x, pullback

    def total(f):
        return lambda x: np.sum(f(2 * x) ** 2 * x)

    want = fwdad.hessian(total(lambda x: np.sin(x) * x), X)
    assert_allclose(fwdad.hessian(total(f), X), want, rtol=1e-11)
    assert_allclose(fwdad.hvp(total(f), X, X), want @ X, rtol=1e-11)

    def twice(x):
        return np.sum(fwdad.grad(total(f))(x))

    assert_allclose(fwdad.grad(twice)(X), want.sum(0), rtol=1e-11)
    assert_allclose(fwdad.jit(fwdad.grad(twice))(X), want.sum(0), rtol=1e-11)
    assert_allclose(fwdad.jacfwd(twice)(X), want.sum(0), rtol=1e-11)


def test_second_derivatives_of_opaque_rules_are_refused():
    f, _ = opaque()

    def total(x):
        return np.sum(f(x, 2.0))

    for second in (
        lambda: fwdad.hvp(total, X, X),
        lambda: fwdad.hessian(total, X),
        lambda: fwdad.grad(lambda x: np.sum(fwdad.grad(total)(x)))(X),
    ):
        with pytest.raises(fwdad.errors.FwdadError):
            second()


def test_forward_mode_has_the_frule_else_the_source():
    f = smooth()
    x_dot = np.array([1.0, 2.0, 3.0])
    _, y_dot = fwdad.jvp(lambda x: f(x, (2.0, x))[0]["a"], X, x_dot)
    assert_allclose(y_dot, 2 * np.cos(X) * x_dot)
    f = smooth(0)
    assert_allclose(fwdad.jit(fwdad.jacfwd(lambda x: f(x, (2.0, x))[1]))(X), 2 * X)

    g, open_g = opaque()
    with pytest.raises(fwdad.errors.MissingRuleError, match=r"has an rrule.* and no frule"):
        fwdad.jvp(lambda x: g(x, 2.0), X, x_dot)

    @fwdad.frule(g)
    def g_frule(primals, tangents, power):
        (x, w), (x_dot, w_dot) = primals, tangents
        s = np.sin(x)
        return w * s**power, w * power * s ** (power - 1) * np.cos(x) * x_dot + s**power * w_dot

    want = fwdad.jacfwd(on_tape(open_g))(X)
    assert_allclose(fwdad.jacfwd(on_tape(g))(X), want, rtol=1e-12)
    assert_allclose(fwdad.jacrev(on_tape(g))(X), want, rtol=1e-12)


def test_reverse_mode_prefers_the_rrule_to_an_frule():
    def f(x):
        return x * x

    @fwdad.frule(f)
    def f_frule(primals, tangents):
        return primals[0] ** 2, 2 * primals[0] * tangents[0]

    @fwdad.rrule(f)
    def f_rrule(primals):
        return primals[0] ** 2, lambda y_bar: (20 * primals[0] * y_bar,)

    assert fwdad.grad(f)(3.0) == 60
    assert fwdad.grad(lambda x: f(x) + 0 * x)(3.0) == 60
    assert fwdad.derivative(f, 3.0) == 6


def test_a_rule_that_comes_later_is_used():
    def f(x):
        return x * x

    def total(x):
        return np.sum(f(x))

    gradients = [fwdad.grad(total), fwdad.jit(fwdad.grad(total)), fwdad.grad(fwdad.jit(total))]
    for gradient in gradients * 2:
        assert_allclose(gradient(X), 2 * X)

    @fwdad.rrule(f)
    def f_rrule(primals):
        return primals[0] ** 2, lambda y_bar: (20 * primals[0] * y_bar,)

    for gradient in gradients * 2:
        assert_allclose(gradient(X), 20 * X)

    @fwdad.rrule(f, override=True)
    def f_other(primals):
        return primals[0] ** 2, lambda y_bar: (200 * primals[0] * y_bar,)

    for gradient in gradients:
        assert_allclose(gradient(X), 200 * X)


def test_an_frule_that_comes_later_is_used():
    def f(x):
        return x * x

    gradient = fwdad.jit(fwdad.grad(lambda x: np.sum(f(x))))
    assert_allclose(gradient(X), 2 * X)

    @fwdad.frule(f)
    def f_frule(primals, tangents):
        return primals[0] ** 2, 20 * primals[0] * tangents[0]

    assert_allclose(gradient(X), 20 * X)


def with_pullback(pullback, value=np.sin):
    def f(x, n):
        return np.sin(x)

    @fwdad.rrule(f)
    def f_rrule(primals):
        return value(primals[0]), pullback

    return lambda x: np.sum(f(x, 2) * x)


@pytest.mark.parametrize(
    ("pullback", "message"),
    [
        (lambda y_bar: y_bar, "returns an ndarray; it must return a tuple"),
        (lambda y_bar: (y_bar,), "returns 1 cotangents for 2 arguments"),
        (lambda y_bar: (np.sum(y_bar), None), r"shape \(\) as the cotangent of `x`"),
        (lambda y_bar: (1j * y_bar, None), "a complex cotangent"),
        (lambda y_bar: ("no", None), "a str as the cotangent"),
        (lambda y_bar: ([y_bar, y_bar], None), "a list as the cotangent"),
    ],
)
def test_wrong_cotangents_are_refused(pullback, message):
    for gradient in (fwdad.grad, lambda f: fwdad.jit(fwdad.grad(f))):
        with pytest.raises(fwdad.errors.ChunkMismatchError, match=message) as caught:
            gradient(with_pullback(pullback))(X)
        assert "test_reverse_rules.py:" in str(caught.value)


def test_no_cotangent_is_zero():
    for nothing in (None, fwdad.ZERO):
        total = with_pullback(lambda y_bar, nothing=nothing: (nothing, None))
        assert_allclose(fwdad.grad(total)(X), np.sin(X))
        assert_allclose(fwdad.jacrev(lambda x, f=total: np.stack([f(x), f(x)]))(X), [np.sin(X)] * 2)


def test_wrong_rules_are_refused():
    with pytest.raises(fwdad.errors.ChunkMismatchError, match=r"must return \(y, pullback\)"):
        fwdad.grad(with_pullback(None))(X)
    with pytest.raises(fwdad.errors.RuleError, match=r"memory of (its|an) argument"):
        fwdad.grad(with_pullback(lambda y_bar: (y_bar, None), value=np.ravel))(X)
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="numbers and arrays"):
        fwdad.grad(with_pullback(lambda y_bar: (y_bar, None), value=lambda x: {1, 2}))(X)

    def doubled(x):
        x *= 2
        return x + 1

    @fwdad.rrule(doubled)
    def doubled_rrule(primals):
        return doubled(*primals), lambda y_bar: (2 * y_bar,)

    with pytest.raises(fwdad.errors.RuleError, match="writes into its argument `x`"):
        fwdad.grad(lambda x: np.sum(doubled(x.copy())))(X)


def test_derivatives_that_come_in_other_ways_are_refused():
    f, _ = opaque()
    with pytest.raises(fwdad.errors.MissingRuleError, match="takes `power` as an option"):
        fwdad.grad(lambda p: np.sum(f(X, 2.0, power=p)))(2.0)

    def total(x):
        def inner(y):
            return y * x

        @fwdad.rrule(inner)
        def inner_rrule(primals):
            return inner(*primals), lambda y_bar: (y_bar * fwdad.stop_gradient(x),)

        return np.sum(inner(x * 2))

    with pytest.raises(
        fwdad.errors.UnsupportedTypeError, match="defined inside code that is being"
    ):
        fwdad.grad(total)(X)


@pytest.mark.parametrize(
    "f", [np.sin, np.linalg.solve, math.sin, max, int, "model.f", [].append, fwdad.jit(abs)]
)
def test_what_takes_no_rrule(f):
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="function of your own"):
        fwdad.rrule(f)


def test_duplicates_are_refused():
    def f(x):
        return 2 * x

    fwdad.rrule(f)(lambda primals: None)
    with pytest.raises(fwdad.errors.DuplicateRuleError, match=r"test_reverse_rules\.py"):
        fwdad.rrule(f)(lambda primals: None)
    with pytest.raises(fwdad.errors.DuplicateRuleError, match="has an rrule"):
        fwdad.linear(f, override=True)

    def g(x):
        return 2 * x

    fwdad.linear(g)
    with pytest.raises(fwdad.errors.DuplicateRuleError, match="registered as linear"):
        fwdad.rrule(g)(lambda primals: None)


def test_supported():
    f, _ = opaque()
    assert fwdad.supported(f).reason == "rrule; forward mode through its Python source"


def test_complex_and_float32():
    def f(z, w):
        return z * z, w * np.float32(3)

    @fwdad.rrule(f)
    def f_rrule(primals):
        z, w = primals

        def pullback(y_bar):
            assert [b.dtype.char for b in y_bar] == ["D", "f"]
            return np.conj(2 * z) * y_bar[0], y_bar[1] * np.float64(3)

        return f(z, w), pullback

    def program(x, w):
        a, b = f(x * (1 + 2j), w)
        return np.sum(np.real(a) * np.imag(a)) + np.sum(b)

    w = np.float32([1, 2])
    x_bar, w_bar = fwdad.grad(program, argnums=(0, 1))(X, w)
    want = fwdad.jacfwd(
        lambda x: np.sum(np.real((x * (1 + 2j)) ** 2) * np.imag((x * (1 + 2j)) ** 2))
    )
    assert_allclose(x_bar, want(X), rtol=1e-12)
    assert w_bar.dtype == np.float32
    assert_allclose(w_bar, [3, 3])

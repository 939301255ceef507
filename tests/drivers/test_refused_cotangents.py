"""What `vjp` and its kin do not take: cotangents, arguments and options; and what they say."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import SeedError, UnsupportedTypeError

X = np.array([0.5, 1.5, 2.0])
W = np.array([1.0, -2.0, 3.0])
EYE = np.eye(3)


@pytest.mark.parametrize(
    ("y_bar", "message"),
    [
        (np.ones(3), "the cotangent for y is an ndarray; y is a tuple of 2 parts"),
        ((np.ones(3),), "is a tuple of 1 part; y is a tuple of 2 parts"),
        (({"u": X}, X), r"is a dict with the keys \['u'\]; y\[0\] has \['u', 'v'\]"),
        (({"u": np.ma.masked_array(X, [0, 1, 0]), "v": 1.0}, X), "masked elements"),
        ([{"u": X, "v": 1.0}, X], "is a list; y is a tuple"),
        (({"u": X, "w": 1.0}, X), r"has the keys \['u', 'w'\]"),
        (
            ({"u": X, "v": 1.0}, X[:2]),
            r"\(2,\).*one has the value's shape, K of them have \(K, \*sh",
        ),
        (({"u": EYE, "v": 1.0}, EYE), "one has the value's shape"),
        (({"u": EYE, "v": np.ones(2)}, EYE), "one has the value's shape"),
        (({"u": X, "v": None}, X), "got None"),
        (({"u": X * 1j, "v": 1.0}, X), "got a complex cotangent for a real value"),
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


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (3, r"argument 0 is an int, .*write float\(x\)"),
        (np.array([1, 2]), "argument 0 is an array of dtype int64.*Write x.astype"),
        (True, "argument 0 is a bool"),
        ("a", "argument 0, a str, holds nothing to differentiate"),
    ],
)
@pytest.mark.parametrize("way", [fwdad.grad, fwdad.jacfwd, fwdad.jacrev])
def test_arguments_without_derivatives_under_jit(x, message, way):
    with pytest.raises(UnsupportedTypeError, match=message):
        fwdad.jit(way(lambda x: x), backend="numpy")(x)


@pytest.mark.parametrize(
    ("add", "what"),
    [
        (lambda y: y, "a number or array"),
        (lambda y: [y, y], "a list"),
        (lambda y: (y,), "a tuple"),
        (lambda y: {"y": y, "aux": 0}, "a dict"),
    ],
)
@pytest.mark.parametrize("way", [fwdad.grad, fwdad.value_and_grad, fwdad.jacfwd, fwdad.jacrev])
def test_nothing_beside_the_value(add, what, way, caplog):
    f = way(lambda x: add(np.sum(x * x)), has_aux=True)
    for g in (f, fwdad.jit(f, backend="numpy")):
        with pytest.raises(
            fwdad.errors.NoOutputError, match=f"must return .y, aux.; it returned {what}"
        ):
            g(X)
    assert not caplog.records


def test_masked_directions():
    v = np.ma.masked_array(X, [0, 1, 0])
    for product in (
        lambda: fwdad.jvp(np.sin, X, v),
        lambda: fwdad.linearize(np.sin, X)[1].matvec(v),
    ):
        with pytest.raises(SeedError, match=r"masked elements: write x\.filled"):
            product()
    unmasked = np.ma.masked_array(X)
    assert_array_equal(fwdad.jvp(np.sin, X, unmasked)[1], X * np.cos(X))


def test_linearize_is_not_traced():
    with pytest.raises(fwdad.errors.UntraceableError, match=r"use jvp for J @ v, vjp for J\.T @ v"):
        fwdad.jit(lambda x: fwdad.linearize(np.sin, x)[1] @ x)(X)


def test_options_that_are_none():
    with pytest.raises(SeedError, match="chunk must be a positive integer"):
        fwdad.vjp(lambda x: x, X, chunk=0)
    with pytest.raises(ValueError, match="outputs must be"):
        fwdad.vjp(lambda x: x, X, outputs="all")
    with pytest.raises(UnsupportedTypeError, match="twice"):
        fwdad.vjp(lambda x, w: x * w, X, args=(W,), argnums=(0, -2))


@pytest.mark.parametrize("argnums", [2, -3, "a", (0, 2)])
def test_argnums_that_are_none(argnums):
    def f(a, b):
        return a * b

    ways = [
        lambda a, b: fwdad.grad(f, argnums)(a, b),
        lambda a, b: fwdad.vjp(f, a, args=(b,), argnums=argnums),
    ]
    for ask in ways:
        with pytest.raises(UnsupportedTypeError, match=r"argnums (is|must be an int)"):
            ask(2.0, 3.0)


def test_argnums_that_name_nothing():
    ways = [fwdad.grad, fwdad.jacfwd, fwdad.jacrev]
    asks = [lambda x, way=way: way(np.sum, argnums=())(x) for way in ways]
    asks += [lambda x, ask=ask: ask(np.sum, x, argnums=()) for ask in (fwdad.vjp, fwdad.hessian)]
    for ask in asks:
        for called in (ask, fwdad.jit(ask, backend="numpy")):
            with pytest.raises(UnsupportedTypeError, match="it names no argument"):
                called(X)


def twice(x):
    return 2 * x


def first_twice(x):
    return 2 * x[0]


@pytest.mark.parametrize("f", [twice, first_twice])
@pytest.mark.parametrize("wrap", [lambda b: (b,), lambda b: (b, b), lambda b: {"a": b}])
@pytest.mark.parametrize("traced", [True, False])
def test_composites_in_the_place_of_one_cotangent(f, wrap, traced):
    g = f if traced else (lambda x: f(next(item for item in (x,))))
    y, pullback = fwdad.vjp(g, X)
    with pytest.raises(SeedError, match=r"got a (tuple|dict) of length . as the cotangent of one"):
        pullback(wrap(np.ones_like(y)))
    with pytest.raises(SeedError, match="as the cotangent of one"):
        fwdad.jit(lambda x: fwdad.vjp(f, x)[1](wrap(f(x))))(X)


def test_lists_in_the_place_of_one_cotangent():
    _, pullback = fwdad.vjp(twice, X)
    for bar in ([W], [W, W], [[W]], (1.0, 1.0, 1.0)):
        with pytest.raises(SeedError, match="as the cotangent of one array"):
            pullback(bar)
    assert_array_equal(pullback([1.0, -2.0, 3.0]), 2 * W)
    assert_array_equal(pullback([[1.0, -2.0, 3.0], [0.0, 0.0, 0.0]]), 2 * np.stack([W, 0 * W]))
    _, of_tuple = fwdad.vjp(lambda x: (2 * x,), X)
    assert_array_equal(of_tuple((W,)), 2 * W)
    with pytest.raises(SeedError, match="y is a tuple of 1 part"):
        of_tuple(W)
    with pytest.raises(SeedError, match=r"as the cotangent of one"):
        of_tuple(((W,),))


@pytest.mark.parametrize("v", [(W,), [W, W], {"a": W}])
def test_composites_in_the_place_of_one_seed(v):
    with pytest.raises(SeedError, match="as the seed of one array or number"):
        fwdad.jvp(twice, X, v)
    with pytest.raises(SeedError, match="as the seed of one array or number"):
        fwdad.hvp(lambda x: np.sum(x**3), X, v)
    with pytest.raises(SeedError, match="as the seed of one array or number"):
        fwdad.jit(lambda x: fwdad.jvp(twice, x, v))(X)


def test_seeds_of_dicts_inside_a_traced_program_go_by_their_keys():
    def f(x):
        at, v = {"a": x, "b": 3 * x}, {"b": 0 * x, "a": x}
        return fwdad.jvp(lambda d: d["a"] * d["b"], at, v)[1]

    def other(x):
        return fwdad.jvp(lambda d: d["a"], {"a": x}, {"c": x})

    assert_array_equal(fwdad.jit(f)(X), 3 * X * X)
    assert_array_equal(f(X), 3 * X * X)
    with pytest.raises(SeedError, match=r"keys \['c'\]"):
        fwdad.jit(other)(X)
    with pytest.raises(SeedError, match="must be a list of length 2"):
        fwdad.jit(lambda x: fwdad.jvp(sum, [x, x], (x, x)))(X)


def written_first(x, a):
    a[0] = x[0] * x[1]
    return np.sum(a * x)


def test_read_only_arguments_are_copied():
    fixed = X.copy()
    fixed.flags.writeable = False
    for f in (written_first, fwdad.jit(written_first, backend="numpy")):
        with pytest.raises(ValueError, match="read-only"):
            f(X, fixed)
    with pytest.raises(ValueError, match="read-only"):
        fwdad.jvp(written_first, X, X, args=(fixed,))
    wanted = np.array([2 * X[0] * X[1], X[0] ** 2 + X[1], X[2]])
    assert_array_equal(fwdad.grad(written_first)(X, fixed), wanted)
    assert_array_equal(fixed, X)

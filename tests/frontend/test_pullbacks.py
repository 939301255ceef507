"""``vjp`` in traced programs: what it returns there is what it returns when it runs at once."""

import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import NoOutputError, SeedError, UnsupportedTypeError, UntraceableError

X = np.array([0.3, -1.2, 0.7, 2.0, -0.4])
W = np.array([1.0, 0.5, -2.0, 0.3, 1.5])


def march(x):
    u = x.copy()
    for _ in range(3):
        u[1:] += 0.1 * u[:-1] * u[1:]
    return u


def one(x):
    return fwdad.vjp(march, x)[1](W)


def twice(x):
    y, pullback = fwdad.vjp(march, x)
    return y, pullback(W), pullback(2 * y)


def many(x):
    return fwdad.vjp(march, x)[1](np.stack([W, 2 * W, W * W]))


def changed_between(x):
    """Everything that f reads, and its value, are overwritten before the pullback is called."""
    z, c = x * 2, x * 1.0
    y, pullback = fwdad.vjp(lambda z: march(z) * c, z)
    z[0], c[1] = 5.0, 7.0
    y[:] = 0.0
    return pullback(W)


def of_numbers(x):
    y, pullback = fwdad.vjp(lambda a, b: np.sin(a) * b, x[0], argnums=(0, 1), args=(x[1],))
    return y, pullback(2.0)


def in_a_loop(x):
    for _ in range(4):
        _, pullback = fwdad.vjp(lambda x: np.sum(march(x) ** 2), x)
        x = x - 0.01 * pullback(1.0)
    return x


def of_structures(x):
    def f(d):
        return {"u": d["a"] * d["b"], "n": 3, "s": np.sum(d["a"])}

    return fwdad.vjp(f, {"a": x, "b": W})[1]({"u": W, "n": None, "s": fwdad.ZERO})


def with_aux(x):
    y, pullback, aux = fwdad.vjp(lambda x: (march(x), 2 * x), x, has_aux=True)
    return y, aux, pullback(W)


def squared(x):
    x *= x


def mutated(x):
    y, pullback = fwdad.vjp(squared, x, outputs="mutated")
    return y, pullback(W), x


def in_a_branch(x):
    y, pullback = fwdad.vjp(march, x)
    return pullback(y) if x[0] > 0 else pullback(2 * y)


PROGRAMS = (one, twice, many, changed_between, of_numbers, in_a_loop, of_structures, with_aux,
            mutated, in_a_branch)  # fmt: skip


def same(found, expected):
    assert type(found) is type(expected)
    if isinstance(found, dict):
        assert found.keys() == expected.keys()
        found, expected = tuple(found.values()), tuple(expected.values())
    if isinstance(found, tuple):
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    else:
        assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_as_at_once(f, sign):
    x = sign * X
    same(fwdad.jit(f, backend="numpy")(x), f(x))
    assert_allclose(x, sign * X, rtol=0)


def test_compiled():
    pytest.importorskip("numba")

    def f(x):
        return twice(x), many(x), in_a_loop(x)

    same(fwdad.jit(f)(X), f(X))


def test_derivatives_of_it():
    H = fwdad.jacobian(lambda x: fwdad.jacobian(lambda z: march(z) @ W, x, mode="forward"), X)
    found = fwdad.jit(lambda x: fwdad.jacobian(one, x), backend="numpy")(X)
    assert_allclose(found, H, rtol=1e-12, atol=1e-14)
    found = fwdad.jit(fwdad.grad(lambda x: np.sum(one(x) ** 2)), backend="numpy")(X)
    assert_allclose(found, 2 * H.T @ one(X), rtol=1e-12)


@pytest.mark.parametrize("bar", [np.ones(4), np.ones(1), 1.0, 1j * X, np.ones((2, 4))])
def test_cotangents_that_do_not_fit(bar):
    for f in (one_of, fwdad.jit(one_of, backend="numpy")):
        with pytest.raises(SeedError):
            f(X, bar)


def one_of(x, bar):
    return fwdad.vjp(march, x)[1](bar)


def test_what_raises():
    jit = functools.partial(fwdad.jit, backend="numpy")
    with pytest.raises(NoOutputError):
        jit(lambda x: fwdad.vjp(squared, x)[1](W))(X)
    with pytest.raises(UnsupportedTypeError):
        jit(lambda n: fwdad.vjp(lambda n: n * 2.0, n)[1](1.0))(3)
    with pytest.raises(UntraceableError, match="cannot be returned"):
        jit(lambda x: fwdad.vjp(march, x))(X)


VIEWS = {
    "view": lambda b: b[1:],
    "transpose": lambda b: b.reshape(5, 1).T[0, 1:],
    "reshape": lambda b: b.reshape(5, 1)[1:, 0],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("way", ["grad", "jvp", "vjp"])
def test_memory_that_f_knows_by_two_names(view, way):
    """It is run on copies of what it writes: two names would be two arrays."""

    def outer(x):
        b = np.zeros(5)
        v = view(b)

        def f(x):
            b[1] = x[0] * 2
            return v[0] * x[1]

        if way == "grad":
            return fwdad.grad(f)(x)
        return fwdad.jvp(f, x, W)[1] if way == "jvp" else fwdad.vjp(f, x)[1](1.0)

    with pytest.raises(UntraceableError, match="by two names"):
        fwdad.jit(outer, backend="numpy")(X)
    expected = np.array([2 * X[1], 2 * X[0], 0.0, 0.0, 0.0])
    assert_allclose(outer(X), expected @ W if way == "jvp" else expected, rtol=1e-14)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_arguments_that_are_one_memory(view):
    def outer(x):
        b = x * 2

        def f(b, v):
            b[1] = b[0] * 3
            return np.sum(v * v)

        return fwdad.grad(f)(b, view(b))

    with pytest.raises(UntraceableError, match="share memory"):
        fwdad.jit(outer, backend="numpy")(X)


LOG = []


def logged(x):
    if x[0] > -5:
        LOG.append(x[1])
    for k in range(2):
        LOG.append(k * x[0])
    return march(x)


def pulled_twice(x):
    y, pullback = fwdad.vjp(logged, x)
    return pullback(y) + pullback(W)


OUTPUT = {
    "never": lambda x: fwdad.vjp(logged, x)[0],
    "once": lambda x: fwdad.vjp(logged, x)[1](W),
    "twice": pulled_twice,
    "stacked": lambda x: fwdad.vjp(logged, x)[1](np.stack([W, 2 * W])),
}


@pytest.mark.parametrize("f", OUTPUT.values(), ids=OUTPUT)
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_output_is_made_once(f, backend):
    """A pullback runs the reverse pass again, not what the function puts out."""
    if backend == "numba":
        pytest.importorskip("numba")
    jitted = fwdad.jit(f, backend=backend)
    for way in (lambda f: f, fwdad.jacobian):
        found = []
        for g in (f, jitted):
            LOG.clear()
            y = way(g)(X)
            found.append((y, list(LOG)))
        assert_allclose(found[1][0], found[0][0], rtol=1e-12, atol=1e-14)
        assert_allclose(found[1][1], [X[1], 0.0, X[0]], rtol=0)


OF_COMPLEX = {
    "sum": lambda z: fwdad.vjp(lambda z: np.sum(np.real(z) ** 2), z)[1](1.0),
    "stacked": lambda z: fwdad.vjp(lambda z: np.real(z) ** 2, z)[1](np.ones((2, *z.shape))),
    "constant": lambda z: fwdad.vjp(lambda z: 3.0, z)[1](1.0),
}


@pytest.mark.parametrize("f", OF_COMPLEX.values(), ids=OF_COMPLEX)
@pytest.mark.parametrize("z", [X + 1j, (X + 1j).astype(np.complex64), np.array(0.3 + 1j)])
def test_cotangents_of_complex_arrays_are_complex(f, z):
    """Even where only their real parts matter, so that they can be written like at once."""

    def turned(z):
        z_bar = f(z)
        z_bar[...] = 1j * z_bar
        return z_bar

    for g in (f, turned):
        expected, found = g(z), fwdad.jit(g, backend="numpy")(z)
        assert found.dtype == expected.dtype == z.dtype
        assert_allclose(found, expected, rtol=1e-6)

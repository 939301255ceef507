"""Jacobians by rows: ``jacobian(mode="reverse")``, ``jacrev``, and when ``"auto"`` takes them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.drivers import pullback
from fwdad.tangents.composite import flatten

W = np.random.default_rng(0).normal(size=(5, 100))
X = np.linspace(-1.0, 1.0, 100)


def few_of_many(x):
    y = W @ np.tanh(x)
    y[1:] *= y[:-1]
    return y


@pytest.mark.parametrize("chunk", [1, 2, 3, None, "auto"])
def test_rows_are_columns(chunk):
    J = fwdad.jacobian(few_of_many, X, mode="forward")
    assert_allclose(fwdad.jacobian(few_of_many, X, mode="reverse", chunk=chunk), J, rtol=1e-12)
    assert_allclose(fwdad.jacrev(few_of_many, chunk=chunk)(X), J, rtol=1e-12)


def test_structures():
    def f(p, s):
        return {"a": p["u"] * s, "b": [p["u"][0] ** 2, p["t"] * s]}

    p = {"u": np.array([1.0, 2.0]), "t": 3.0}
    by_rows = fwdad.jacobian(f, p, args=(2.0,), argnums=(0, 1), mode="reverse")
    by_columns = fwdad.jacobian(f, p, args=(2.0,), argnums=(0, 1), mode="forward")
    for rows, columns in zip(by_rows["a"], by_columns["a"], strict=True):
        for name in rows if isinstance(rows, dict) else ():
            assert_array_equal(rows[name], columns[name])
    assert by_rows["b"][1][0]["t"] == by_columns["b"][1][0]["t"] == 2.0
    assert_array_equal(
        fwdad.jacobian(f, p, args=(2.0,), mode="reverse", stack=True),
        fwdad.jacobian(f, p, args=(2.0,), mode="forward", stack=True),
    )


def test_auto_takes_rows_where_they_are_few(monkeypatch):
    taken = []
    monkeypatch.setattr(pullback.Pullback, "_pull_many", lambda *_: taken.append(1) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        fwdad.jacobian(few_of_many, X)
    assert taken
    fwdad.jacobian(np.sin, X)  # as many rows as columns
    fwdad.jacobian(few_of_many, X, mode="forward")
    fwdad.jacfwd(few_of_many)(X)  # forward mode is what its name says
    fwdad.jacobian(lambda x: x[0] * x, X[:3])  # few columns
    assert len(taken) == 1


def test_linear_operator():
    _, J = fwdad.linearize(few_of_many, X)
    dense = fwdad.jacobian(few_of_many, X, mode="forward")
    v = np.arange(5.0)
    assert_allclose(J.rmatvec(v), v @ dense, rtol=1e-12)
    assert_allclose(J.T @ np.eye(5), dense.T, rtol=1e-12)


_C = np.arange(4) + 1j


@pytest.mark.parametrize(
    "f",
    [
        lambda x: _C * x,
        lambda x: (_C * x, x**2),
        np.fft.fft,
        lambda x: np.sum(np.exp(1j * x)),
        lambda x: {"a": np.sum(_C * x), "b": x[0]},
    ],
    ids=["array", "with a real one", "fft", "number", "dict"],
)
@pytest.mark.parametrize("chunk", [1, 3, None])
def test_complex_values_of_real_arguments(f, chunk):
    x = np.linspace(0.4, 1.5, 4)
    found, _ = flatten(fwdad.jacobian(f, x, mode="reverse", chunk=chunk))
    expected, _ = flatten(fwdad.jacobian(f, x, mode="forward"))
    for J, wanted in zip(found, expected, strict=True):
        assert J.dtype == wanted.dtype
        np.testing.assert_allclose(J, wanted, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(
        fwdad.jacobian(f, x, mode="reverse", stack=True),
        fwdad.jacobian(f, x, mode="forward", stack=True),
        rtol=1e-14,
        atol=1e-14,
    )


def test_auto_keeps_imaginary_parts():
    x = np.linspace(0, 1, 200)  # rows pay
    expected = np.fft.fft(np.eye(200), axis=0)[:2]
    np.testing.assert_allclose(fwdad.jacobian(lambda x: np.fft.fft(x)[:2], x), expected, atol=1e-12)


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_complex_arguments_are_asked_about(mode):
    with pytest.raises(fwdad.errors.NotHolomorphicError, match="holomorphic=True"):
        fwdad.jacobian(lambda z: z * np.conj(z), _C, mode=mode)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("chunk", [1, 2])
@pytest.mark.parametrize("wrap", [lambda f: f, fwdad.jit])
def test_an_array_in_two_places_is_written_at_both(wrap, mode, chunk):
    def f(x):
        a = x**2
        return {"p": a, "q": a, "r": x[0] * a}

    x = np.array([1.0, 2.0])
    out = np.full((6, 2), np.nan)
    returned = fwdad.jacobian(wrap(f), x, out=out, stack=True, mode=mode, chunk=chunk)
    assert returned is out
    assert_allclose(out, [[2, 0], [0, 4], [2, 0], [0, 4], [3, 0], [4, 4]])


@pytest.mark.parametrize(("of_x", "of_y"), [("f4", "f8"), ("f8", "f4"), ("f4", "f4")])
def test_a_jacobian_has_the_precision_of_the_value(of_x, of_y):
    def f(x):
        return np.array([np.sum(x * x), x[0]]).astype(of_y)

    x = np.linspace(0.5, 1.5, 100).astype(of_x)
    for mode in ("forward", "reverse", "auto"):
        for g in (f, fwdad.jit(f)):
            found = fwdad.jacobian(g, x, mode=mode)
            assert found.dtype == of_y
            assert_allclose(found, [2 * x, np.eye(100)[0]], rtol=1e-6)
        inside = fwdad.jit(lambda x, mode=mode: fwdad.jacobian(f, x, mode=mode))
        assert inside(x).dtype == of_y
        out = np.empty((2, 100), of_y)
        assert fwdad.jacobian(f, x, mode=mode, out=out) is out
        assert_allclose(out, [2 * x, np.eye(100)[0]], rtol=1e-6)

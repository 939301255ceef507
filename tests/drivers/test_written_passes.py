"""Pullbacks of functions under ``jit`` that are made by shortcuts, against those made in full."""

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import SeedError
from fwdad.evaluation.by_tape import MISS
from tests.differences import central_differences

RNG = np.random.default_rng(11)
X, V = RNG.random((2, 7)) + 0.5
FACTOR = np.linspace(1.0, 2.0, 7)


def stepped(x):
    """Steps in place: the reverse pass restores what they have overwritten."""
    y = x.copy()
    for _ in range(4):
        y[1:-1] = y[1:-1] + 0.1 * (y[2:] - 2 * y[1:-1] + y[:-2]) - 0.01 * y[1:-1] ** 3
    return y


def once_in_place(x):
    """One element in a long array is overwritten: it is swapped, and swapped back."""
    y = np.concatenate([x, np.zeros(5000)])
    s = np.sum(np.sin(y) * y)
    y[0] = y[1] * s
    return np.sin(y[:7]) * y[1:8]


def in_a_loop(x):
    """A number of iterations that the values decide."""
    total = 1.0
    while total < 50.0:
        total = total * (1.0 + x[0]) + np.sin(x[1])
    return total


def grown(x):
    rows = [np.sin(k * x) for k in range(len(x))]
    return np.stack(rows) @ x


def view_of_argument(x):
    return x[::2]


def itself(x):
    return x


def captured(x):
    return x * x * FACTOR


def of_number(x):
    return np.sum(np.sin(x) * x)


def parts(x):
    return {"a": x * 2, "b": (np.sum(x**2), [np.exp(x)])}


ARRAYS = [stepped, once_in_place, grown, view_of_argument, itself, captured, np.cumsum]
FUNCTIONS = [*ARRAYS, in_a_loop, of_number]


def pullbacks(f, x, count=4, **options):
    """Pullbacks of the same call; the first are made in full, the others by a shortcut."""
    return [fwdad.vjp(f, x, **options) for _ in range(count)]


@pytest.mark.every(8, of="auto", first=3)
@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("f", FUNCTIONS)
def test_against_differences(f, backend):
    fast = fwdad.jit(f, backend=backend)
    J = central_differences(f, X)
    for _ in range(5):
        y, pullback = fwdad.vjp(fast, X)
        assert_allclose(y, f(X), rtol=1e-13)
        bars = RNG.random((2, *np.shape(y)))
        for bar in (bars[0], bars[1], bars[0]):
            before = np.copy(bar)
            assert_allclose(pullback(bar), np.tensordot(bar, J, np.ndim(y)), rtol=1e-6, atol=1e-8)
            assert_array_equal(bar, before)
        for n in (1, 2, 3):
            many = RNG.random((n, *np.shape(y)))
            found = pullback(many)
            assert_allclose(found, np.tensordot(many, J, np.ndim(y)), rtol=1e-6, atol=1e-8)
        assert_allclose(pullback(bars[1]), np.tensordot(bars[1], J, np.ndim(y)), rtol=1e-6)
    assert fast.shortcuts.latest
    assert pullback._reverse is not None


@pytest.mark.every(3)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_the_shortcuts_are_written(f):
    fast = fwdad.jit(f)
    for y, pullback in pullbacks(fast, X):
        pullback(np.ones_like(y)[()])
    last = fwdad.vjp(fast, X)[1]
    found = last._reverse.run(last, np.ones_like(last.y)[()])
    assert (found is MISS) == (f is once_in_place)  # which logs what it restores


@pytest.mark.every(3)
@pytest.mark.parametrize("f", FUNCTIONS)
def test_several_cotangents_are_one_pass(f):
    fast, plain = fwdad.jit(f), fwdad.vjp(f, X)[1]
    y, last = pullbacks(fast, X)[-1]
    for k in range(5):
        for n in (3, 1, 2):
            bars = RNG.random((n, *np.shape(y)))
            kinds = [bars, np.asfortranarray(bars), bars.astype(np.float32)]
            for given in kinds if k == 3 else [bars]:
                before = given.copy()
                found = last(given)
                wanted = np.stack([plain(bar) for bar in given.astype(float)])
                assert_allclose(found, wanted, rtol=1e-11, atol=1e-13)
                assert_array_equal(given, before)
                assert not np.shares_memory(found, given)
                found[:] = np.nan
        with pytest.raises(SeedError):
            last(np.ones((2, *np.shape(y), 3)))
    found = last._reverse.run_together(last, np.ones((3, *np.shape(y))))
    assert (found is MISS) == (f is once_in_place)  # which logs what it restores


def test_several_cotangents_of_parts_and_of_arguments_without_one():
    fast = fwdad.jit(lambda x, n, t: x * t * n)
    for _ in range(4):
        pullback = fwdad.vjp(fast, X, argnums=(0, 2), args=(3, 2.0))[1]
        bars = RNG.random((2, 7))
        of_x, of_t = pullback(bars)
        assert_allclose(of_x, bars * 6)
        assert_allclose(of_t, 3 * bars @ X)
    made = pullbacks(fwdad.jit(lambda x, z: np.sin(x)), X, argnums=(0, 1), args=(X,))
    for _, pullback in made:
        of_x, of_z = pullback(np.stack([V, X]))
        assert_allclose(of_x, np.cos(X) * np.stack([V, X]))
        assert_array_equal(of_z, np.zeros((2, 7)))


@pytest.mark.every(6, of="auto", first=3)
@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("f", [*ARRAYS, np.exp])
def test_nothing_that_the_caller_changes_matters(f, backend):
    fast = fwdad.jit(f, backend=backend)
    for _ in range(5):
        x = X.copy()
        y, pullback = fwdad.vjp(fast, x)
        bar = RNG.random(y.shape)
        wanted = fwdad.vjp(f, X)[1](bar)
        assert not np.shares_memory(x, y)
        x[:] = np.nan
        y[:] = np.nan
        first = pullback(bar)
        assert_allclose(first, wanted, rtol=1e-12)
        assert not np.shares_memory(first, bar)
        first[:] = np.nan
        assert_allclose(pullback(bar), wanted, rtol=1e-12)


def test_what_is_captured_may_change(monkeypatch):
    fast = fwdad.jit(captured)
    for k in range(1, 6):
        own = FACTOR * k
        monkeypatch.setitem(globals(), "FACTOR", own)
        pullback = fwdad.vjp(fast, X)[1]
        wanted = 2 * X * own * 3
        own[:] = np.nan
        assert_allclose(pullback(np.full(7, 3.0)), wanted)
        monkeypatch.undo()


@pytest.mark.every(4)
@pytest.mark.parametrize("f", ARRAYS)
def test_many_pullbacks_at_a_time(f):
    fast = fwdad.jit(f)
    points = [X + 0.1 * k for k in range(6)]
    made = [fwdad.vjp(fast, x) for x in points]
    bar = RNG.random(made[0][0].shape)
    wanted = [fwdad.vjp(f, x)[1](bar) for x in points]
    for _ in range(2):
        for (_, pullback), x_bar in reversed(list(zip(made, wanted, strict=True))):
            assert_allclose(pullback(bar), x_bar, rtol=1e-12)


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("f", [stepped, once_in_place, in_a_loop])
def test_threads_share_a_pullback(f):
    fast = fwdad.jit(f)
    for y, pullback in pullbacks(fast, X):
        bars = RNG.random((4, *np.shape(y)))
        wanted = [pullback(bar) for bar in bars]
    failed = []

    def work(k):
        for _ in range(100):
            one, many = pullback(bars[k]), pullback(bars)
            if not (np.allclose(one, wanted[k]) and np.allclose(many, wanted)):
                failed.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_structures():
    fast = fwdad.jit(parts)
    bar = {"a": np.ones(7), "b": (2.0, [np.arange(7.0)])}
    wanted = 2.0 + 4.0 * X + np.arange(7.0) * np.exp(X)
    for _ in range(4):
        y, pullback = fwdad.vjp(fast, X)
        assert y["b"][0] == np.sum(X**2)
        y["b"][1].append(1.0)
        del y["a"]
        assert_allclose(pullback(bar), wanted)
        with pytest.raises(SeedError):
            pullback(np.ones(7))


@dataclass
class Model:
    weights: np.ndarray
    bias: float


def of_model(model, x, scale=1.0):
    return np.tanh(model.weights * x["a"] + model.bias) * scale


def test_objects_names_and_argnums():
    fast = fwdad.jit(of_model)
    model, x = Model(X, 0.25), {"a": X[::-1].copy()}
    bar = RNG.random(7)
    for options in (
        {"args": (x,)},
        {"args": (x, 2.0), "argnums": (0, 2)},
        {"args": (x,), "argnums": 1},
        {"kwargs": {"x": x, "scale": 3.0}},
    ):
        wanted = fwdad.vjp(of_model, model, **options)[1](bar)
        for _ in range(4):
            y, pullback = fwdad.vjp(fast, model, **options)
            held, model.weights = model.weights, None
            found = pullback(bar)
            model.weights = held
            assert fwdad.tree_map(np.allclose, found, wanted)
            assert type(found) is type(wanted)
        assert_allclose(y, fwdad.vjp(of_model, model, **options)[0])


def test_several_points_as_jax_takes_them():
    fast = fwdad.jit(lambda x, y: x * y)
    for _ in range(4):
        pullback = fwdad.vjp(fast, X, X)[1]
        assert_allclose(pullback(np.ones(7)), (X, X))
        pullback = fwdad.vjp(fast, X, X + 1)[1]
        assert_allclose(pullback(np.ones(7)), (X + 1, X))
        assert_allclose(fwdad.vjp(fast, X, X + 1, argnums=1)[1](np.ones(7)), X)


def test_aux():
    fast = fwdad.jit(lambda x: (x**2, {"n": len(x), "x": x}))
    for _ in range(4):
        y, pullback, aux = fwdad.vjp(fast, X, has_aux=True)
        assert aux["n"] == 7
        assert not np.shares_memory(aux["x"], X)
        assert_allclose(pullback(np.ones(7)), 2 * X)
        assert_allclose(pullback.aux["x"], y**0.5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_and_their_types(dtype):
    x = dtype(1.5)
    fast = fwdad.jit(lambda x: np.sin(x) * x)
    wanted = fwdad.vjp(lambda x: np.sin(x) * x, x)
    for _ in range(4):
        y, pullback = fwdad.vjp(fast, x)
        assert type(y) is type(wanted[0])
        for bar in (2.0, np.float64(2.0), 2, np.array(2.0), np.float32(2.0)):
            found = pullback(bar)
            assert_allclose(found, wanted[1](bar), rtol=1e-6)
            assert type(found) is type(wanted[1](bar))


def test_cotangents_of_other_kinds():
    fast = fwdad.jit(stepped)
    plain = fwdad.vjp(stepped, X)[1]
    for _, pullback in pullbacks(fast, X):
        for bar in (np.ones(7), np.ones(7, np.float32), [1.0] * 7, np.ones(14)[::2], np.arange(7)):
            assert_allclose(pullback(bar), plain(bar), rtol=1e-12)
        assert_array_equal(pullback(fwdad.ZERO), np.zeros(7))
        assert pullback(np.zeros((0, 7))).shape == (0, 7)
        for bad in (np.ones(6), np.ones(7) + 0j, None, "v"):
            with pytest.raises(SeedError):
                pullback(bad)
        assert_allclose(pullback(np.ones(7)), plain(np.ones(7)), rtol=1e-12)


def test_derivatives_of_pullbacks():
    fast = fwdad.jit(stepped)
    made = pullbacks(fast, X)
    for _, pullback in made:
        pullback(X)
        assert_allclose(fwdad.jacobian(pullback, X), fwdad.jacobian(stepped, X).T, rtol=1e-11)
    outer = fwdad.jvp(lambda x: fwdad.vjp(fast, x)[1](X), X, X)[1]
    assert_allclose(outer, fwdad.jvp(lambda x: fwdad.vjp(stepped, x)[1](X), X, X)[1], rtol=1e-11)


def test_arrays_of_other_layouts():
    fast = fwdad.jit(captured)
    wide = np.stack([X, X + 1], axis=1)
    frozen = X.copy()
    frozen.flags.writeable = False
    for x in (X, wide[:, 0], X[::-1], frozen, X):
        for _ in range(3):
            assert_allclose(fwdad.vjp(fast, x)[1](X), 2 * x * FACTOR * X)


def test_arguments_that_share_memory():
    fast = fwdad.jit(lambda x, y: x * np.sin(y))
    for _ in range(4):
        pullback = fwdad.vjp(fast, X[:4], X[3:])[1]
        found = pullback(np.ones(4))
        assert_allclose(found[0], np.sin(X[3:]))
        assert_allclose(found[1], X[:4] * np.cos(X[3:]))


def test_what_a_pass_raises():
    fast = fwdad.jit(lambda a: np.linalg.inv(a) @ a[0])
    regular = np.array([[2.0, 1.0], [0.0, 1.0]])
    for _ in range(4):
        assert fwdad.vjp(fast, regular)[1](np.ones(2)).shape == (2, 2)
        with pytest.raises(np.linalg.LinAlgError):
            fwdad.vjp(fast, np.ones((2, 2)))


def test_shown_as_any_other():
    fast = fwdad.jit(stepped)
    (_, first), *_, (_, last) = pullbacks(fast, X)
    assert repr(first) == repr(last) == "<pullback of fwdad.jit of stepped>"
    assert first._repr_html_() == last._repr_html_()
    with pytest.raises(TypeError, match="pickle"):
        last.__reduce_ex__(2)


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_cotangents_of_several_arguments_are_apart(backend):
    fast = fwdad.jit(lambda x, y: 2 * (x + y), backend=backend)
    for _ in range(4):
        pullback = fwdad.vjp(fast, X, V)[1]
        for _ in range(2):
            bar = np.ones(7)
            first, second = pullback(bar)
            assert_array_equal(first, second)
            assert not any(np.shares_memory(a, b) for a, b in ((first, second), (first, bar)))
    gradients = fwdad.grad(fwdad.jit(lambda x, y: np.sum(x + y), backend=backend), (0, 1))
    for _ in range(4):
        assert not np.shares_memory(*gradients(X, V))


class Pair(NamedTuple):
    a: np.ndarray
    b: np.ndarray


def test_values_that_no_text_puts_together():
    fast = fwdad.jit(lambda x: Pair(x * 2, np.sin(x)))
    wanted = 2 * V + np.cos(X) * X
    for _ in range(5):
        y, pullback = fwdad.vjp(fast, X)
        assert type(y) is Pair
        assert pullback._reverse is None  # made in full
        assert_allclose(pullback(Pair(V, X)), wanted)


def test_captured_arrays_of_changing_shapes(monkeypatch):
    fast = fwdad.jit(lambda x: np.sum(x) * np.sum(FACTOR))
    gradient = fwdad.grad(fast)
    for k in range(60):
        own = np.ones((k % 3 + 1,) * (k % 2 + 1))
        monkeypatch.setitem(globals(), "FACTOR", own)
        assert_allclose(fwdad.vjp(fast, X)[1](1.0), np.full(7, own.size))
        assert_allclose(fwdad.jvp(fast, X, X)[1], np.sum(X) * own.size)
        assert_allclose(gradient(X), np.full(7, own.size))


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_a_value_that_the_caller_reshapes_in_place(backend):
    """A pullback takes cotangents of the shape that its value had."""
    x = np.linspace(0.1, 1.2, 12).reshape(2, 6)
    fast = fwdad.jit(lambda x: np.sin(x) * x[:, ::-1], backend=backend)
    bar = np.arange(12.0).reshape(2, 6)
    wanted = np.cos(x) * x[:, ::-1] * bar + (np.sin(x) * bar)[:, ::-1]
    for _ in range(4):
        y, pullback = fwdad.vjp(fast, x)
        y.shape = (3, 4)
        assert_allclose(pullback(bar), wanted)
        with pytest.raises(SeedError, match=r"\(3, 4\)"):
            pullback(bar.reshape(3, 4))

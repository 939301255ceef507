"""Derivatives of a function under ``jit``, however they are spelled: tapes of their own."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import SeedError, UnsupportedTypeError
from tests.differences import central_differences

RNG = np.random.default_rng(5)
X, V = RNG.random((2, 6)) + 0.5
SEEDS = {n: RNG.random((n, 6)) for n in (1, 2, 3, 7)}


def energy(x, scale=1.0):
    """A chain in a loop, with a branch."""
    total = 0.0
    for i in range(len(x) - 1):
        step = x[i + 1] - x[i] ** 2
        total += scale * step**2 if step > 0 else np.sin(step)
    return total


def stepped(x, rate=0.1):
    """A field that is written in place."""
    y = x.copy()
    for _ in range(4):
        y[1:-1] = y[1:-1] + rate * (y[2:] - 2 * y[1:-1] + y[:-2]) - 0.01 * y[1:-1] ** 3
    return y


@dataclass
class Model:
    weights: np.ndarray
    bias: float


def of_model(model, x):
    return np.tanh(model.weights * x["a"] + model.bias) + x["b"][0]


def tape_of(evaluator, f, *args, **kwargs):
    """What runs a derivative, in words, and that it is one tape."""
    said = fwdad.explain(evaluator, f, *args, **kwargs)
    assert "with tangents: " in said, said
    return said


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("n", SEEDS)
def test_several_directions(n, backend):
    fast = fwdad.jit(stepped, backend=backend)
    for _ in range(2):  # the second call takes a shortcut
        y, y_dot = fwdad.jvp(fast, X, SEEDS[n])
        assert_allclose(y, stepped(X), rtol=1e-14)
        J = central_differences(stepped, X)
        assert_allclose(y_dot, SEEDS[n] @ J.T, rtol=1e-7, atol=1e-9)
    tape_of(fwdad.jvp, fast, X, SEEDS[n])


EVALUATORS = {
    "jvp": lambda f: fwdad.jvp(f, X, V),
    "jvp of the scale": lambda f: fwdad.jvp(f, X, (1.5,), args=(2.0,), argnums=(1,)),
    "jvp by both": lambda f: fwdad.jvp(f, X, (V, 1.5), args=(2.0,), argnums=(0, 1)),
    "jvp by a name": lambda f: fwdad.jvp(f, X, V, kwargs={"scale": 2.0}),
    "jvp of ints": lambda f: fwdad.jvp(f, X, np.arange(6)),
    "jvp of a list": lambda f: fwdad.jvp(f, X, [1.0, 0, 0, 2, 0, 0]),
    "jvp with x twice": lambda f: fwdad.jvp(f, X, X),
    "jacobian": lambda f: fwdad.jacobian(f, X),
    "jacobian by both": lambda f: fwdad.jacobian(f, X, args=(2.0,), argnums=(0, 1)),
    "stacked": lambda f: fwdad.jacobian(f, X, args=(2.0,), argnums=(0, 1), stack=True),
    "jacfwd": lambda f: fwdad.jacfwd(f)(X, 3.0),
    "value_and_jacobian": lambda f: fwdad.value_and_jacobian(f, X, mode="forward"),
    "grad": lambda f: fwdad.grad(f)(X),
    "grad by both": lambda f: fwdad.grad(f, (0, 1))(X, 2.0),
    "hessian": lambda f: fwdad.hessian(f, X),
    "hessian of the scale": lambda f: fwdad.hessian(f, X, args=(2.0,), argnums=1),
    "hessian function": lambda f: fwdad.hessian(f)(X),
    "hvp": lambda f: fwdad.hvp(f, X, V),
    "hvp of three": lambda f: fwdad.hvp(f, X, SEEDS[3]),
    "vjp": lambda f: fwdad.vjp(f, X)[1](1.0),
    "vjp of three": lambda f: fwdad.vjp(f, X)[1](np.arange(3.0)),
    "linearize": lambda f: fwdad.linearize(f, X)[1] @ V,
    "linearize, matvec": lambda f: fwdad.linearize(f, X)[1].matvec(V),
    "third derivative": lambda f: fwdad.jvp(lambda x: fwdad.hvp(f, x, V), X, V),
    "jacobian of a gradient": lambda f: fwdad.jacobian(fwdad.grad(f), X),
}


def in_parts(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", EVALUATORS)
def test_as_without_jit(name):
    evaluate = EVALUATORS[name]
    fast = fwdad.jit(energy)
    wanted = evaluate(energy)
    for _ in range(2):
        found = evaluate(fast)
        assert type(found) is type(wanted)
        parts = zip(*map(in_parts, (found, wanted)), strict=True)
        for a, b in parts:
            assert type(a) is type(b)
            assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_later_calls_take_shortcuts():
    fast = fwdad.jit(energy)
    for evaluate in (lambda: fwdad.jvp(fast, X, V), lambda: fwdad.grad(fast)(X)):
        for _ in range(3):
            evaluate()
    assert all(made._shortcuts for made in fast.derivatives.values())


def test_derivatives_agree_with_differences():
    fast = fwdad.jit(energy)
    gradient = central_differences(energy, X)
    assert_allclose(fwdad.jacobian(fast, X), gradient, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jvp(fast, X, V)[1], gradient @ V, rtol=1e-7)
    H = central_differences(fwdad.grad(energy), X)
    assert_allclose(fwdad.hessian(fast, X), H, rtol=1e-6, atol=1e-7)
    assert_allclose(fwdad.hvp(fast, X, V), H @ V, rtol=1e-6)


def test_objects_dicts_and_lists():
    fast = fwdad.jit(of_model)
    model = Model(RNG.random(4), 0.3)
    x = {"a": RNG.random(4), "b": [0.5]}
    dot = Model(RNG.random(4), 1.0)
    for _ in range(2):
        y_dot = fwdad.jvp(fast, model, dot, args=(x,))[1]
        inner = 1 - np.tanh(model.weights * x["a"] + model.bias) ** 2
        assert_allclose(y_dot, inner * (dot.weights * x["a"] + 1.0), rtol=1e-12)
        J = fwdad.jacobian(fast, model, args=(x,), argnums=1)
        assert_allclose(J["a"], np.diag(inner * model.weights), rtol=1e-12)
        assert_allclose(J["b"][0], np.ones(4))
    tape_of(fwdad.jvp, fast, model, dot, args=(x,))


def test_elementwise():
    fast = fwdad.jit(lambda x: np.sin(x) * x)
    for _ in range(2):
        assert_allclose(fwdad.derivative(fast, X), np.cos(X) * X + np.sin(X), rtol=1e-14)
        assert fwdad.derivative(fast, 2.0) == np.cos(2.0) * 2.0 + np.sin(2.0)
    tape_of(fwdad.derivative, fast, X)
    with pytest.raises(UnsupportedTypeError, match="element"):
        fwdad.derivative(fwdad.jit(lambda x: x * x[0]), X)


def test_chunks_and_long_arguments_are_pushed_through_the_tape_of_f():
    fast = fwdad.jit(stepped)
    long = np.linspace(0.1, 1.0, 70)
    assert_allclose(
        fwdad.jacobian(fast, long), fwdad.jacobian(stepped, long), rtol=1e-12, atol=1e-15
    )
    for chunk in (1, 2, 4):
        found = fwdad.jacobian(fast, X, chunk=chunk, mode="forward")
        assert_allclose(found, fwdad.jacobian(stepped, X), rtol=1e-12, atol=1e-15)
    assert "is run with tangents" in fwdad.explain(fwdad.jacobian, fast, X, chunk=2)


def test_seeds_that_do_not_fit():
    fast = fwdad.jit(stepped)
    for v in (np.ones(5), V + 0j, "v", np.ones((2, 5))):
        messages = []
        for f in (stepped, fast):
            with pytest.raises(SeedError) as caught:
                fwdad.jvp(f, X, v)
            messages.append(caught.value.args[0].splitlines()[0])
        assert len(set(messages)) < 2


def test_kept_with_the_function():
    functions = [fwdad.jit(lambda x, k=k: k * np.sin(x)) for k in range(1, 30)]
    for _ in range(2):
        for k, f in enumerate(functions, 1):
            assert_allclose(fwdad.jvp(f, X, V)[1], k * np.cos(X) * V)
            assert fwdad.cache_info(f).traces == 1
    assert [fwdad.cache_info(f).hits for f in functions] == [1] * 29


def test_what_is_read_from_outside_is_read_anew():
    scale = [2.0]
    fast = fwdad.jit(lambda x: scale[0] * np.sin(x))
    for k in (2.0, 3.0):
        scale[0] = k
        assert_allclose(fwdad.jvp(fast, X, V)[1], k * np.cos(X) * V)
        assert_allclose(fwdad.jacobian(fast, X), np.diag(k * np.cos(X)))


def test_the_caller_s_arrays_stay():
    def overwrites(x, out):
        out[:] = x * x
        x[0] = 7.0
        return np.sum(out) * x[0]

    fast = fwdad.jit(overwrites)
    for _ in range(2):
        x, out, v = X.copy(), np.zeros(6), V.copy()
        found = fwdad.jvp(fast, x, v, args=(out,))
        assert_allclose(found, (7.0 * X @ X, 14.0 * X @ V))
        for given, own in ((x, X), (out, np.zeros(6)), (v, V)):
            assert_array_equal(given, own)


def test_results_are_nobody_else_s():
    fast = fwdad.jit(lambda x: x)
    x, v = X.copy(), V.copy()
    for _ in range(2):
        y, y_dot = fwdad.jvp(fast, x, v)
        y[:], y_dot[:] = -1.0, -1.0
        assert_array_equal(x, X)
        assert_array_equal(v, V)
    J = fwdad.linearize(fast, x)[1]
    J.matvec(v)[:] = -1.0
    assert_array_equal(v, V)


def test_errors_of_the_function():
    def f(x):
        if x[0] > 1:
            raise ValueError("too large")
        return x * 2

    fast = fwdad.jit(f)
    assert_allclose(fwdad.jvp(fast, np.zeros(2), np.ones(2))[1], 2 * np.ones(2))
    for _ in range(2):
        with pytest.raises(ValueError, match="too large"):
            fwdad.jvp(fast, np.full(2, 3.0), np.ones(2))


def test_options_of_jit_are_those_of_the_derivative():
    static = fwdad.jit(stepped, static_shapes=True)
    for n in (6, 8):
        x = np.linspace(0.1, 1.0, n)
        assert_allclose(fwdad.jvp(static, x, x)[1], fwdad.jvp(stepped, x, x)[1], rtol=1e-13)
    assert fwdad.cache_info(static).traces == 2
    gradient = fwdad.grad(fwdad.jit(energy, static_shapes=True))
    for n in (5, 6):
        gradient(np.linspace(0.1, 1.0, n))
    assert fwdad.cache_info(gradient.__wrapped__).traces == 2


def test_pickles_without_its_tapes():
    fast = fwdad.jit(energy)
    fwdad.hvp(fast, X, V)
    again = pickle.loads(pickle.dumps(fast))
    assert fwdad.cache_info(again) == (0, 0)
    assert_allclose(fwdad.hvp(again, X, V), fwdad.hvp(fast, X, V))

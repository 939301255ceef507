"""Derivatives of a function under ``jit``, however they are spelled: tapes of their own."""

import pickle
import threading
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
import fwdad.compat.autograd
import fwdad.compat.jax
from fwdad.errors import SeedError, UnsupportedTypeError
from fwdad.evaluation.by_tape import MISS
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


@pytest.mark.every(2, of="auto")
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
    "jacfwd by both": lambda f: fwdad.jacfwd(f, (0, 1))(X, 3.0),
    "jacfwd of the scale": lambda f: fwdad.jacfwd(f, 1)(X, 3.0),
    "jacrev": lambda f: fwdad.jacrev(f)(X, 3.0),
    "jacobian function": lambda f: fwdad.jacobian(f, argnums=1, mode="forward")(X, 2.0),
    "value_and_jacobian function": lambda f: fwdad.value_and_jacobian(f)(X),
    "value_and_grad": lambda f: fwdad.value_and_grad(f)(X, scale=2.0),
    "derivative function": lambda f: fwdad.derivative(lambda s: f(X, s))(2.0),
    "hvp function": lambda f: fwdad.hvp(f)(X, V),
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


def test_functions_that_are_kept():
    """A function made by a transformer takes shortcuts of its own."""
    fast = fwdad.jit(energy)
    for make in (
        fwdad.grad, fwdad.value_and_grad, fwdad.jacfwd, fwdad.jacrev, fwdad.hessian, fwdad.hvp,
        fwdad.jacobian, fwdad.value_and_jacobian, lambda f: fwdad.grad(f, (0, 1)),
        lambda f: fwdad.jacfwd(f, (0, 1)), lambda f: fwdad.jacfwd(f, 1),
        lambda f: fwdad.hessian(f, argnums=1), lambda f: fwdad.grad(fwdad.grad(f, 1), 1),
        lambda f: fwdad.jacfwd(fwdad.grad(f)),
    ):  # fmt: skip
        derivative, wanted = make(fast), make(energy)
        for k in range(5):
            given = (X + 0.01 * k, V) if make is fwdad.hvp else (X + 0.01 * k, 2.0 + k)
            found, expected = derivative(*given), wanted(*given)
            assert type(found) is type(expected)
            for a, b in zip(in_parts(found), in_parts(expected), strict=True):
                assert type(a) is type(b)
                assert_allclose(a, b, rtol=1e-11, atol=1e-13)


def test_what_comes_beside():
    def both(x, scale):
        return np.sum(x**3) * scale, {"x": x, "n": len(x)}

    fast = fwdad.jit(both)
    for make in (fwdad.grad, fwdad.value_and_grad, fwdad.jacfwd):
        derivative, wanted = make(fast, has_aux=True), make(both, has_aux=True)
        for k in range(4):
            found, expected = derivative(X, 1.0 + k), wanted(X, 1.0 + k)
            assert fwdad.tree_map(np.allclose, found, expected)
            assert_allclose(found[0] if make is not fwdad.value_and_grad else found[1],
                            3 * X**2 * (1.0 + k))  # fmt: skip


@pytest.mark.parametrize("library", [fwdad.compat.jax, fwdad.compat.autograd])
def test_under_the_names_of_others(library):
    def f(x, scale):
        return np.sum(np.sin(x) * scale)

    fast = fwdad.jit(f)
    for name in ("grad", "value_and_grad", "hessian", "jacobian", "elementwise_grad"):
        if not hasattr(library, name):
            continue
        make = getattr(library, name)
        found, wanted = make(fast), make(f)
        for k in range(4):
            for a, b in zip(in_parts(found(X, 1.0 + k)), in_parts(wanted(X, 1.0 + k)), strict=True):
                assert_allclose(a, b, rtol=1e-12)


def test_a_jacobian_by_numbers_is_no_matrix():
    fast = fwdad.jit(lambda a, b: np.array([a * b, a + b, b]))
    J = fwdad.jacfwd(fast, (0, 1))
    for _ in range(4):
        found = J(2.0, 3.0)
        assert_allclose(np.stack(found), [[3.0, 1.0, 0.0], [2.0, 1.0, 1.0]])
        with pytest.raises(UnsupportedTypeError, match="stack=True"):
            np.asarray(found)


def in_parts(found):
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.every(2)
@pytest.mark.slow_cases("third derivative")
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
    gradient = fwdad.grad(fast)
    for evaluate in (lambda: fwdad.jvp(fast, X, V), lambda: gradient(X)):
        for _ in range(3):
            evaluate()
    assert len(fast.shortcuts.latest) == len(gradient.shortcuts.latest) == 1


def shortcut_of(fast):
    """The one shortcut that a function has for its derivatives."""
    (found,) = fast.shortcuts.latest.values()
    return found


def test_shortcuts_are_for_such_calls_alone():
    fast = fwdad.jit(energy)

    def both(*args, **kwargs):
        for _ in range(3):
            found, wanted = fwdad.jvp(fast, *args, **kwargs), fwdad.jvp(energy, *args, **kwargs)
            for a, b in zip(found, wanted, strict=True):
                assert_allclose(a, b, rtol=1e-11)
                assert type(a) is type(b)

    both(X, V)
    run = shortcut_of(fast)
    assert run((fast, X, V), {}) is not MISS
    others = [
        ((X, V[None]), {}),
        ((X, SEEDS[2]), {}),
        ((X[:4], V[:4]), {}),
        ((X.astype(np.float32), V), {}),
        ((X, V.astype(np.float32)), {}),
        ((X, V), {"args": (2.0,)}),
        ((X, V), {"kwargs": {"scale": 3.0}}),
        ((X,), {"v": V}),
        ((X, (1.0,)), {"args": (2.0,), "argnums": (1,)}),
        ((X, 1.0), {"args": (2.0,), "argnums": 1}),
        ((X, V), {"chunk": 1}),
        ((X,), {}),
    ]
    for args, kwargs in others:
        assert run((fast, *args), kwargs) is MISS
        both(*args, **kwargs)
    for args, kwargs in others:  # and back, with all shortcuts there
        both(X, V)
        both(*args, **kwargs)


def test_directions_are_told_from_points():
    """x, v and the other arguments are found by where they stand, also where all are one array."""
    fast = fwdad.jit(lambda x, y: np.sum(x**2 * y**3))
    for _ in range(3):
        assert_allclose(fwdad.jvp(fast, X, X, args=(X,))[1], 2 * np.sum(X**5))
        assert_allclose(fwdad.jvp(fast, X, V, args=(2 * X,))[1], 16 * np.sum(X**4 * V))
        assert_allclose(fwdad.hvp(fast, X, V, args=(2 * X,)), 16 * X**3 * V)
        found = fwdad.jvp(fast, X, V, args=(2 * X,), argnums=1)[1]
        assert_allclose(found, 12 * np.sum(X**4 * V))


def test_results_of_shortcuts_are_new_memory():
    fast = fwdad.jit(lambda x, y: (x, y))
    for _ in range(4):
        (first, second), (dot, other) = fwdad.jvp(fast, X, V, args=(V,))
        arrays = [first, second, dot, other]
        for k, a in enumerate(arrays):
            assert not any(np.shares_memory(a, b) for b in (X, V, *arrays[k + 1 :]))
            assert a.flags.writeable


def test_layouts_of_arrays_under_shortcuts():
    fast = fwdad.jit(stepped)
    wide = np.stack([X, V], axis=1)
    frozen = X.copy()
    frozen.flags.writeable = False
    for x, v in ((X, V), (wide[:, 0], wide[:, 1]), (X[::-1], V), (frozen, V), (X, X)):
        for _ in range(3):
            found, wanted = fwdad.jvp(fast, x, v), fwdad.jvp(stepped, x, v)
            assert_allclose(found, wanted, rtol=1e-12)


def test_shortcuts_see_what_was_replaced(monkeypatch):
    scale = 2.0
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    monkeypatch.setitem(globals(), "HELPER", np.sin)
    fast = fwdad.jit(lambda x: scale * FACTOR * HELPER(x))  # noqa: F821  (set for the test)
    gradient = fwdad.grad(fwdad.jit(lambda x: np.sum(fast(x))))
    functions = [
        lambda: fwdad.jvp(fast, X, V)[1],
        lambda: fwdad.derivative(fast, X) * V,
        lambda: fwdad.jacobian(fast, X) @ V,
        lambda: gradient(X) * V,
        lambda: fwdad.vjp(fast, X)[1](V),
        lambda: fwdad.hvp(fwdad.jit(lambda x: np.sum(fast(x))), X, V),
    ]

    def check(slope, curvature, factor):
        for _ in range(3):
            for f in functions[:-1]:
                assert_allclose(f(), factor * slope(X) * V, rtol=1e-12)
            assert_allclose(functions[-1](), factor * curvature(X) * V, rtol=1e-12)

    check(np.cos, lambda x: -np.sin(x), 6.0)
    scale = 5.0
    check(np.cos, lambda x: -np.sin(x), 15.0)
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    check(np.cos, lambda x: -np.sin(x), 5.0)
    monkeypatch.setitem(globals(), "HELPER", np.exp)
    check(np.exp, np.exp, 5.0)


def test_a_new_rule_drops_shortcuts():
    def own(x):
        return np.exp(x)

    fast = fwdad.jit(lambda x: own(x))
    gradient = fwdad.grad(fast)
    for _ in range(3):
        assert_allclose(fwdad.jvp(fast, X, V)[1], np.exp(X) * V)
        assert gradient(0.0) == 1.0
    fwdad.frule(own)(lambda primals, tangents: (own(*primals), 7.0 * tangents[0]))
    for _ in range(3):
        assert_allclose(fwdad.jvp(fast, X, V)[1], 7.0 * V)
        assert gradient(0.0) == 7.0


def test_shortcuts_inside_other_derivatives():
    fast, outer = fwdad.jit(energy), fwdad.jit(lambda x: fwdad.jvp(energy, x, V)[1])
    for _ in range(3):
        fwdad.jvp(fast, X, V)
        fwdad.jvp(outer, X, V)
    wanted = fwdad.hvp(energy, X, V) @ V
    for _ in range(2):
        assert_allclose(fwdad.jvp(lambda x: fwdad.jvp(fast, x, V)[1], X, V)[1], wanted)
        assert_allclose(fwdad.grad(lambda x: fwdad.jvp(fast, x, V)[1])(X) @ V, wanted)
        assert_allclose(fwdad.jvp(outer, X, V)[1], wanted)


def test_what_compiled_code_raises_is_raised_by_shortcuts():
    fast = fwdad.jit(lambda a: np.linalg.inv(a)[0, 0])
    regular = np.array([[2.0, 1.0], [0.0, 1.0]])
    for _ in range(3):
        fwdad.jvp(fast, regular, regular)
    for evaluate in (fwdad.jvp, fwdad.hvp):
        for _ in range(2):
            with pytest.raises(np.linalg.LinAlgError):
                evaluate(fast, np.ones((2, 2)), regular)
            evaluate(fast, regular, regular)


def test_explain_sees_past_shortcuts():
    fast = fwdad.jit(energy)
    for _ in range(3):
        fwdad.jvp(fast, X, V)
        tape_of(fwdad.jvp, fast, X, V)


def test_threads_share_shortcuts():
    fast, failed = fwdad.jit(energy), []

    def work(n):
        x, v = X[:n], V[:n]
        wanted = fwdad.hvp(energy, x, v)
        found = [fwdad.hvp(fast, x, v) for _ in range(100)]
        failed.extend(n for y in found if not np.allclose(y, wanted, rtol=1e-10))

    threads = [threading.Thread(target=work, args=(n,)) for n in (3, 4, 5, 6)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed


def test_objects_and_names_under_shortcuts():
    fast = fwdad.jit(of_model)
    for k in (1.0, 2.0, 3.0):
        model, dot = Model(k * RNG.random(4), 0.3), Model(RNG.random(4), 1.0)
        x = {"a": RNG.random(4), "b": [0.5]}
        inner = 1 - np.tanh(model.weights * x["a"] + model.bias) ** 2
        for _ in range(3):
            y_dot = fwdad.jvp(fast, model, dot, kwargs={"x": x})[1]
            assert_allclose(y_dot, inner * (dot.weights * x["a"] + 1.0), rtol=1e-12)
            J = fwdad.jacobian(fast, model, args=(x,))
            assert type(J) is Model
            assert_allclose(J.weights, np.diag(inner * x["a"]), rtol=1e-12)
            assert_allclose(J.bias, inner, rtol=1e-12)
    del model.bias
    with pytest.raises(AttributeError):
        fwdad.jacobian(fast, model, args=(x,))


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


def test_chunks_and_long_arguments():
    fast = fwdad.jit(stepped)
    long = np.linspace(0.1, 1.0, 70)
    assert_allclose(
        fwdad.jacobian(fast, long), fwdad.jacobian(stepped, long), rtol=1e-12, atol=1e-15
    )
    for chunk in (1, 2, 4):
        found = fwdad.jacobian(fast, X, chunk=chunk, mode="forward")
        assert_allclose(found, fwdad.jacobian(stepped, X), rtol=1e-12, atol=1e-15)
    told = fwdad.explain(fwdad.jacobian, fast, X, chunk=2)
    assert "the tape of stepped, with its Jacobian" in told


def chained(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += np.sin(x[i] * x[i + 1]) + x[i] ** 3
    return total


def test_second_derivatives_in_chunks():
    fast, x = fwdad.jit(chained), np.linspace(0.1, 1.0, 70)
    wanted = fwdad.hessian(chained, x)
    assert_allclose(wanted, central_differences(fwdad.grad(chained), x), rtol=1e-6, atol=1e-8)
    rows = np.random.default_rng(0).random((150, 70))
    for chunk in ("auto", None, 1, 32, 33):  # the last chunk has 6 columns, or 4
        assert_allclose(fwdad.hessian(fast, x, chunk=chunk), wanted, rtol=1e-12, atol=1e-14)
        found = fwdad.hvp(fast, x, rows, chunk=chunk)
        assert_allclose(found, rows @ wanted, rtol=1e-11, atol=1e-13)
        y_dot = fwdad.jvp(fast, x, rows, chunk=chunk)[1]
        assert_allclose(y_dot, rows @ fwdad.grad(chained)(x), rtol=1e-12)
    tape_of(fwdad.hessian, fast, x)
    tape_of(fwdad.hvp, fast, x, rows)


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
    functions = [fwdad.jit(lambda x, k=k: k * np.sin(x), backend="numpy") for k in range(1, 30)]
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


@pytest.mark.parametrize(("made", "read"), [
    (lambda x: {"a": x}, lambda d: d["a"]),
    (lambda x: [x], lambda d: d[0]),
    (lambda x: (x,), lambda d: d[0]),
    (lambda x: {"a": {"b": x}, "n": 2}, lambda d: d["a"]["b"] * d["n"]),
    (lambda x: {"a": x, "b": x}, lambda d: d["a"] * d["b"]),
])  # fmt: skip
@pytest.mark.parametrize("chunk", [1, 2, 3, None])
def test_columns_of_a_structure_with_one_array(made, read, chunk):
    def f(d):
        return np.sin(read(d))

    x = made(np.arange(3.0))
    found = fwdad.jacobian(fwdad.jit(f, backend="numpy"), x, chunk=chunk)
    assert_allclose(read_arrays(found), read_arrays(fwdad.jacobian(f, x)), rtol=1e-13)


def read_arrays(tree):
    """The arrays of a Jacobian, in order."""
    parts = tree.values() if isinstance(tree, dict) else tree
    if isinstance(tree, np.ndarray):
        return tree[None]
    kept = [p for p in parts if isinstance(p, (dict, list, tuple, np.ndarray))]
    return np.concatenate([read_arrays(p) for p in kept])


@pytest.mark.parametrize("wrap", [
    fwdad.hessian,
    lambda f: lambda x: fwdad.hessian(f, x),
    lambda f: lambda x: fwdad.hvp(f, x, x),
    lambda f: fwdad.jacfwd(fwdad.grad(f)),
    lambda f: lambda x: fwdad.hessian(lambda d: f(d["a"]), {"a": x})["a"]["a"],
])  # fmt: skip
def test_second_derivatives_of_a_jitted_function_under_jit(wrap):
    def f(x):
        return np.sum(np.sin(x) * x[::-1])

    x = np.array([0.3, 0.7, 1.1])
    found = fwdad.jit(wrap(fwdad.jit(f, backend="numpy")), backend="numpy")(x)
    assert_allclose(found, wrap(f)(x), rtol=1e-12, atol=1e-14)

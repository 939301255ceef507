"""Mistakes that users make: the message says what came, where, and what to write."""

import importlib
import pickle
import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import signal, special

import fwdad
from fwdad.errors import type_in_words
from fwdad.reversible import Stack, check_gradient, check_inverse, cuda_kernel

X = np.array([1.0, 2.0])


def pair(x):
    return np.array([x[0] * x[1], x[1]])


def total(x):
    return np.sum(x**2)


def doubles(x):
    x[:] = 2 * x


def smoothed(x):
    return signal.symiirorder1(x, 0.5, 0.5)


async def waits(x):
    return np.sum(x**2)


def returns_a_function(x):
    return lambda: x


def makes_a_class(x):
    class Made:
        pass

    return x


def halved(x):
    return x / 2


@fwdad.frule(halved)
def halved_frule(primals, tangents):
    return halved(primals[0])


def third(x):
    return x / 3


@fwdad.frule(third)
def third_frule(primals, tangents):
    return float(primals[0]) / 3


WITHOUT_SOURCE = eval("lambda x: x * 2")

MISTAKES = {
    "no function": (lambda: fwdad.grad(3), TypeError, "expected a function; got an int"),
    "arguments swapped": (
        lambda: fwdad.jacobian(X, total),
        TypeError,
        "the first argument must be the function; got an ndarray",
    ),
    "a point beside the function": (
        lambda: fwdad.grad(total, X),
        TypeError,
        "got an ndarray. What takes only f returns a function: write grad(f)(x), not grad(f, x)",
    ),
    "a name as argnums": (
        lambda: fwdad.jacobian(pair, X, argnums="x"),
        TypeError,
        "argnums must be an int or a tuple of ints; got a str",
    ),
    "a truth value as argnums": (
        lambda: fwdad.grad(total, True)(X, X),
        TypeError,
        "argnums must be an int or a tuple of ints; got a bool",
    ),
    "truth values as argnums of jacobian": (
        lambda: fwdad.jacobian(pair, X, argnums=(False,)),
        TypeError,
        "argnums must be an int or a tuple of ints; got (False,)",
    ),
    "False as argnums of jvp": (
        lambda: fwdad.jvp(pair, X, X, argnums=False),
        TypeError,
        "argnums must be an int or a tuple of ints; got a bool",
    ),
    "no lanes for a gradient": (
        lambda: fwdad.grad(total, chunk=0),
        ValueError,
        'chunk must be a positive integer, "auto" or None, not 0',
    ),
    "half a lane under jit": (
        lambda: fwdad.jit(fwdad.jacfwd(pair, chunk=2.5)),
        ValueError,
        'chunk must be a positive integer, "auto" or None, not 2.5',
    ),
    "no lanes for one Hessian product": (
        lambda: fwdad.hvp(total, X, X, chunk=0),
        ValueError,
        'chunk must be a positive integer, "auto" or None, not 0',
    ),
    "no such source": (
        lambda: fwdad.show(pair, X, backend="c"),
        ValueError,
        'backend must be "numpy", "numba" or "tape", not \'c\'',
    ),
    "a trace of no function": (
        lambda: fwdad.trace(3, X),
        TypeError,
        "trace takes a function; got an int",
    ),
    "a product of unlike tangents": (
        lambda: fwdad.inner_product(np.ones((2, 3)), np.ones((3, 2))),
        ValueError,
        "an inner product needs two tangents of one value; got the shapes (2, 3) and (3, 2)",
    ),
    "a complex point, by rows": (
        lambda: fwdad.jacrev(pair)(X + 0j),
        fwdad.errors.NotHolomorphicError,
        "call jvp, derivative, jacobian, jacfwd or linearize with holomorphic=True",
    ),
    "argnums out of range": (
        lambda: fwdad.grad(total, argnums=1)(X),
        TypeError,
        "argnums is 1; it must contain positions of positional arguments, counted from 0",
    ),
    "ints": (
        lambda: fwdad.jacobian(pair, np.array([1, 2])),
        TypeError,
        "argument 0 is an ndarray of dtype int64: it has no tangent space. Write x.astype(float)",
    ),
    "nothing is returned": (
        lambda: fwdad.grad(doubles)(X),
        TypeError,
        "or make it return what it has updated",
    ),
    "jit of no function": (lambda: fwdad.jit(3), TypeError, "jit takes a function; got an int"),
    "no such backend": (
        lambda: fwdad.jit(pair, backend="cuda"),
        ValueError,
        'backend is "auto", "numpy" or "numba", not \'cuda\'',
    ),
    "no such backend, as a decorator": (
        lambda: fwdad.jit(backend="cuda"),
        ValueError,
        'backend is "auto", "numpy" or "numba", not \'cuda\'',
    ),
    "jit without a source": (
        lambda: fwdad.jit(WITHOUT_SOURCE)(X),
        fwdad.errors.UntraceableError,
        "has no source that can be read, so it cannot be traced: it was made by exec",
    ),
    "show of a plain function": (
        lambda: fwdad.show(pair),
        TypeError,
        "pair is not under jit: pass the function that jit(f) returns",
    ),
    "explain of no function": (lambda: fwdad.explain(3), TypeError, "got an int"),
    "a report without arguments": (
        lambda: fwdad.memory_report(total),
        TypeError,
        "memory_report(f, x, …) runs f: the arguments of",
    ),
    "too few partials": (
        lambda: fwdad.elementwise(lambda x, y: x * y, lambda x, y, z: y),
        TypeError,
        "has 2 arguments, but got 1 partials",
    ),
    "a partial that is a number": (
        lambda: fwdad.elementwise(lambda x: 3 * x, 3.0),
        TypeError,
        "a partial is a function of primals and y; got a float",
    ),
    "inverse of a plain function": (
        lambda: check_inverse(pair, X),
        TypeError,
        "expected a function under @reversible; got a function",
    ),
    "gradient check of a plain function": (
        lambda: check_gradient(pair, X),
        TypeError,
        "expected a function under @reversible",
    ),
    "a rule of no function": (
        lambda: fwdad.frule(3),
        TypeError,
        "frule takes a function, or its dotted name; got an int",
    ),
    "a rule made of no function": (
        lambda: fwdad.build_frule(3),
        TypeError,
        "build_frule takes a function; got an int",
    ),
    "a tape with other types": (
        lambda: fwdad.trace(total, X)(np.ones((2, 2))),
        TypeError,
        "the tape total(x: float64[?]) was traced for arguments of other types",
    ),
    "a set under jit": (
        lambda: fwdad.jit(lambda a, s: a * len(s))(X, {1}),
        fwdad.errors.UntraceableError,
        "a set as an argument cannot be traced: give a list or an array",
    ),
    "a function that is returned under jit": (
        lambda: fwdad.jit(returns_a_function)(X),
        fwdad.errors.UntraceableError,
        "cannot be returned: return what it computes",
    ),
    "a class made under jit": (
        lambda: fwdad.jit(makes_a_class)(X),
        fwdad.errors.UntraceableError,
        "a `class` statement cannot be traced: define it outside",
    ),
    "a rule that returns no tangent": (
        lambda: fwdad.jacobian(halved, X),
        ValueError,
        "it must return (y, y_dot), with a Chunk or ZERO for each value",
    ),
    "a rule that returns a number alone": (
        lambda: fwdad.derivative(third, 2.0),
        ValueError,
        "returns a float; it must return (y, y_dot)",
    ),
    "argnums of a rule, beyond": (
        lambda: fwdad.frule(total, argnums=1)(third_frule),
        ValueError,
        "total(x) has no parameter at position 1",
    ),
    "a rule that writes into what is not there": (
        lambda: fwdad.frule(total, mutates=(1,))(third_frule),
        ValueError,
        "total has 1 primals",
    ),
    "a signature that is none": (
        lambda: fwdad.frule(total, signature="(x")(third_frule),
        ValueError,
        "signature='(x' is not a signature: write it as in '(a, b, /, *, axis=-1)'",
    ),
    "a kernel of what is not reversible": (
        lambda: cuda_kernel(total),
        TypeError,
        "expected a function under @reversible; got a function",
    ),
    "argnums of names": (
        lambda: fwdad.grad(total, argnums=("x",)),
        TypeError,
        "argnums must be an int or a tuple of ints; got ('x',)",
    ),
    "no argnums": (
        lambda: fwdad.grad(total, argnums=None),
        TypeError,
        "argnums must be an int or a tuple of ints; got None",
    ),
    "the argument by its name": (
        lambda: fwdad.grad(total)(x=X),
        TypeError,
        "must be positional: write grad(f)(x), not grad(f)(x=x)",
    ),
    "kwargs that are no dict": (
        lambda: fwdad.jacobian(pair, X, kwargs=[2.0]),
        TypeError,
        "kwargs must be a dict of f's keyword arguments; got a list",
    ),
    "a list of ints": (
        lambda: fwdad.grad(lambda x: x[0] * x[1])([1, 2]),
        TypeError,
        "argument 0 is a list of integers, which have no tangent space. Write floats: [1.0, 2.0]",
    ),
    "an async function": (
        lambda: fwdad.jacobian(waits, X),
        TypeError,
        "waits is an `async def`, and calling it does not run it: write a `def`",
    ),
    "the gradient of an async function": (
        lambda: fwdad.grad(waits)(X),
        TypeError,
        "waits is an `async def`, and calling it does not run it: write a `def`",
    ),
    "an async function under jit": (
        lambda: fwdad.jit(waits)(X),
        fwdad.errors.UntraceableError,
        "waits is an `async def`, which cannot be traced: write a `def`",
    ),
    "a frule that is no function": (
        lambda: fwdad.frule(total)(3),
        TypeError,
        "frule(f) decorates the rule, a function; got an int",
    ),
    "an rrule that is no function": (
        lambda: fwdad.rrule(total)(3),
        TypeError,
        "rrule(f) decorates the rule, a function; got an int",
    ),
    "support of a name": (
        lambda: fwdad.supported("numpy.sin"),
        TypeError,
        "supported takes a function; got a str",
    ),
    "a negative capacity": (lambda: Stack(-1), ValueError, "the capacity is -1"),
}


@pytest.mark.parametrize("function", [int, pickle.dumps, np.ma.array])
def test_what_loses_derivatives_is_not_supported(function):
    told = fwdad.supported(function)
    assert not told
    assert "a derivative would be lost" in told.reason


@pytest.mark.every(3)
@pytest.mark.parametrize("argnums", [np.int64(1), np.uint8(1), np.array(1)])
def test_argnums_of_numpy_are_ints(argnums):
    """With every evaluator; the result is no tuple."""

    def f(x, y):
        return np.sum(x**2 * y)

    expected = X**2
    bars = [
        fwdad.grad(f, argnums)(X, X),
        fwdad.jacobian(f, X, args=(X,), argnums=argnums, mode="forward"),
        fwdad.jacobian(f, X, args=(X,), argnums=argnums, mode="reverse"),
        fwdad.jvp(f, X, args=(X,), argnums=argnums)[1],
        fwdad.vjp(f, X, args=(X,), argnums=argnums)[1](1.0),
        fwdad.jit(fwdad.jacfwd(f, argnums))(X, X),
    ]
    traced = [
        fwdad.jit(lambda x: fwdad.jacobian(f, x, args=(x,), argnums=np.int64(1))),
        fwdad.jit(lambda x: fwdad.jvp(f, x, x, args=(x,), argnums=np.int64(1))[1] * x / (x @ x)),
        fwdad.jit(lambda x: fwdad.vjp(f, x, args=(x,), argnums=np.int64(1))[1](1.0)),
        fwdad.jit(lambda x: fwdad.value_and_grad(f, np.int64(1))(x, x)[1]),
    ]
    found = [g(X) for g in traced]
    assert not any(isinstance(x_bar, tuple) for x_bar in [*bars, *found])
    for x_bar in [*bars, found[0], found[2], found[3]]:
        np.testing.assert_allclose(x_bar, expected, rtol=1e-15)
    np.testing.assert_allclose(found[1], expected @ X * X / (X @ X), rtol=1e-14)
    assert np.array_equal(fwdad.hessian(f, X, args=(X,), argnums=argnums), np.zeros((2, 2)))


@pytest.mark.parametrize("name", MISTAKES)
def test_message(name):
    wrong, kind, message = MISTAKES[name]
    with pytest.raises(kind, match=re.escape(message)) as raised:
        wrong()
    located = isinstance(raised.value, fwdad.errors.FwdadError)
    if (
        located and kind is not fwdad.errors.UntraceableError
    ):  # under test, jit is called by conftest.py
        assert raised.value.filename == __file__
        assert raised.value.lineno


def test_the_rule_to_write_is_for_a_name_that_can_be_imported():
    with pytest.raises(fwdad.errors.MissingRuleError) as raised:
        fwdad.jacobian(smoothed, X)
    home, _, name = re.search(r"@fwdad\.frule\((.*)\)", str(raised.value))[1].rpartition(".")
    assert callable(getattr(importlib.import_module(home), name))


@pytest.mark.parametrize(
    ("x", "words"),
    [(1, "an int"), (1.0, "a float"), (X, "an ndarray"), (None, "None"), (X[0], "a float64"),
     (np.uint8(1), "a uint8"), ([], "a list"), (OSError(), "an OSError")],
)  # fmt: skip
def test_what_came_in_words(x, words):
    assert type_in_words(x) == words


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_what_a_function_of_several_results_raises_at_run_time(backend):
    data = np.arange(7.0)

    def f(x):
        kept = data[data > x[0]]
        return np.broadcast_to(x[0], np.broadcast_shapes(kept.shape, x.shape))

    x = np.array([3.0, 1.0, 2.0])
    assert_allclose(fwdad.jit(f, backend=backend)(x), f(x))
    for transformed in (fwdad.jit(f, backend=backend), fwdad.jacrev(f)):
        with pytest.raises(ValueError, match="cannot be broadcast to a single shape"):
            transformed(x / 3)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("itstruve0", "fwdad.elementwise(scipy.special.itstruve0, lambda x, y: ...)"),
        (
            "agm",
            "fwdad.elementwise(scipy.special.agm, lambda x0, x1, y: ..., lambda x0, x1, y: ...)",
        ),
        ("itairy", "@fwdad.frule(scipy.special.itairy)"),
    ],
)
def test_the_rule_to_write_has_the_arguments_of_the_function(name, words):
    function = getattr(special, name)
    for transform in (fwdad.jacfwd, fwdad.jacrev):
        with pytest.raises(fwdad.errors.MissingRuleError, match=re.escape(words)):
            transform(lambda x: np.stack(function(*[x] * function.nin)))(X)

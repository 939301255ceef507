"""Lists of numbers and arrays where NumPy takes arrays: their elements keep their derivatives."""

import importlib.util

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences

X = np.array([0.9, 1.3, 0.4, 1.6, 0.7, 1.1])
I = np.array([0, 1, 0])  # noqa: E741  (an index)
K = np.array([0.3, 0.7])

TAKERS = {
    "exp": lambda x: np.exp([x[:3], x[3:]]),
    "maximum": lambda x: np.maximum([x[:3], x[3:]], 0.8),
    "multiply": lambda x: np.multiply([x[0], x[3]], [x[3], 2.0]),
    "hypot": lambda x: np.hypot([[x[0], x[1]], [x[2], x[3]]], x[:2]),
    "sum": lambda x: np.sum([x[:3], x[3:]], axis=0),
    "mean": lambda x: np.mean([x[:3], x[3:]], axis=1),
    "max": lambda x: np.max([x[:3], x[3:]], axis=1),
    "full": lambda x: np.full((2, 3), [x[0], 1.0, x[1]]),
    "full_rows": lambda x: np.full((2, 3), fill_value=[x[:3]]),
    "full_like": lambda x: np.full_like(x[:3], [x[0], 2.0, x[1]]),
    "clip": lambda x: np.clip([x[:3], x[3:]], 0.5, [1.0, 1.2, x[5]]),
    "where": lambda x: np.where([True, False, True], [x[3:], x[:3]], [x[0], x[1], 2.0]),
    "dot": lambda x: np.dot([x[:3], x[3:]], [x[0], 1.0, x[1]]),
    "transpose": lambda x: np.transpose([x[:3], x[3:]]),
    "reshape": lambda x: np.reshape([x[:3], x[3:]], (3, 2)),
    "broadcast_to": lambda x: np.broadcast_to([x[1], x[2], 1.0], (2, 3)),
    "take": lambda x: np.take([x[0], x[1], x[2]], [0, 2]),
    "norm": lambda x: np.linalg.norm([x[:3], x[3:]], axis=0),
    "cumsum": lambda x: np.cumsum([x[:3], x[3:]], axis=0),
    "sort": lambda x: np.sort([x[:3], x[3:]], axis=0),
    "outer": lambda x: np.outer([x[0], x[1]], [x[2], 1.0]),
    "einsum": lambda x: np.einsum("ij,kl->ik", [x[:3], x[3:]], [[1.0, x[0]]]),
    "solve": lambda x: np.linalg.solve([[2 + x[0], x[1]], [x[2], 3.0]], [x[3], 1.0]),
    "interp": lambda x: np.interp([x[0], x[1]], [0.0, 1.0, 2.0], [x[2], x[3], x[4]]),
    "prod": lambda x: np.prod([x[0], x[1], 2.0]),
    "append": lambda x: np.append([x[0]], [x[1], x[2]]),
    "insert": lambda x: np.insert(np.arange(3.0), [1], [x[0]]),
    "tile": lambda x: np.tile([x[1], x[2], 1.0], 2),
    "choose": lambda x: np.choose([0, 1, 0], [[x[0], x[1], x[2]], x[3:]]),
    "choose_method": lambda x: I.choose([x[:3], x[3:]]),
    "dot_method": lambda x: K.dot([x[:3], x[3:]]),
    "std": lambda x: np.std([x[0], x[1], 1.0], ddof=1),
    "average": lambda x: np.average([x[:3], x[3:]], axis=0, weights=[x[0], x[1]]),
    "bincount": lambda x: np.bincount([0, 1, 1], weights=[x[0], x[1], 1.0]),
    "add_reduce": lambda x: np.add.reduce([x[:3], x[3:]]),
    "times_list": lambda x: np.ones((2, 3)) * [x[:3], x[3:]],
    "list_minus": lambda x: [x[0], x[1], 2.0] - x[3:],
    "matrix_product": lambda x: x[:3] @ [[x[0], 1.0], [x[1], 2.0], [3.0, x[3]]],
    "product_with_a_list": lambda x: np.array([*x]).reshape(2, 3) @ [1.0, 2.0, 3.0],
    "plain_matrix_product": lambda x: K @ [x[:3], x[3:]],
}


def held_in_memory(f):
    """The same of an array that active values were stored into."""

    def g(x):
        a = np.empty(6)
        a[:] = x
        return f(a)

    return g


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("stored", [False, True], ids=["argument", "stored"])
def test_derivatives(name, stored):
    f = held_in_memory(TAKERS[name]) if stored else TAKERS[name]
    expected = central_differences(f, X)
    weights = np.cos(np.arange(np.size(f(X)))).reshape(np.shape(f(X)))

    def total(x):
        return np.sum(weights * f(x))

    by_rows = np.tensordot(weights, expected, np.ndim(weights))
    for chunk in (1, 6):
        found = fwdad.jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(found, expected, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jacobian(f, X, mode="reverse"), expected, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.eager_reverse.gradient(total, X), by_rows, rtol=1e-7, atol=1e-8)
    tape = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    assert_allclose(tape(X), expected, rtol=1e-7, atol=1e-8)
    tape = fwdad.jit(fwdad.grad(total), backend="numpy")
    assert_allclose(tape(X), by_rows, rtol=1e-7, atol=1e-8)


WRITERS = {
    "add": lambda b, a: b.__iadd__([a[:3], a[3:]]),
    "put": lambda b, a: b.put([1, 4], [a[:1], a[3:4]]),
    "put_rows": lambda b, a: np.put(b, [0, 1, 2], [a[:3]]),
    "add_at": lambda b, a: np.add.at(b, [0, 1], [a[:3], a[3:]]),
    "store": lambda b, a: b.__setitem__(slice(None), [a[:3], a[3:]]),
    "copyto": lambda b, a: np.copyto(b, [a[:3], a[3:]]),
    "flat": lambda b, a: setattr(b, "flat", [a[:3]]),
}


@pytest.mark.parametrize("name", WRITERS)
def test_stores_of_lists_of_arrays(name):
    """What is written is a list of views of an array whose memory carries tangents."""

    def f(x):
        a, b = np.empty(6), np.ones((2, 3))
        a[:] = x**2
        WRITERS[name](b, a)
        return b

    expected = central_differences(f, X)
    assert np.any(expected)
    for mode in ("forward", "reverse"):
        found = fwdad.jacobian(f, X, mode=mode)
        assert_allclose(found, expected, rtol=1e-7, atol=1e-8)


def test_augmented_assignment_of_a_list():
    def f(x):
        a, b = np.empty(6), np.ones((2, 3))
        a[:] = x**2
        b *= [a[:3], a[3:]]
        b[0] += (x[0], 1.0, x[1])
        return b

    expected = central_differences(f, X)
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="no Numba")
def test_compiled():
    names = ("exp", "multiply", "full", "reshape", "take", "dot", "clip", "hypot", "where")

    def total(x):
        return sum(np.sum(np.cos(TAKERS[name](x))) for name in names)

    expected = central_differences(total, X)
    assert_allclose(fwdad.jit(fwdad.grad(total))(X), expected, rtol=1e-6, atol=1e-7)

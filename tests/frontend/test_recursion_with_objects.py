"""Functions that call themselves and make, return or change objects, lists and functions."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([0.3, 0.5, 0.7, 0.9, 1.1])


class Node:
    def __init__(self, v, rest):
        self.v, self.rest = v, rest


class Tree:
    def __init__(self, a):
        self.a = a[:1]
        self.left = Tree(a[1 : 1 + len(a) // 2]) if len(a) > 1 else None

    def total(self):
        return self.a[0] + (np.sin(self.left.total()) if self.left is not None else 0.0)


@dataclass
class State:
    a: float
    b: np.ndarray


def chain(x, k=0):
    return Node(x[k], chain(x, k + 1)) if k < len(x) - 1 else Node(x[k], None)


def summed(node):
    return node.v**2 + (summed(node.rest) if node.rest is not None else 0.0)


def folded(x, k):
    if k >= len(x):
        return State(0.0, x * 1.0)
    rest = folded(x, k + 1)
    return State(rest.a + x[k] ** 2, rest.b * np.cos(x[k]))


def in_place(x, k):
    if k >= len(x):
        return State(0.0, x * 1.0)
    rest = in_place(x, k + 1)
    rest.a = rest.a + x[k] ** 2
    rest.b[0] += rest.a
    return rest


def in_a_dict(x, k):
    if k >= len(x):
        return {"a": 0.0, "b": [x * 1.0]}
    rest = in_a_dict(x, k + 1)
    rest["a"] = rest["a"] + x[k] ** 2
    rest["b"][0] = rest["b"][0] * x[k]
    return rest


def visited(state, x, k):
    if k >= len(x):
        return 0.0
    state.a = state.a + x[k]
    return state.a * x[k] + visited(state, x, k + 1)


def composed(x, k):
    if k >= len(x):
        return lambda t: t
    rest = composed(x, k + 1)
    return lambda t: rest(t * x[k])


def handed_on(held, x, k):
    return held if k >= len(x) else handed_on(held, x, k + 1)


def a_chain(x):
    return summed(chain(x))


def a_tree(x):
    return Tree(x).total()


def a_fold(x):
    y = folded(x, 0)
    return y.a * np.sum(y.b)


def a_fold_in_place(x):
    y = in_place(x, 0)
    return y.a * np.sum(y.b)


def a_fold_in_a_dict(x):
    y = in_a_dict(x, 0)
    return y["a"] * np.sum(y["b"][0])


def a_visit(x):
    state = State(0.0, x)
    return visited(state, x, 0) + state.a


def a_composition(x):
    return composed(x, 0)(2.0)


def the_same_list(x):
    held = [x[0], x[1]]
    same = handed_on(held, x, 0)
    same[0] = 7.0 * x[2]
    return held[0] + same[1] * held[1]


def the_same_object(x):
    held = State(x[0], x * 1.0)
    same = handed_on(held, x, 0)
    same.a = 7.0 * x[2]
    same.b[0] = x[1]
    return held.a**2 + held.b[0] * x[0]


@pytest.mark.parametrize("f", [
    a_chain, a_tree, a_fold, a_fold_in_place, a_fold_in_a_dict, a_visit, a_composition,
    the_same_list, the_same_object,
])  # fmt: skip
def test_derivatives(f):
    """Of several lengths, each of which may be a tape of its own."""
    value = fwdad.jit(f, backend="numpy")
    rows = [fwdad.jit(g, backend="numpy") for g in (fwdad.grad(f), fwdad.jacfwd(f))]
    for x in (X, X[:3], 2 * X):
        expected = fwdad.jacobian(f, x, mode="forward")
        assert_allclose(value(x), f(x), rtol=1e-13)
        assert_allclose(fwdad.grad(f)(x), expected, rtol=1e-12, atol=1e-14)
        for g in rows:
            assert_allclose(g(x), expected, rtol=1e-12, atol=1e-14)


def test_without_an_end():
    def endless(node, x):
        return endless(Node(node.v * 2.0, node), x)

    with pytest.raises(fwdad.errors.UntraceableError, match="nested too deeply"):
        fwdad.jit(lambda x: endless(Node(x[0], None), x), backend="numpy")(X)

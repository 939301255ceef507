"""Which values lead back to a part of a composite."""

import functools
import operator
import weakref
from collections import deque

import numpy as np
import pytest

import fwdad
from fwdad.tangents.back_references import is_simple, reaches
from tests.cases.plain_classes import Node

NODE = Node(1.0)
ARRAY = np.arange(4.0)


def with_cell(x):
    return lambda: x


def with_default(x):
    return lambda y=x: y


def with_keyword(x):
    return lambda *, y=x: y


LEADING = {
    "itself": lambda x: x,
    "a closure": with_cell,
    "a default": with_default,
    "a keyword's default": with_keyword,
    "a closure of a closure": lambda x: with_cell(with_cell(x)),
    "a partial": lambda x: functools.partial(max, x),
    "a set": lambda x: frozenset([with_cell(x)]),
    "a deque": lambda x: deque([1, [x]]),
    "a weak reference": lambda x: weakref.ref(x),
    "an object": lambda x: Node(None, x) if isinstance(x, Node) else Node([x]),
    "an array of objects": lambda x: (
        np.array([None, x], dtype=object)[:2] if isinstance(x, Node) else with_cell(x)
    ),
}


@pytest.mark.parametrize("name", LEADING)
@pytest.mark.parametrize("x", [NODE, ARRAY], ids=["object", "array"])
def test_leading_back(name, x):
    value = LEADING[name](x)
    assert reaches(value, {id(x)})
    others = Node(1.0), np.ones(2)
    assert not reaches(value, set(map(id, others)))


def test_a_view_leads_back_to_its_array():
    assert reaches(with_cell(ARRAY[1:]), {id(ARRAY)})
    assert reaches(ARRAY.sum, {id(ARRAY)})


def test_leading_nowhere():
    here = Node(1.0)
    for value in (len, np.sin, Node, np, operator.add, test_leading_nowhere, "text", 3, Node.total):
        assert not reaches(value, {id(here)})
    assert is_simple("text")
    assert not is_simple(with_cell(here))


def test_cycles_end():
    here, there = Node(1.0), [1]
    there.append(there)
    assert not reaches(there, {id(here)})


def test_constants_that_lead_elsewhere_are_kept():
    """A closure over something else, or over a part without numbers, is a constant."""
    options = {"name": "a"}
    weights = np.array([2.0, 3.0])
    x = {"a": np.ones(2), "f": lambda a: np.sum(weights * a), "o": options, "g": lambda: options}

    def f(x):
        return x["f"](x["a"]) * len(x["g"]())

    for g in (fwdad.grad(f), fwdad.jit(fwdad.grad(f), backend="numpy")):
        np.testing.assert_array_equal(g(x)["a"], weights)

"""What is asked of every program: right at every chunk size, and nothing else changed.

Today the programs run in forward mode. Other modes are to be asked the same of the same tables.
"""

import copy
import linecache
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import central_differences, difference_along


def call_on_copy(f, x):
    """Call the plain program on a copy: it may write into its argument."""
    return f(copy.deepcopy(x))


@dataclass(frozen=True)
class Program:
    """A NumPy program, a point, and where its Jacobian is known from."""

    function: Callable[[Any], Any]
    x: Any
    jacobian: Callable[[Any], Any] | None = None  # closed form; differences where there is none
    products: bool = False  # sums or matrix products, which round differently at another width
    rtol: float = 1e-8

    def __str__(self):
        return self.function.__name__

    def reference(self):
        """The Jacobian, from the closed form or from differences of the plain program."""
        x = copy.deepcopy(self.x)
        if self.jacobian is not None:
            return np.asarray(self.jacobian(x))
        if isinstance(x, float):
            return difference_along(self.function, x)
        return central_differences(self.function, x)


def programs():
    """Make a table of programs, and the decorator that enters a function into it."""
    table = []

    def program(x, **facts):
        def enter(function):
            table.append(Program(function, x, **facts))
            return function

        return enter

    return table, program


def widths(x):
    """The chunk sizes to run at: 1, 2, 3, a ragged last chunk, the length of x, and all at once."""
    n = max(np.size(x), 1)
    return [*sorted({1, 2, 3, max(n - 1, 1), n}), None, "auto"]


def with_widths(table):
    """Every program of a table at every chunk size, with a name for each."""
    return [
        pytest.param(program, chunk, id=f"{program}-{chunk}")
        for program in table
        for chunk in widths(program.x)
    ]


def line_of(function):
    """The source line of a lambda, to name a test by."""
    if not hasattr(function, "__code__"):
        return None
    code = function.__code__
    return linecache.getline(code.co_filename, code.co_firstlineno).strip().removeprefix("lambda ")


def same_bits(actual, desired):
    """Equal to the last bit, in structure of scalars and arrays, dtype and shape too."""
    assert type(actual) is type(desired)
    assert_array_equal(actual, desired, strict=isinstance(desired, np.ndarray))


def check_jacobian(program, chunk):
    """Value, Jacobian and untouched argument, at one chunk size."""
    x = copy.deepcopy(program.x)
    y = call_on_copy(program.function, x)
    value, jacobian = fwdad.value_and_jacobian(program.function, x, chunk=chunk)
    same_bits(value, y)
    assert np.shape(jacobian) == np.shape(y) + np.shape(x)
    assert_allclose(jacobian, program.reference(), rtol=program.rtol, atol=program.rtol)
    same_bits(x, program.x)


def check_lanes(program, rng, chunk):
    """Lane k at this width is what a run on direction k alone gives."""
    x = copy.deepcopy(program.x)
    directions = rng.normal(size=(7, *np.shape(x)))
    y, y_dot = fwdad.jvp(program.function, x, directions, chunk=chunk)
    assert np.shape(y_dot) == (7, *np.shape(y))
    for v, lane in zip(directions, y_dot, strict=True):
        alone, alone_dot = fwdad.jvp(program.function, x, v if np.shape(x) else float(v))
        same_bits(y, alone)
        if program.products:
            scale = np.max(np.abs(alone_dot), initial=0.0)
            assert_allclose(lane, alone_dot, rtol=1e-13, atol=1e-13 * scale)
        else:
            assert_array_equal(lane, alone_dot)

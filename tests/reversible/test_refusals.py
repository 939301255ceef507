"""What is refused when a program is defined, and what raises when it runs."""

import re

import numpy as np
import pytest

import fwdad
from fwdad.errors import InvertibilityError, IrreversibleError
from fwdad.reversible import ancilla, cond, free, reversible, unchecked
from tests.reversible.programs import scaled


def own_update(x, y):
    y -= y


def product(x, y):
    x -= x * y


def never_freed(x):
    t = ancilla(0.0)
    t += x


def freed_twice(x):
    t = ancilla(0.0)
    free(t, 0.0)
    free(t, 0.0)


def used_after(x):
    t = ancilla(0.0)
    free(t, 0.0)
    x += t


def changed_index(x):
    for i in range(3):
        i += 1


def overlapping(x):
    x[1:] += x[:-1]


def assigned(x):
    x = 3  # noqa: F841


def stale_name(x, n):
    j = n + 1
    n += 1
    x += j


def twice(x):
    scaled(x, x, 2.0)


def freed_in_a_branch(x):
    t = ancilla(0.0)
    if x > 0:
        free(t, 0.0)


def early(x):
    for i in range(3):
        x += i
        break


@pytest.mark.parametrize(
    ("f", "line", "variable"),
    [
        (own_update, 1, "y"),
        (product, 1, "x"),
        (never_freed, 1, "t"),
        (freed_twice, 3, "t"),
        (used_after, 3, "t"),
        (changed_index, 2, "i"),
        (overlapping, 1, "x[1:]"),
        (assigned, 1, "x"),
        (stale_name, 1, "j"),
        (twice, 1, "x"),
        (freed_in_a_branch, 3, "t"),
        (early, 3, "break"),
    ],
)
def test_refused_when_defined(f, line, variable):
    with pytest.raises(IrreversibleError, match=re.escape(variable)) as caught:
        reversible(f)
    assert caught.value.lineno == f.__code__.co_firstlineno + line
    assert caught.value.filename == __file__


@reversible
def leaks(x, y):
    t = ancilla(0.0)
    t += y
    x += t
    free(t, 0.0)


@reversible
def branches(x):
    if x > 1:
        x -= 1


@reversible
def begun(x, y):
    while cond(x < 100, x > -10):
        x += y


@reversible
def grows(n, x):
    for _ in range(n):
        n += 1
        x += 1.0


@reversible
def one_place(x, i, j):
    x[i] += 2.0 * x[j]


@reversible
def neighbours(x):
    for i in range(len(x)):
        x[i] += 0.5 * x[i - 1]


@pytest.mark.parametrize(
    ("f", "args", "line", "variable", "expected", "found"),
    [
        (neighbours, (np.ones(1),), 3, "i", "two different elements", 0),
        (leaks, (1.0, 2.0), 5, "t", 0.0, 2.0),
        (branches, (1.2,), 2, "x > 1", True, False),
        (begun, (0, 9), 2, "x > -10", False, True),
        (grows, (3, 0.0), 2, "n", 3, 6),
        (one_place, (np.ones(3), 2, 2), 2, "i", "two different elements", 2),
        (one_place, (np.ones(3), 2, -1), 2, "i", "two different elements", 2),
    ],
)
@pytest.mark.parametrize("compiled", [False, True])
def test_raises_when_it_runs(f, args, line, variable, expected, found, compiled):
    run = fwdad.jit(f) if compiled else f
    with pytest.raises(InvertibilityError) as caught:
        run(*args)
    error = caught.value
    first = f.__wrapped__.__code__.co_firstlineno
    assert (error.line, error.lineno) == (first + line, first + line)
    assert (error.variable, error.expected, error.found) == (variable, expected, found)


def test_checks_can_be_off_and_only_then_are():
    @reversible(check=False)
    def leaks(x, y):
        t = ancilla(0.0)
        t += y
        x += t
        free(t, 0.0)

    @reversible
    def partly(x, y):
        with unchecked():
            t = ancilla(0.0)
            t += y
            x += t
            free(t, 0.0)
        s = ancilla(0.0)
        s += y
        free(s, 0.0)

    assert leaks(1.0, 2.0) == (3.0, 2.0)
    with pytest.raises(InvertibilityError, match="'s'"):
        partly(1.0, 2.0)


def test_arguments_are_updated_in_place_on_request_and_kept_if_it_fails():
    x = np.ones(3)
    scaled(x, np.ones(3), 2.0)
    assert np.array_equal(x, np.ones(3))
    scaled(x, np.ones(3), 2.0, inplace=True)
    assert np.array_equal(x, 3 * np.ones(3))
    with pytest.raises(InvertibilityError):
        one_place(x, 1, 1, inplace=True)
    assert np.array_equal(x, 3 * np.ones(3))
    with pytest.raises(fwdad.errors.AliasedArgumentError):
        scaled(x, x, 2.0)


def test_slices_that_may_meet_are_refused():
    def f(x, n):
        x[:n] += x[n + 1 :]

    with pytest.raises(IrreversibleError, match="read by its own update"):
        reversible(f)

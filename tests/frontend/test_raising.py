"""Programs of which a part always raises: what comes first, and what does not happen at all."""

from importlib.util import find_spec

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import UntraceableError

needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")
BACKENDS = ["numpy", pytest.param("numba", marks=needs_numba)]
UP, DOWN, ZERO = np.array([[1.0, 2.0, 3.0], [-1.0, 2.0, -3.0], [0.0, 2.0, 0.0]])


def both_ways(x):
    if x[0] > 0:
        raise ValueError("positive")
    else:
        raise KeyError("not positive")


def through_a_call(x):
    return 2 * both_ways(x)


def behind_a_number(x):
    y = 1 / float(x[0])
    raise KeyError(y)


def on_one_way(x):
    if x[0] <= 0:
        y = 1 / float(x[0])
        if y < -2:
            raise ValueError("large")
        else:
            raise KeyError("small")
    return (x * x).sum()


def in_a_generator(x):
    def items():
        yield x[0]
        both_ways(x)

    return sum(items())


def in_a_loop(x, n=3):
    for i in range(n):
        if x[i] > 0:
            raise ValueError("positive")
        raise KeyError(i)
    return (x * x).sum()


def in_a_loop_downwards(x, n=3, step=-1):
    for i in range(2, 2 - n, step):
        raise KeyError(i)
    return (x * x).sum()


def in_a_while_loop(x):
    while x[0] > 0:
        raise ValueError("positive")
    return (x * x).sum()


def in_its_condition(x):
    while both_ways(x):
        x = x / 2
    return x.sum()


def over_what_is_chosen(x):
    total = x.sum()
    for v in x[x < 0]:
        if v < -2:
            raise ValueError("low")
        raise KeyError("not so low")
    return total


def outcome(f, args):
    """The value, or the exception as text; a derivative returns its value first."""
    try:
        y = f(*args)
    except Exception as error:
        return type(error), str(error)
    return y[0] if isinstance(y, tuple) else y


def ways(f, backend):
    value_and_grad = fwdad.value_and_grad(f)
    compiled = [fwdad.jit(f, backend=backend), fwdad.jit(value_and_grad, backend=backend)]
    if backend == "numba":
        return compiled
    return [
        *compiled,
        fwdad.jit(lambda x, *args: fwdad.jvp(f, x, x, args=args), backend=backend),
        value_and_grad,
        fwdad.value_and_grad(fwdad.jit(f, backend=backend)),
    ]


@pytest.mark.every(2, of="numba")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("f", "args"),
    [
        (both_ways, ()),
        (through_a_call, ()),
        (behind_a_number, ()),
        (on_one_way, ()),
        (in_a_generator, ()),
        (in_a_loop, ()),
        (in_a_loop, (0,)),
        (in_a_loop, (2,)),
        (in_a_loop_downwards, ()),
        (in_a_loop_downwards, (0,)),
        (in_a_loop_downwards, (4, -2)),
        (in_a_loop_downwards, (-2, -2)),
        (in_a_loop_downwards, (-2, 2)),
        (in_a_while_loop, ()),
        (in_its_condition, ()),
        (over_what_is_chosen, ()),
    ],
)
def test_exceptions_and_values_are_those_of_python(f, args, backend, caplog):
    for way in ways(f, backend):
        for x in (UP, DOWN, ZERO):
            expected, found = outcome(f, (x, *args)), outcome(way, (x.copy(), *args))
            if isinstance(expected, tuple):
                assert found[0] is expected[0]
                assert found[1] == expected[1] or "…" in found[1]
            else:
                assert_array_equal(found, expected)
    assert not caplog.records  # nothing was a mistake of ours


@pytest.mark.parametrize("backend", BACKENDS)
def test_derivatives_where_nothing_is_raised(backend):
    for f, x, args in (
        (in_a_loop, UP, (0,)),
        (in_a_while_loop, DOWN, ()),
        (on_one_way, UP, ()),
    ):
        assert_array_equal(fwdad.jit(fwdad.grad(f), backend=backend)(x, *args), 2 * x)


def test_stores_before_the_exception_are_made():
    def f(x):
        x[0] = 5.0
        raise ValueError("late")

    x = UP.copy()
    with pytest.raises(ValueError, match="late"):
        fwdad.jit(f)(x)
    assert_array_equal(x, [5.0, 2.0, 3.0])


# -- what `try` catches


def caught_of_a_loop(x, n):
    try:
        for i in range(n):
            raise KeyError(i)
        return x[2]
    except KeyError:
        return x[1]


def caught_of_a_while_loop(x, _):
    try:
        while x[0] > 0:
            raise KeyError("positive")
        return x[2]
    except KeyError:
        return x[1]


def caught_of_both_ways(x, _):
    try:
        both_ways(x)
    except KeyError:
        return x[0]
    except ValueError:
        return x[1]


def caught_behind_a_number(x, _):
    try:
        y = 1 / float(x[0])
        raise KeyError(y)
    except (KeyError, ZeroDivisionError):
        return x[1]


def suppressed_of_a_loop(x, n):
    for _ in (0,):
        with Suppressing():
            for i in range(n):
                raise KeyError(i)
            return x[2]
    return x[1]


class Suppressing:
    def __enter__(self):
        return self

    def __exit__(self, kind, error, place):
        return kind is KeyError


@pytest.mark.parametrize("f", [caught_of_a_loop, caught_of_a_while_loop, caught_of_both_ways])
def test_what_is_caught_is_a_branch(f):
    value, gradient = fwdad.jit(f), fwdad.jit(fwdad.grad(f))
    for x in (UP, DOWN):
        for n in (0, 2):
            assert value(x, n) == f(x, n)
            step = 0.25 * np.eye(3)
            assert_array_equal(gradient(x, n), [(f(x + s, n) - f(x - s, n)) / 0.5 for s in step])


def test_what_is_caught_behind_a_number():
    value = fwdad.jit(caught_behind_a_number)
    gradient = fwdad.jit(fwdad.grad(caught_behind_a_number))
    for x in (UP, DOWN, np.zeros(3)):
        assert value(x, 0) == caught_behind_a_number(x, 0)
        assert_array_equal(gradient(x, 0), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("f", [suppressed_of_a_loop])
def test_what_may_be_caught_is_refused_by_a_tape(f):
    for x in (UP, DOWN):
        for n in (0, 2):
            with pytest.raises(UntraceableError, match="that may raise at run time"):
                fwdad.jit(f)(x, n)
            y, x_bar = fwdad.value_and_grad(f)(x, n)  # as it runs
            assert y == f(x, n)
            step = 0.25 * np.eye(3)
            assert_array_equal(x_bar, [(f(x + s, n) - f(x - s, n)) / 0.5 for s in step])

"""Builtins and the standard library's iterators over arrays whose tangents lie in their memory."""

# ruff: noqa: RUF007, UP031 - programs as users write them

import collections
import functools
import heapq
import itertools
import math
import operator
import statistics

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.check import line_of
from tests.differences import central_differences

X = np.array([0.7, 1.3, 0.4])


def flat(y):
    return [a for row in y for a in row]


FUNCTIONS = [
    lambda y: math.fsum(y),
    lambda y: math.prod(y),
    lambda y: math.hypot(*y),
    lambda y: math.dist(y, [0, 0, 0]),
    lambda y: math.fsum(v * v for v in y),
    lambda y: statistics.fmean(y),
    lambda y: max(y),
    lambda y: min(y),
    lambda y: sum(y, 1.0),
    lambda y: sorted(y),
    lambda y: list(y),
    lambda y: tuple(y),
    lambda y: sorted(set(y)),
    lambda y: [*y, *y[:1]],
    lambda y: list(reversed(y)),
    lambda y: list(collections.deque(y, maxlen=2)),
    lambda y: list(itertools.accumulate(y, operator.mul)),
    lambda y: [a * b for a, b in itertools.pairwise(y)],
    lambda y: list(itertools.takewhile(lambda v: v > 0.3, y)),
    lambda y: list(itertools.filterfalse(lambda v: v > 1, y)),
    lambda y: list(itertools.compress(y, [1, 0, 1])),
    lambda y: flat([[*g] for _, g in itertools.groupby(y, lambda v: v > 0.6)]),
    lambda y: list(itertools.islice(itertools.cycle(y), 5)),
    lambda y: [a * b for a, b in zip(*itertools.tee(y), strict=True)],
    lambda y: [a * (b or 1) for a, b in itertools.zip_longest(y, y[:1], fillvalue=0)],
    lambda y: [a * b for a, b in itertools.product(y, y)],
    lambda y: [a * b for a, b in itertools.combinations(y, 2)],
    lambda y: list(itertools.starmap(lambda a, b: a * b, zip(y, y, strict=True))),
    lambda y: list(itertools.chain.from_iterable([y, y])),
    lambda y: itertools.chain(y, y),
    lambda y: heapq.merge(y[:1], y[1:]),
    lambda y: [a * b for a, b in zip(y, y[1:], strict=False)],
    lambda y: [i * v for i, v in enumerate(y)],
    lambda y: filter(lambda v: v > 0.45, y),
    lambda y: map(operator.mul, y, y),
    lambda y: functools.reduce(lambda a, b: a * b, y, 1.0),
    lambda y: dict(enumerate(y)).values(),
    lambda y: dict(zip("abc", y, strict=True)).values(),
    lambda y: y.tolist(),
    lambda y: (held := [], held.extend(y))[0],
    lambda y: [z * 2 for v in y if (z := v * v) > 0],
    lambda y: next(iter(y)) * 2,
    lambda y: next(iter(y.flat)),
    lambda y: [y.__getitem__(1), operator.itemgetter(2)(y)],
    lambda y: [v * sum(i) for i, v in np.ndenumerate(y)],
    lambda y: [(int(np.sign(v)), abs(v))[1] for v in y],
    lambda y: [divmod(v, 0.4)[1] for v in y],
    lambda y: [float(v) for v in y] + [complex(v, 1).real for v in y],
    lambda y: pow(y[0], 2) + pow(2, y[1]) + round(2.7) * y[2],
]


def listed(value):
    return np.array(list(value) if hasattr(value, "__iter__") else [value])


@pytest.mark.parametrize("written", [False, True], ids=["dual", "written"])
@pytest.mark.parametrize("function", FUNCTIONS, ids=line_of)
def test_over_an_array(function, written):
    def f(x):
        y = np.zeros(3) if written else x * x
        if written:
            y[:] = x * x
        return listed(function(y))

    value, J = fwdad.value_and_jacobian(f, X.copy(), chunk=2)
    assert_array_equal(value, f(X))
    assert_allclose(J, central_differences(f, X), rtol=1e-8, atol=1e-8)


def test_int_and_range_raise():
    for f in (lambda x: x * int(x[0]), lambda x: x * len(range(x[1])), lambda x: x.astype(int)):
        with pytest.raises((fwdad.errors.DualLeakError, TypeError)):
            fwdad.jacobian(f, X)


def test_types_and_text_are_the_primals():
    seen = []

    def f(x):
        seen.append(
            (
                type(x),
                type(x[0]),
                type(x.item(0)),
                isinstance(x, np.ndarray),
                f"{x[0]:.2f}",
                "%.1f" % x[1],
                str(x),
            )
        )
        return x

    f(X)
    expected = seen.pop()
    taken = []

    def g(x):
        taken.append(
            [
                type(x),
                type(x[0]),
                type(x.item(0)),
                isinstance(x, np.ndarray),
                f"{x[0]:.2f}",
                "%.1f" % x[1],
                str(x),
            ]
        )
        y, aux = x, taken[-1]
        return y, tuple(aux)

    _, _, aux = fwdad.jvp(g, X, X, has_aux=True)
    assert aux == expected
    assert taken == [list(expected)]  # as a plain call leaves it


@pytest.mark.parametrize("start", [0, 0.1, np.float64(0.1), 1])
def test_sum_has_the_value_that_python_gives_it(start):
    """From Python 3.12 on, sum carries the rounding errors along."""
    x = np.array([1e16, 1.0, -1e16, 0.1, 1e-3] * 7)
    for kind in (float, np.float64):
        f = lambda x, kind=kind: sum((kind(v) for v in x), start)  # noqa: E731
        y, slopes = fwdad.value_and_jacobian(f, x)
        assert y == sum((kind(v) for v in x), start)
        assert_array_equal(slopes, np.ones(35))
        first = fwdad.jacfwd(lambda t, f=f: f(t * t * X))
        assert_allclose(fwdad.value_and_jacobian(first, 3.0), (6 * X.sum(), 2 * X.sum()))
    inactive = lambda t: t * sum([0.1] * 10)  # noqa: E731
    assert fwdad.jvp(inactive, 3.0, 1.0) == (inactive(3.0), sum([0.1] * 10))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("convert", [float, complex, lambda a: complex(0.0, a)])
def test_an_array_that_is_no_number_raises_what_numpy_raises(convert, mode):
    """Whether a value is a number is often found out so."""

    def f(x):
        try:
            return abs(convert(x)) * 2
        except TypeError:
            return x * 3

    assert_allclose(fwdad.jacobian(f, X, mode=mode), 3 * np.eye(3))
    one = fwdad.jacobian(lambda x: f(x[1].reshape(())), X, mode=mode)
    assert_allclose(one, [0.0, 2.0, 0.0])

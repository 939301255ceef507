"""Dicts whose keys carry derivatives: what was stored under an equal number is not the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad

X = np.array([1.0, 1.0, 2.0])


def memo(x):
    kept = {}
    for v in x:
        if v not in kept:
            kept[v] = v * v
    return kept[x[0]] + 3 * kept[x[1]] + kept[x[2]]


def by_tuples(x):
    kept = {}
    for v in x:
        if (v, 0) not in kept:
            kept[v, 0] = v * v
    return kept[x[0], 0] + 3 * kept[x[1], 0]


def comprehension(x):
    kept = {v: v * v for v in x}
    return kept[x[0]] + 3 * kept[x[1]]


def get(x):
    return {x[0]: x[0] * 2}.get(x[1]) + x[2]


def pop(x):
    return {x[0]: x[0] * 2}.pop(x[1])


def setdefault(x):
    kept = {}
    kept.setdefault(x[0], x[0] * 2)
    return kept.setdefault(x[1], x[1] * 2)


PROGRAMS = [memo, by_tuples, comprehension, get, pop, setdefault]


@pytest.mark.parametrize("v", [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.3, 0.4, 0.5]], ids=str)
@pytest.mark.parametrize("f", PROGRAMS)
def test_equal_numbers_with_other_derivatives_are_refused(f, v):
    with pytest.raises(fwdad.errors.DualLeakError, match="equal key"):
        fwdad.jvp(f, X, np.array(v))


@pytest.mark.parametrize("chunk", [1, 2, None])
@pytest.mark.parametrize("f", [f for f in PROGRAMS if f is not comprehension])
def test_in_every_chunk(f, chunk):
    with pytest.raises(fwdad.errors.DualLeakError, match="equal key"):
        fwdad.jacobian(f, X, chunk=chunk)


@pytest.mark.parametrize("chunk", [1, 2, None])
def test_what_is_found_by_its_own_key(chunk):
    def f(x):
        kept = {v: v * v for v in x}
        pairs = {(v, k): v * 2 for k, v in enumerate(x)}
        names = {x[0]: "first", 1.5: x[1] ** 2}
        for k, v in enumerate(x):
            kept[v] += kept.get(v, 0.0) + pairs[v, k]
        return np.array([kept[v] for v in x]) * len(names[x[0]]) * names[1.5]

    x = np.array([1.0, 3.0, 2.0])
    kept, dkept = 2 * x**2 + 2 * x, np.diag(4 * x + 2)
    expected = 45 * dkept + 5 * np.outer(kept, [0.0, 6.0, 0.0])
    assert_allclose(fwdad.jacobian(f, x, chunk=chunk), expected)


def test_tables_of_constants_are_read():
    table = {0.5: 2.0, (0.5, 1): 3.0}
    f = lambda x: x * table[0.5] * table[0.5, 1] * table.get(0.25, 4.0)  # noqa: E731
    assert fwdad.derivative(f, 2.0) == 24.0

"""Loops over rows of new arrays: what a row reads once, and arrays that are the same everywhere."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

pytest.importorskip("numba")

import fwdad
from tests.codegen.compiled_programs import prepared


def columns(p, r):
    return p / r[:, None] + r[..., None] ** 2


def one_number(p, r):
    s = np.array(p[0] + 1)
    return s * p + np.sqrt(r)[:, None] - r[:1]


def ones(p, r):
    return np.full(len(r), 1.0)[:, None] * p + r[:, None] * np.full(len(p), 1.0)[None]


def negative(p, r):
    return p - np.full((len(r), 1), -2.5) ** 2 * r[:, None]


def infinite(p, r):
    return p * np.full(1, np.inf) + np.full((2, 1), -0.0) * r[0]


def not_a_number(p, r):
    return np.maximum(p, np.full((len(r), 1), np.nan))


def single_precision(p, r):
    filled = np.full((len(r), 1), 0.1, np.float32)
    return filled * np.float32(3) + filled[:, 0] * p[0]


def written_before(p, r):
    filled = np.full((len(r), 1), 2.0)
    filled[0, 0] = p[1]
    return filled * p


def written_after(p, r):
    filled = np.full((len(r), 1), 2.0)
    y = filled * p
    filled[0, 0] = 7
    return y + filled * r[0]


def written_by_a_view(p, r):
    filled = np.full((len(r), len(p)), 2.0)
    filled[1:, 1] *= 3
    return filled[:, ::-1] * p + filled[:, :1]


def written_in_a_loop(p, r):
    filled = np.full((len(r), 1), 1.0)
    y = np.zeros((len(r), len(p)))
    for i in range(3):
        y = y + filled * p
        filled[i % 2] += r[0]
    return y


def new_in_a_loop(p, r):
    total = np.zeros((len(r), len(p)))
    for i in range(3):
        filled = np.full((len(r), 1), 1.5)
        if i == 1:
            filled = r[:, None]
        total = total + filled * p
    return total


def filled_with_a_result(p, r):
    return np.full((len(r), 1), p[1]) * p


def answered(p, r):
    filled = np.full((len(r), len(p)), 0.5)
    return filled, filled * p + r[:, None]


PROGRAMS = [
    columns,
    one_number,
    ones,
    negative,
    infinite,
    not_a_number,
    single_precision,
    written_before,
    written_after,
    written_by_a_view,
    written_in_a_loop,
    new_in_a_loop,
    filled_with_a_result,
    answered,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_results_are_those_of_numpy(f):
    rng = np.random.default_rng(0)
    call, _ = prepared(f, np.ones(5), np.ones(2))
    for m in (5, 2, 40):
        p, r = rng.random(m) + 0.5, rng.random(2) + 0.5
        wanted, found = (y if isinstance(y, tuple) else (y,) for y in (f(p, r), call(p, r)))
        for a, b in zip(wanted, found, strict=True):
            assert a.dtype == b.dtype
            assert_array_equal(b, a)


@pytest.mark.every(3)
@pytest.mark.parametrize("lengths", [(0, 3), (3, 0), (0, 0), (1, 4), (4, 1)])
def test_rows_without_elements_and_no_rows(lengths):
    m, n = lengths
    p, r = np.arange(1.0, m + 1), np.arange(1.0, n + 1)
    for f in (columns, ones):
        call, _ = prepared(f, np.ones(5), np.ones(2))
        assert_array_equal(call(p, r), f(p, r))


def test_what_belongs_to_a_row_is_read_before_it():
    _, text = prepared(columns, np.ones(5), np.ones(2))
    stored = [line for line in text.splitlines() if "[i, j] = " in line]
    assert stored
    assert not any("0]" in line for line in stored), stored


def test_the_gradient_of_two_products_reads_no_array_of_ones():
    def f(a, p, r):
        return np.sum(r @ a) + np.sum(a @ p)

    v = fwdad.value_and_grad(f)
    args = np.ones((3, 4)), np.ones(4), np.ones(3)
    _, text = prepared(v, *args)
    (stored,) = (line for line in text.splitlines() if "[i, j] = " in line)
    assert stored.split(" = ")[1].count("[") == 1, stored
    a, p, r = np.arange(12.0).reshape(3, 4), np.arange(4.0), np.arange(3.0)
    assert_array_equal(fwdad.jit(v)(a, p, r)[1], p + r[:, None])

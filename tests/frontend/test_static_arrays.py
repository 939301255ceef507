"""Arrays of texts, dates and objects in traced programs: Python operates on them."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UntraceableError
from tests.differences import central_differences

X = np.array([0.7, 1.3, 2.1])
SITES = np.array(["a", "b", "a"])
DAYS = np.array(["2026-01-01", "2026-01-03", "2026-02-01"], dtype="datetime64[D]")
THINGS = np.array([None, "b", {"scale": 2.0}], dtype=object)


def chosen_by_texts(p):
    modes = np.array(["S"] * len(SITES))
    modes[1] = "T"
    of_site = [np.mean(p[SITES == site]) for site in np.unique(SITES)]
    return p * (modes == "S") + of_site[0] * of_site[1] * (modes.shape == (3,))


def between_days(p):
    days = (DAYS - DAYS[0]) / np.timedelta64(1, "D")
    late = DAYS > np.datetime64("2026-01-02")
    return p * days + p[late] @ days[late]


def of_nothing_yet(p):
    z = np.array([[None] * 2]).T
    kept = copy.deepcopy(z)
    scale = 2.0 if z[0, 0] is None and not any(kept[:, 0]) and len(z) == 2 else 3.0
    return scale * p**2 * THINGS[2]["scale"] if "b" in THINGS else p


def of_values(p):
    """An array of objects that holds values: operators are those of its items."""
    parts = np.empty((1, 2), dtype=object)
    parts[0, 0], parts[0, 1] = p**2, np.sum(p)
    twice = parts * 2.0
    flat = parts.ravel().tolist()
    return twice[0, 0] * parts.T[1, 0] + flat[0]


def in_a_loop(p):
    total = p * 0.0
    for k, site in enumerate(SITES):
        if site != "b":
            total = total + p * p[k]
    return total


PROGRAMS = [chosen_by_texts, between_days, of_nothing_yet, of_values, in_a_loop]


@pytest.mark.slow_cases("chosen_by_texts", "between_days", "in_a_loop", "of_values")
@pytest.mark.parametrize("f", PROGRAMS)
def test_values_and_derivatives(f):
    fast, rows = fwdad.jit(f), fwdad.jit(fwdad.jacrev(f))
    columns = [fwdad.jit(fwdad.jacfwd(f, chunk=n)) for n in (1, 2, 3)]
    for x in (X, X * 0.6):
        assert_allclose(fast(x), f(x), rtol=1e-14)
        for jacobian in (*columns, rows):
            assert_allclose(jacobian(x), central_differences(f, x), rtol=1e-6, atol=1e-8)
    assert fwdad.cache_info(fast).traces == 1


def test_what_is_outside_may_change():
    sites = np.array(["a", "b", "a"])
    things = np.array([1.0, None, "b"], dtype=object)
    fast = fwdad.jit(lambda p: p[sites == "a"] * things[0])
    assert_array_equal(fast(X), X[[0, 2]])
    sites[2], things[0] = "b", 3.0
    assert_array_equal(fast(X), X[:1] * 3.0)
    sites[1] = "a"
    assert_array_equal(fast(X), X[:2] * 3.0)


def changed_on_one_path(p):
    parts = np.array(["a", "b"])
    if p[0] > 0.5:
        parts[0] = "b"
    return p * np.sum(parts == "b")


def object_on_one_path(p):
    parts = np.empty(2, dtype=object)
    parts[0] = p
    if p[0] > 0.5:
        parts[0] = p**2
    return parts[0] * 2.0


@pytest.mark.parametrize("f", [changed_on_one_path, object_on_one_path])
def test_changed_on_one_path(f):
    with pytest.raises(UntraceableError):
        fwdad.trace(f, X)
    for x in (X, X * 0.6, X):
        assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)
        assert_allclose(fwdad.jit(fwdad.jacrev(f))(x), central_differences(f, x), rtol=1e-6)


def as_an_operand(p):
    return p[0] * np.array([2.0, None], dtype=object)[:1]


def as_a_text(p):
    names = np.array(["a", "b"])
    names[0] = p[0]
    return p * len(names[0])


def as_floats(p):
    parts = np.empty(2, dtype=object)
    parts[0], parts[1] = p[0], p[1]
    return parts.astype(float) * 2.0


def written_outside(p):
    THINGS[0] = p[0]
    return p * THINGS[0]


def filled(p):
    parts = np.empty(2, dtype=object)
    parts.fill(p[0])
    return parts[0] * p


@pytest.mark.parametrize("f", [as_an_operand, as_a_text, as_floats, written_outside, filled])
def test_refused(f):
    for derivative in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        with pytest.raises(UntraceableError):
            fwdad.jit(derivative)(X)
    assert THINGS[0] is None

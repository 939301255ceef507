"""``jvp`` of one array in one run, which has a way of its own, beside the general way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager import one_array

X = np.linspace(0.2, 1.4, 7)
V = np.cos(np.arange(21.0)).reshape(3, 7)


def same(x):
    return x


def elementary(x):
    y = np.sin(x) * np.exp(-x) - 3 * x / 2.0 + (x - 1) * x
    return -(2.0 - y) + X * y + y / X - np.tanh(y) * (X - y)


def parts_of_it(x):
    u, w = x[:3], x[4:]
    return u * w * u + 2 * (u - w) - u / 3.0


def written(x):
    x[1:3] *= x[3:5]
    x[0] = 2.0
    return x * x


def view(x):
    return x[::-2]


def several(x):
    return {"a": x * x, "b": (np.sum(x), 3)}


def number(x):
    return x @ x


def constant(_x):
    return np.ones(2)


def given_more(x, a, b):
    return a * x + b


FUNCTIONS = [same, elementary, parts_of_it, written, view, several, number, constant]


def general(f, x, v, **options):
    """By the way that takes any structure: an argument in a list."""
    y, y_dot = fwdad.jvp(lambda xs: f(xs[0]), [x], ([v],), argnums=(0,), **options)
    return y, y_dot


def assert_same(found, expected):
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for key in expected:
            assert_same(found[key], expected[key])
    elif isinstance(expected, tuple):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    else:
        assert type(found) is type(expected)
        assert_array_equal(found, expected)


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("v", [V, V[1], V[:1]], ids=["three", "single", "one"])
def test_short_way_has_the_bits_of_the_general_one(f, v):
    assert one_array.push_array(f, X, v, (), None) is not None
    x, before = X.copy(), X.copy()
    assert_same(fwdad.jvp(f, x, v), general(f, X, v))
    assert_array_equal(x, before)


def test_further_arguments():
    assert one_array.push_array(given_more, X, V, (2.0, 3), None) is not None
    y, y_dot = fwdad.jvp(given_more, X, V, args=(2.0,), kwargs={"b": X})
    assert_array_equal(y, 2.0 * X + X)
    assert_array_equal(y_dot, 2.0 * V)


@pytest.mark.parametrize(
    ("x", "v", "args"),
    [
        (X.astype(np.float32), V.astype(np.float32), ()),
        (X[0], V[0, 0], ()),
        (np.array(1.0), np.array(1.0), ()),
        (X, V[:, :3], ()),
        (X, V[:0], ()),
        (X, V, (X,)),
        (X + 0j, V + 0j, ()),
    ],
    ids=["single precision", "number", "no axes", "misfit", "no directions", "array", "complex"],
)
def test_what_has_to_go_the_general_way(x, v, args):
    assert one_array.push_array(same, x, v, args, None) is None


def test_nothing_returned_is_the_callers():
    x, v = X.copy(), V.copy()
    for directions in (v, v[0]):
        y, y_dot = fwdad.jvp(same, x, directions)
        assert not np.shares_memory(y, x)
        assert not np.shares_memory(y_dot, v)
    y, y_dot = fwdad.jvp(view, x, v)
    assert not np.shares_memory(y_dot, v)


def test_a_caught_error_is_raised():
    def f(x):
        try:
            return x * int(x[0])
        except fwdad.errors.DualLeakError:
            return x * 0.0

    with pytest.raises(fwdad.errors.DualLeakError):
        fwdad.jvp(f, X, V)


def test_none_is_refused():
    with pytest.raises(fwdad.errors.NoOutputError):
        fwdad.jvp(lambda _: None, X, V)


def test_inside_another_derivative():
    def inner(x):
        _, y_dot = fwdad.jvp(lambda z: np.sin(z) * x, X, V[0])
        return y_dot

    J = fwdad.jacobian(inner, X, chunk=3)
    assert_allclose(J, np.diag(np.cos(X) * V[0]), rtol=1e-15)


def test_in_memory_that_carries_tangents():
    def f(x):
        work = np.zeros(7)
        work[:] = x * x
        return fwdad.jvp(lambda z: z * z, work, V[0])[1]

    _, y_dot = fwdad.jvp(f, X, V[1])
    assert_allclose(y_dot, 2 * V[0] * 2 * X * V[1], rtol=1e-15)


def test_dead_values_are_refused():
    kept = []
    keep = eval("lambda x: kept.append(x * 2.0) or x", {"kept": kept})  # no source: not undone
    fwdad.jvp(keep, X, V)
    for use in (lambda d: d * d, lambda d: np.sin(d), lambda d: d + 1.0, lambda d: 2 * d):
        with pytest.raises(fwdad.errors.DeadDualError):
            use(kept[0])


@pytest.mark.parametrize("level", ["multiply", "add"])
def test_two_calls_with_the_same_lanes_stay_apart(level):
    """Basis lanes are one object for all calls: the tags tell them apart."""
    f = getattr(np, level)

    def outer(x):
        return fwdad.jacobian(lambda z: f(z * x, x), X)

    J = fwdad.jacobian(outer, X)
    expected = np.zeros((7, 7, 7))
    k = np.arange(7)
    expected[k, k, k] = 2 * X if level == "multiply" else 1.0
    assert_allclose(J, expected, rtol=1e-15)


@pytest.mark.parametrize(("size", "expected"), [(1, 2), (2000, 6)])
def test_automatic_chunks_see_large_arrays_on_the_way(size, expected):
    """64 directions first, then the other 36: eight at a time beside arrays of 1.6 MB."""
    runs = []
    note = eval("lambda: runs.append(1)", {"runs": runs})  # no source: not undone
    w = np.ones(size)

    def f(x):
        note()
        return np.sum(np.outer(np.sin(x), w), axis=1)

    x = np.linspace(0.0, 1.0, 100)
    J = fwdad.jacobian(f, x, mode="forward")
    assert len(runs) == expected
    assert_allclose(J, np.diag(np.cos(x) * size), rtol=1e-13)

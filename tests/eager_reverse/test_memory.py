"""Loads and stores run backwards: what a view sees forwards, its cotangent sees backwards."""

import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.eager_reverse import gradient
from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.chunk import Chunk
from tests.differences import central_differences
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.7, -1.3, 2.1, 0.4])


def repeated_places(x):
    y = np.ones(3)
    y[[0, 1, 0, 2]] = x * x  # the last of equals wins
    return y * x[:3]


def repeated_under_two_indices(x):
    y = np.zeros((2, 2))
    y[np.array([0, 1, 0]), np.array([1, 1, 1])] = x[:3] ** 2
    return y.ravel() * 3.0


def overlapping_views(x):
    y = np.zeros(6)
    y[1:5] = x * x
    views = np.lib.stride_tricks.sliding_window_view(y, 3)
    return np.sum(views * np.arange(12.0).reshape(4, 3), axis=1)


def broadcast_store(x):
    y = np.zeros((3, 4))
    y[...] = x
    y[1] = x[0]
    y[:, 2:] = x[None, :2] * 2.0
    return y.ravel() ** 2


def leading_axes_dropped(x):
    y = np.zeros(4)
    y[:] = (x * x)[None, None, :]
    return y


def parts_of_complex_memory(x):
    z = np.zeros(4, complex)
    z.real = x
    z.imag[::2] = x[1::2] ** 2
    z[1] *= 1j
    return np.concatenate([z.real * z.imag, abs(z) ** 2])


def accumulated(x):
    y = np.zeros((2, 4))
    y += x
    y[0, 1:] -= x[:-1] * x[1:]
    y += y[::-1]
    y[:, ::2] += 1.5 * y[:, 1::2]
    y -= x[0]
    return y.ravel()


def overwritten_twice(x):
    y = x.copy()
    for i in range(4):
        y[i] = np.sin(y[i - 1])
        v = y[i : i + 1]
        v[:] = y[i] * x[i]
    return y


def single_precision_inside(x):
    y = np.zeros(4, np.float32)
    y[:] = x
    y[0] = x[1] * x[2]
    return y.astype(float) * 2.0


def swapped_buffers(x):
    old, new = x.copy(), np.zeros(4)
    for _ in range(3):
        new[1:-1] = old[1:-1] + 0.1 * (old[2:] - 2 * old[1:-1] + old[:-2])
        new[0], new[-1] = old[-1], old[0]
        old, new = new, old
    return old


def records_copied(x):
    y = np.zeros(4, [("a", float), ("b", float, 2), ("n", int)])
    y["a"], y["n"] = x, [1, 2, 3, 4]
    y["b"][:, 0] = x * x[::-1]
    z = y[[2, 0, 2]]
    y["a"] = 0.0
    return z["a"] * z["b"][:, 0] + z["n"] * x[0]


def constant_arrays_beside(x):
    w = np.arange(1.0, 5.0)
    y = (w * x) * w / w - (x / w) * 2.0 + (w - x) * (w + 3.0 * x)
    w[:] = 0.0
    return y


PROGRAMS = [
    records_copied,
    constant_arrays_beside,
    repeated_places,
    repeated_under_two_indices,
    overlapping_views,
    broadcast_store,
    leading_axes_dropped,
    parts_of_complex_memory,
    accumulated,
    overwritten_twice,
    swapped_buffers,
]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(f):
    want = central_differences(f, X)
    outcome = record(f, X)
    assert_array_equal(outcome.y, f(X.copy()))
    for width in (1, 2, 3, 4, 100):
        assert_allclose(jacobian_of(outcome, X, width), want, rtol=1e-8, atol=1e-9)
    for k, row in enumerate(want):
        (x_bar,) = outcome.pull([np.eye(len(want))[k]])
        assert_allclose(x_bar, row, rtol=1e-8, atol=1e-9)


def test_single_precision_memory():
    outcome = record(single_precision_inside, X)
    want = fwdad.jacobian(single_precision_inside, X)
    assert_allclose(jacobian_of(outcome, X, 4), want, rtol=1e-6)


# -- the cases "In place, in reverse"


def test_a_lost_value_has_no_cotangent():
    def f(x):
        x[0] = 0.0
        return x

    x = X[:3].copy()
    assert_array_equal(jacobian_of(record(f, x), x, 3), [[0, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert_array_equal(x, X[:3])


def test_one_element_doubled():
    def f(x):
        y = x.copy()
        y[1] = 2 * x[1]
        return y

    (x_bar,) = record(f, X[:3]).pull([np.ones(3)])
    assert_array_equal(x_bar, [1.0, 2.0, 1.0])


def test_sum_stored_into_its_own_array():
    def f(x):
        x[1] = np.sum(x)
        return 2 * x

    (x_bar,) = record(f, X[:3].copy()).pull([np.ones(3)])
    assert_array_equal(x_bar, [4.0, 2.0, 4.0])


def test_squares_along_an_array():
    def f(x):
        for i in range(4):
            x[i + 1] = x[i] ** 2
        return x

    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    assert_array_equal(jacobian_of(record(f, x), x, 2)[:, 0], [1, 2, 4, 8, 16])
    assert_array_equal(x, [1.0, 2.0, 3.0, 4.0, 5.0])


def test_the_primal_from_before_the_store():
    def f(x):
        y = np.array([x])
        s = np.sin(y[0])
        y[0] += x
        return s

    assert_allclose(gradient(f, 0.7), np.cos(0.7), rtol=1e-15)


def test_a_matrix_that_is_updated_between_its_products():
    """A transpose reads the matrix as it was at its product."""
    base = np.array([[1.0, 2.0], [0.5, -1.0]])

    def f(x):
        a = base.copy()
        total = 0.0
        for k in range(3):
            total = total + np.sum((a @ x) ** 2)
            a[k % 2, 0] += 1.0
            a[0, 1] *= 0.5
        return total

    x = np.array([0.3, -0.8])
    assert_allclose(gradient(f, x), central_differences(f, x), rtol=1e-9)


def test_a_mask_that_is_changed_after_its_use():
    def f(x):
        mask = np.array([True, False, True, False])
        places = np.array([3, 1])
        y = np.where(mask, x * x, 0.0) + x[places].sum() + np.sum(x[mask])
        mask[:] = False
        places[:] = 0
        return y

    assert_allclose(jacobian_of(record(f, X), X, 4), central_differences(f, X), rtol=1e-9)


def test_reading_an_element_costs_one_element():
    """Four times the elements, four times the time: not sixteen."""

    def read(x):
        total = 0.0
        for i in range(len(x)):
            total = total + x[i] * 0.5
        return total

    def stored(x):
        y = np.zeros(len(x))
        for i in range(1, len(x)):
            y[i] = y[i - 1] * 0.5 + x[i]
        return y[-1]

    for f in (read, stored):
        times = []
        for n in (2000, 8000):
            outcome = record(f, np.ones(n))
            best = np.inf
            for _ in range(5):
                start = time.process_time()
                outcome.pull([1.0])
                best = min(best, time.process_time() - start)
            times.append(best)
        assert times[1] < 10 * times[0]


def test_held_bytes_grow_with_the_stores():
    def squares(x):
        for i in range(len(x)):
            x[i] = x[i] * x[i]
        return np.sum(x)

    small, large = (record(squares, np.ones(n)) for n in (1000, 4000))
    assert 3.6 < large.nbytes / small.nbytes < 4.4
    assert large.operations < 4.1 * small.operations


def test_a_store_where_elements_share_memory_is_refused():
    def f(x):
        y = np.lib.stride_tricks.as_strided(np.zeros(4), (3, 2), (8, 8))
        y[:] = x[:2]
        return y

    with pytest.raises(UnsupportedTypeError, match="share memory"):
        record(f, X)


def test_chunks_of_cotangents_of_a_tuple():
    def f(x):
        y = np.zeros(3)
        y[:2] = x[:2] * x[2]
        return y, np.sum(x) * x[0]

    outcome = record(f, X)
    first, second = fwdad.jacobian(f, X)
    bars = np.random.default_rng(0).normal(size=(3, 4))
    (x_bar,) = outcome.pull([Chunk(bars[:, :3].copy()), Chunk(bars[:, 3].copy())])
    assert_allclose(x_bar.lanes, bars[:, :3] @ first + np.outer(bars[:, 3], second), rtol=1e-13)


def test_lists_that_f_has_changed_before_it_hands_them_over():
    def f(x):
        axes = [0, 1, 2]
        axes.remove(2)
        axes.insert(0, 2)
        places = [5, 6]
        places[0] = 0
        places.append(7)
        a = np.transpose(x.reshape(2, 2, 2), axes)
        return np.sum(np.arange(8.0).reshape(2, 2, 2) * a**2) + np.take(x, places)[0] ** 3

    x = np.arange(8.0) + 0.5
    wanted = fwdad.jacobian(f, x, mode="forward")
    assert_allclose(jacobian_of(record(f, x), x, 1), wanted, rtol=1e-13)

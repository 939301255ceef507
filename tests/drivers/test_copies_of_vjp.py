"""The copies that ``vjp`` makes: those that ``memory_report`` lists, and no other."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad

N = 40_000
TABLE = np.linspace(1.0, 2.0, N)


def written(x, a):
    x[0] = x[0] ** 2
    return x * a


def read_as_value(x, a):
    return np.exp(x)


def value_is_changed(x, a):
    y = x * 2.0
    s = np.sum(y * y)
    y[5] = np.sin(y[5]) * s
    return y


def value_is_an_argument(x, a):
    s = np.sum(x**3)
    x[3] = s * x[4]
    return x


def captured(x, a):
    return x * x * TABLE * a


def only_forward(x, a):
    return 3.0 * x + np.sin(a) * 0.0 + np.sum(TABLE)


def handed_back(x, a):
    return x


def view(x, a):
    y = np.zeros((2, N))
    y[0] = x
    y[1] = x * a
    return y[1]


CASES = [  # copies of arguments that are written, further copies, all memory of y and its pullback
    (written, 0, 1, 2),  # a; what is written into x is read for the value alone
    (read_as_value, 0, 1, 2),  # y
    (value_is_changed, 0, 1, 2),  # y
    (value_is_an_argument, 1, 1, 2),  # y
    (captured, 0, 3, 4),  # x, a and the table
    (only_forward, 0, 0, 1),
    (handed_back, 0, 1, 1),  # y
    (view, 0, 2, 2),  # a, y
]


@pytest.mark.parametrize(("f", "copies", "held", "memory"), CASES)
def test_copies(f, copies, held, memory):
    x, a = np.linspace(0.1, 1.0, N), np.linspace(1.0, 2.0, N)
    report = fwdad.memory_report(f, x, a)
    assert (report.copies, report.of("held")) == (copies * x.nbytes, held * x.nbytes)
    fwdad.vjp(f, x, args=(a,))
    tracemalloc.start()
    try:
        y, pullback = fwdad.vjp(f, x, args=(a,))
        # what NumPy holds: a dictionary that happens to grow is not an array's copy
        arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
        traces = tracemalloc.take_snapshot().filter_traces([arrays]).traces
        used = sum(trace.size for trace in traces)
    finally:
        tracemalloc.stop()
    assert abs(used - memory * x.nbytes) < 0.01 * x.nbytes
    assert not np.shares_memory(y, x)
    first = pullback(np.ones(N))
    x[:] = a[:] = y[:] = 3.0
    TABLE[:] = 5.0
    try:
        assert_array_equal(pullback(np.ones(N)), first)
    finally:
        TABLE[:] = np.linspace(1.0, 2.0, N)

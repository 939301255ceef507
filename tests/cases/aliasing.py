"""Programs that write through views, swap what they hold, and let operands overlap."""

import numpy as np

from tests.cases.check import programs
from tests.cases.mutation import OBLONG, SQUARE, X

ALIASING, mutation = programs()


@mutation(OBLONG)
def store_through_views(x):
    base = np.zeros((3, 4))
    base[1:, 1:][...] = x
    row = base[1]
    row[0] = x[0, 0] * x[1, 1]
    base.T[2] *= 3.0
    flat = base.reshape(-1)
    flat[[0, 11]] = x[0, 1]
    flat[4:6] += x[1, :2]
    base[::-1, ::-1][0, 3] = x[1, 2]
    return base


@mutation(X)
def read_through_views(x):
    base = np.zeros(6)
    square = base.reshape(2, 3)
    base[:5] = x
    columns = square.T
    base[5] = x[0] * x[1]
    tail = columns[1:]
    base[1] *= x[2]
    return np.concatenate((square[1], tail[:, 0], columns[0]))


@mutation(X)
def view_before_the_first_store(x):
    base = np.zeros(8)
    even, last, grid = base[::2], base[-3:], base.reshape(2, 4, order="F")
    base[1:6] = x
    even += 1.0
    last[1] = x[4]
    return even.sum() * last + grid[0, :3]


@mutation(OBLONG)
def fortran_order(x):
    y = np.zeros((2, 3), order="F")
    y[:, 1:] = x[:, :2]
    seen = y.ravel(order="K")  # a view of Fortran memory
    seen[0] = x[0, 2]
    copied = y.ravel()  # a copy
    copied[1] = 100.0
    return y * copied.reshape(2, 3)


@mutation(X)
def strided_views(x):
    y = np.zeros(7)
    views = np.lib.stride_tricks.sliding_window_view(y, 3)
    y[1:6] = x**2
    return views.sum(axis=1)


@mutation(X)
def broadcast_views(x):
    y = np.zeros(5)
    wide = np.broadcast_to(y, (2, 5))
    y[:] = x
    y[2] = x[0]
    return wide * np.array([[1.0], [2.0]])


@mutation(SQUARE)
def diagonal_by_einsum(x):
    y = x * 1.0
    np.einsum("ii->i", y)[:] = x[0]  # a view that can be written
    return y


@mutation(X)
def swap_views(x):
    buffer = np.zeros((2, 5))
    a, b = buffer[0], buffer[1]
    a[:] = x
    b[:] = x**2
    a, b = b, a
    a[0] = b[1]
    b *= a
    return buffer


@mutation(SQUARE)
def swap_rows(x):
    y = x * 1.0
    y[[0, 2]] = y[[2, 0]]
    y[:, [0, 1]] = y[:, [1, 0]]
    y[0], y[1] = y[1].copy(), y[0].copy()
    return y * x


@mutation(SQUARE)
def swap_rows_wrongly(x):
    y = x * 1.0
    y[0], y[1] = y[1], y[0]  # both are views: the first row is lost, as in NumPy
    return y


@mutation(X)
def swap_elements(x):
    y = x * 1.0
    y[0], y[4] = y[4], y[0]
    y[1], y[2], y[3] = y[3], y[1], y[2]
    return y * x


@mutation(X)
def two_buffers_in_a_time_loop(x):
    now, after = np.empty_like(x), np.empty_like(x)
    now[:] = x
    for step in range(5):
        after[1:-1] = now[1:-1] + 0.1 * (now[2:] - 2 * now[1:-1] + now[:-2])
        after[0], after[-1] = now[0], 0.5 * now[-1] * (1 + step)
        now, after = after, now
    return now


@mutation(X)
def three_buffers_in_a_list(x):
    buffers = [np.zeros(5) for _ in range(3)]
    buffers[0][:] = x
    buffers[1][:] = x
    for _ in range(4):
        old, now, new = buffers
        new[1:-1] = (
            2 * now[1:-1] - old[1:-1] + 0.2 * (now[2:] - 2 * now[1:-1] + now[:-2]) * now[1:-1]
        )
        buffers = [now, new, old]
    return np.stack(buffers)


@mutation(X)
def overlapping_sum(x):
    y = x * 1.0
    y += y[::-1]
    return y


@mutation(X)
def overlapping_shifts(x):
    y = x * 1.0
    y[1:] = y[:-1]
    y[:-1] += y[1:] * x[1:]
    y[::2] = y[2::-1]
    y[...] = y[::-1]
    return y


@mutation(SQUARE)
def transposed_onto_itself(x):
    y = x * 1.0
    y += y.T
    y[...] = y.T * x
    return y

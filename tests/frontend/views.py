"""Programs that write into arrays through views of them, or under several names."""

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7


@program((V,), (W,))
def through_a_slice(a):
    y = a.copy()
    v = y[1:]
    v[0] = 100.0
    v *= 2
    return y


@program((V,), (W,))
def through_a_reversed_view(a):
    y = a.copy()
    y[::-1][0] = 7.0
    return y


@program((M,), (M[:, :2],))
def through_a_transpose(a):
    y = a.copy()
    y.T[1] = 5.0
    y.T[0, 1] += 1.0
    return y


@program((M,), (np.ones((2, 2)),))
def through_a_reshape(a):
    y = a.copy()
    v = y.reshape(-1)
    v[1] = 99.0
    y.ravel()[2] = -99.0
    return y


@program((M,), (np.ones((2, 2)),))
def through_flatten_is_a_copy(a):
    y = a.copy()
    y.flatten()[1] = 99.0
    return y


@program((V,), (W,))
def a_view_made_before(a):
    y = np.zeros(len(a))
    v = y[1:3]
    y[1] = a[0]
    v[1] = a[1]
    return v * 2, y


@program((V,), (W,))
def a_view_of_a_view(a):
    y = a.copy()
    v = y[1:][::-1]
    v[0] = 50.0
    w = v[:2]
    w += 1
    return y


@program((np.asfortranarray(M),), (np.asfortranarray(M + 1),))
def fortran_order(a):
    b = a.copy()
    b[0] = 5
    return b, a.T @ a, a.ravel(), a.reshape(-1)


@program((V[::2],), (W[::-1],))
def strided(a):
    a[0] = 5.0
    return a * 2, a.sum()


@program((V, 2.0), (W, 1.0))
def same_array_under_two_names(a, x):
    b = a
    b[0] = x
    c = b[:]
    c[1] = x
    return a


@program((V, 1), (W, 3), (V, 0))
def swapped_views(a, n):
    y = a.copy()
    u, v = y[:2], y[2:4]
    for _ in range(n):
        u, v = v, u
        u += 1.0
    return y, u


@program((V,), (W,))
def row_of_a_list_of_arrays(a):
    rows = [a.copy(), a * 2]
    rows[0][1] = 5.0
    rows[1] += 1
    rows[0] *= 3
    return rows


@program((M, 1), (M, 2), (M, -1), (M, 3))
def row_by_an_argument(a, i):
    r = a[i]
    r += 1
    a[i, 0] = 100.0
    return r


@program((V, 2.5), (W, -1.0))
def stack_of_views(a, x):
    y = np.zeros((2, len(a)))
    for row in y:
        row[:] = a * x
        x += 1
    return y


@program((V, 1, 3), (W, 0, 6), (W, 2, 2))
def slice_by_arguments(a, i, j):
    b = a[i:j]
    b[...] = b * 2 + 1
    return b.sum(), len(b)


@program((V,), (W,))
def expand_and_squeeze(a):
    y = a.copy()
    y[None, :][0, 1] = 4.0
    y[:, np.newaxis][0] = 3.0
    return y, np.squeeze(y[None]), y[None].shape


@program((V,), (W,))
def overlapping_update(a):
    y = a.copy()
    y[1:] += y[:-1]
    y[:-1] = y[1:]
    return y


@program((V,), (W,))
def value_read_before_a_store_is_kept(a):
    x = a[0]
    b = a * 1
    a[0] = 99.0
    s = x + b[0]
    v = a[1:]
    a[1] = -1.0
    return s, v[0]


@program((M,), (M[:2],))
def swaps_rows(a):
    a[[0, 1]] = a[[1, 0]]
    a[0], a[1] = a[1].copy(), a[0].copy()
    return a


@program((V,), (W,))
def swaps_elements(a):
    a[0], a[1] = a[1], a[0]
    return a


@program(
    (np.array([[1.0, 3.0], [2.0, 0.5], [4.0, 1.0]]), 2), (np.array([[5.0, 3.0], [2.0, 7.0]]), 1)
)
def rows_change_places(a, n):
    a = a.copy()
    for k in range(n):
        p = k + int(np.argmax(a[k:, k]))
        a[[k, p]] = a[[p, k]]
        a[k, [k, 0]] += a[p, [0, k]]
    return a


@program((V,), (W,), (2 * V,))
def what_answers_the_array_itself(a):
    y, m = a * 1.0, np.outer(a, a)
    y.conj()[0] = 7.0
    y.conjugate()[1] = 8.0
    np.diff(y, n=0)[2] = 9.0
    np.linalg.matrix_power(m, 1)[0] = 3.0
    y.astype(y.dtype, copy=False)[-1] = 5.0
    np.asarray(y, copy=True)[0] = 6.0
    return y, m

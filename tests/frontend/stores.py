"""Programs that write into arrays."""

import operator

import numpy as np

from tests.frontend.agreement import Programs

PROGRAMS = program = Programs()
V = np.array([0.5, -1.25, 2.0, 3.5])
W = np.array([2.0, 0.1, -4.0, 1.0, 7.0, 0.25])
M = np.arange(12.0).reshape(3, 4) / 7


@program((V, 2.0), (W, -1.0))
def element(a, x):
    y = np.zeros(len(a))
    y[1] = x
    y[-1] = a[0]
    return y


@program((V,), (W,))
def slices(a):
    y = a.copy()
    y[1:-1] += 2
    y[::2] *= a[::2]
    y[:2] = 9
    return y


@program((V,), (W,), (-W,))
def mask(a):
    y = a.copy()
    y[a > 0] = 0
    y[y < -1] += 5
    return y


@program((V,), (W,))
def fancy_with_repeats(a):
    y = a.copy()
    y[[0, 1, 1, 0]] -= 2
    y[np.array([2, 2])] = [5.0, 6.0]
    return y


@program((V, np.array([0, 1, 1])), (W, np.array([5, 0, 5, 5])))
def fancy_by_an_argument(a, i):
    y = np.zeros_like(a)
    y[i] += a[i]
    return y, a[i]


@program((V, np.array([0, 1, 1])), (W, np.array([5, 0, 5, 5])), (V, np.array([0, 9])))
def add_at(a, i):
    y = np.zeros_like(a)
    np.add.at(y, i, 1.5)
    return y


@program((V,), (W,))
def in_place_operators(a):
    a *= 2
    a += a[::-1]
    a -= 1
    a /= 4
    a **= 2
    return a


@program((V,), (W,))
def out_argument(a):
    y = np.empty_like(a)
    np.exp(a, out=y)
    np.add(y, a, out=y)
    np.multiply(y, 2, y)
    np.clip(y, -1, 2, y)
    np.cumsum(y, 0, None, y)
    return y


@program((V,), (W,), (-V,))
def out_argument_under_a_mask(a):
    y = np.zeros_like(a)
    np.sqrt(a, out=y, where=a > 0)
    whole, part = np.empty_like(a), np.empty_like(a)
    np.modf(a, part, whole)
    return y, whole, part


@program((V,), (W,))
def fill_and_copyto(a):
    y = np.ones_like(a)
    y.fill(3.0)
    np.copyto(y, a, where=a > 0)
    return y


@program((M,), (M[:, :3],))
def columns_and_rows(a):
    y = np.zeros(a.shape)
    y[:, 0] = a[:, 1]
    y[1] = a[0]
    y[1:, -1] += a[1:, 0]
    y[..., 1] = 4
    return y


@program((M,), (M[:2],))
def two_fancy_indices(a):
    y = a.copy()
    y[[0, 1], [1, 2]] = -5
    y[:, [0, 0]] += 1
    return y


@program((V, 2.0), (W, 3.0))
def writes_the_argument(a, x):
    a[0] = x
    a[1:] *= x


@program((V, 2.0), (W, 3.0))
def a_callee_writes_the_argument(a, x):
    def scale(b):
        b *= x

    scale(a[1:])
    return a.sum()


@program((V,), (W,))
def sorts_in_place(a):
    y = a.copy()
    y.sort()
    return y


@program((V,), (W,))
def puts(a):
    y = a.copy()
    np.put(y, [0, 1], [7.0, 8.0])
    np.putmask(y, y > 7, 0.0)
    np.place(y, y < 0, [1.5, 2.5])
    return y


@program((V, 5.0), (W, 5.0), (V, 1.0))
def places_of_nothing(a, limit):
    y, z = a.copy(), np.array(a[2])
    np.place(y, y > limit, np.extract(y > limit, a))
    np.place(z, z > limit, np.extract(z > limit, a))
    np.place(y, y > 10 * limit, a[a > 10 * limit])
    return y, z


@program((V, 0.1), (W, 50.0))
def places_of_too_little(a, limit):
    y = np.abs(a)
    np.place(y, y > 0.5, a[a > limit])
    return y


@program((V,), (W,))
def lists_become_arrays(a):
    y = np.array([a[0], a[1] * 2, 1])
    z = np.array([[a[0], 0], [1, a[1]]])
    y[2] = 5
    return y, z, np.stack([y, y * 2])


@program((V, 3), (W, 5), (V, 0))
def cumulative_recurrence(a, n):
    y = a.copy()
    for i in range(1, n):
        y[i] = y[i - 1] ** 2 - a[i]
    return y


@program((V, 3), (W, 5), (V, 0), (V, 9))
def store_index_error(a, n):
    y = a.copy()
    y[n] = 1.0
    return y


@program((V, W), (V, V))
def store_of_a_wrong_length(a, b):
    y = a.copy()
    y[:] = b
    return y


@program((V, 2), (W, 4), (V, 0))
def zeros_of_a_given_length(a, n):
    y = np.zeros(n)
    z = np.ones((n, 2))
    for i in range(n):
        y[i] = a[i]
        z[i, 1] = y[i]
    return y, z


@program((V, 3), (W, 2))
def linspace_and_arange(a, n):
    return (
        np.linspace(0, 1, n + 2),
        np.arange(n) * a[0],
        np.arange(0.0, 1.0, 0.25),
        np.full(n, a[1]),
    )


@program((np.array(2.0),), (np.array(-1.0),))
def zero_dimensional(a):
    b = a * 2
    c = a.copy()
    c[...] = 5.0
    c += 1
    return b, c, a[()], a.item(), float(a)


@program((np.arange(4),), (np.arange(6),))
def integer_arrays(a):
    y = a.copy()
    y[0] = 7
    y += 2
    y[1] = 3.9
    return y, a / 2, a // 2, a.sum(), a.mean()


@program((np.arange(4),), (np.arange(6),))
def float_added_to_an_integer_array(a):
    a += 0.5
    return a


@program((V.astype(np.float32), 2.0), (W.astype(np.float32), 0.1))
def single_precision(a, x):
    y = a * x
    y[0] = 1 / 3
    return y, a.sum(), a[0] * x, a[0] + np.float64(1), a.astype(float)


@program((V * 1j, 2.0), (W + 1j, -1.0))
def complex_arrays(a, x):
    y = a * x
    y[0] = 1 + 2j
    y.real[1] = 9.0
    y.imag += 1
    return y, abs(a), a.conj(), a.real, np.angle(a)


@program((V > 0,), (W < 0,))
def boolean_arrays(m):
    y = ~m
    y[0] = True
    return y, m.sum(), m.any(), m.all(), m & y, np.where(m, 1.0, 2.0)


@program((M,), (M[:, :3],))
def diagonal_is_filled(a):
    y = a.copy()
    np.fill_diagonal(y, 8.0)
    return y, np.diag(y[:2, :2])


@program((V,), (W,))
def diagonal_of_longer_and_shorter_values(a):
    y, tall = np.outer(a, a), np.zeros((len(a), 2))
    np.fill_diagonal(y[:2], a)
    np.fill_diagonal(y[:, 1:], [a[0], 7.0])
    np.fill_diagonal(tall, np.outer(a, a)[1:])
    return y, tall


@program((V,), (3 * V,))
def masks_of_another_shape(a):
    y = a.reshape(2, 2) * 2
    np.place(y, a > 1, a * a)
    np.place(y, a < 0, a[1])
    np.putmask(y, [True, False, False, True], a.reshape(4, 1))
    np.putmask(y, a > 2, 0.5)
    return y


@program((V,), (W,))
def masks_of_another_size(a):
    y = np.outer(a, a)
    np.putmask(y, a > 0, 0.5)
    return y


@program((V,), (W,))
def product_into_out(a):
    y = np.zeros(len(a))
    np.outer(a, a).dot(a, out=y)
    z = a + 1j
    w = z.conjugate(z)
    w[0] = 5.0
    return y, z


@program((V, 2), (W, 3), (V, 0))
def augmented_element_in_a_loop(a, n):
    for i in range(n):
        a[i] += a[i + 1]
        a[i] *= 2
    return a


@program((V, 3), (W, 1), (V, 0))
def loop_writes_a_captured_name(a, n):
    total = np.zeros(2)

    def step(k):
        total[k % 2] += a[k]

    for k in range(n):
        step(k)
    return total


@program((V, np.array([0, 1, 1])), (W, np.array([5, 0, 5, 5])), (V, np.array([0, 9])))
def at_of_other_functions(a, i):
    y = a * 1.0
    np.maximum.at(y, i, 1.5)
    np.negative.at(y, i)
    np.power.at(y, i, 2.0)
    return y


@program((V,), (W,))
def operators_as_functions(a):
    y = a * 1.0
    operator.setitem(y, 0, a[1])
    z = operator.iadd(y, 2.0)
    operator.imul(z, a)
    held = [1.0, 2.0]
    operator.setitem(held, 1, a[0])
    operator.delitem(held, 0)
    return y, operator.iadd(held[0], 1.0)

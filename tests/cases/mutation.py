"""Programs that write: every form of assignment in place, of views and of overlap."""

import numpy as np

from tests.cases.check import programs

MUTATIONS, mutation = programs()


X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


SQUARE = np.array([[0.7, -1.3, 2.1], [0.4, 1.6, -0.9], [1.1, 0.3, -2.2]])  # 3 = a chunk = a length


OBLONG = np.array([[0.7, -1.3, 2.1], [0.4, 1.6, -0.9]])  # 2 and 3 are lengths and chunks


# -- stores into an array made inside


@mutation(X)
def store_elements(x):
    y = np.zeros(5)
    for i in range(5):
        y[i] = x[i] * x[0]
    return y


@mutation(X)
def store_elements_of_empty(x):
    y = np.empty_like(x)
    for i, value in enumerate(x):
        y[-i - 1] = np.sin(value)
    return y


@mutation(X)
def add_to_slice(x):
    y = np.zeros(5)
    y[1:-1] += x[2:] * x[:-2]
    y[1:-1] += x[1:-1]
    return y


@mutation(X)
def store_under_mask(x):
    y = np.ones(5)
    y[x > 0.5] = np.sin(x[x > 0.5])
    y[np.array([True, False, True, False, False])] = x[3] * x[1]
    return y


@mutation(X)
def scale_under_mask(x):
    y = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    y[x < 1] *= x[x < 1]
    y[x > 1] **= 2
    return y * x[0]


@mutation(X)
def subtract_at_repeated_indices(x):
    y = np.arange(5.0)
    y[[0, 2, 2, 4, 0]] -= x**2  # the last one wins
    return y


@mutation(X)
def store_at_repeated_indices(x):
    y = x.copy()
    y[np.array([1, 3, 1])] = x[2:] * x[:3]
    return y


@mutation(X)
def add_at(x):
    y = np.zeros(3)
    np.add.at(y, [0, 2, 2, 1, 2], x**2)
    return y


@mutation(X)
def ufuncs_at(x):
    y = x[:4] + 3.0
    np.subtract.at(y, [1, 1], x[:2])
    np.multiply.at(y, [0, 2, 2], x[1:4])
    np.divide.at(y, [3, 0], x[3:] + 4.0)
    np.negative.at(y, [1])
    return y


@mutation(X)
def scale_in_place(x):
    y = np.ones(5)
    y *= 2
    y *= x
    y *= 2
    y /= x[::-1]
    y -= x[0]
    y **= 2
    return y


@mutation(X)
def power_in_place(x):
    y = x + 2.0
    y **= x
    return y


@mutation(X)
def remainder_in_place(x):
    y = 3.0 * x
    y %= 1.7
    return y


@mutation(SQUARE, products=True)
def matmul_in_place(x):
    y = x.copy()
    y @= x
    return y


@mutation(X)
def into_out(x):
    y = np.empty(5)
    np.exp(x, out=y)
    np.multiply(y, x, out=y)
    np.add(y[:-1], x[1:], out=y[1:])  # reads where it writes
    return y


@mutation(X)
def into_positional_out(x):
    y, z = np.empty(5), np.empty(5)
    np.sin(x, y)
    np.add(x, y, z)
    np.modf(z, y, z)
    return y + z


@mutation(X)
def into_out_and_onwards(x):
    y = np.empty(5)
    z = np.cos(x, out=y)
    y[0] = x[1]
    return z * 2.0  # z is y


@mutation(SQUARE, products=True)
def matrix_product_into_out(x):
    y = np.empty((3, 3))
    np.dot(x, x, out=y)
    z = np.empty((3, 3))
    np.matmul(y, x, out=z)
    return z


@mutation(X, products=True)
def reductions_into_out(x):
    y = np.zeros((2, 5))
    np.cumsum(x, out=y[0])
    total = np.zeros(())
    np.sum(x * x, out=total)
    np.stack([x, x * x]).max(axis=0, out=y[1])
    return y * total


@mutation(X)
def where_of_a_ufunc(x):
    y = x * 10.0
    np.sqrt(x, out=y, where=x > 0)
    return y


@mutation(X)
def fill(x):
    y = np.empty((2, 3))
    y.fill(x[0] * x[1])
    y[0].fill(x[2])
    y[:, 1].fill(7.0)
    return y


@mutation(X)
def copyto_where(x):
    y = np.linspace(0.0, 1.0, 5)
    np.copyto(y, x, where=np.array([True, False, True, True, False]))
    np.copyto(y[::2], x[:3] * y[:3])
    np.copyto(y[1:2], x[4])
    return y


@mutation(X[:3])
def store_columns(x):
    y = np.zeros((2, 3))
    for k in range(3):
        y[:, k] = x[k]
    y[1] *= x
    return y


@mutation(OBLONG)
def store_blocks(x):
    y = np.zeros((4, 3))
    y[::2] = x
    y[1:4:2, ::-1] = x**2
    y[..., 0] += x[0, 1]
    y[np.newaxis, 3] -= x[0]
    return y


@mutation(X)
def store_through_flat(x):
    y = np.zeros((2, 3))
    for i in range(5):
        y.flat[i] = x[i] ** 2
    y.flat[5] = y.flat[4] * x[0]
    y.flat[::2] = x[:3] * y.flat[1::2]
    y.flat[[1, 3]] = x[0]
    return y


@mutation(X)
def assign_flat(x):
    y = np.zeros((5, 2))
    y.flat = x
    y.T.flat[:5] = x * x
    return y


@mutation(X)
def put_place_putmask(x):
    y, z, w = np.zeros(6), np.arange(6.0), np.arange(6.0)
    np.put(y, [0, 5, 2], x[:3])
    np.place(z, z > 2, x[:2])  # cycles through the values
    np.putmask(w, w < 4, np.concatenate((x, x[:1])))
    return np.stack((y, z, w))


@mutation(X)
def put_method_and_modes(x):
    y = np.ones((2, 3))
    y.put([-1, 0], x[:2])
    np.put(y, [7], x[2], mode="wrap")
    np.put(y, [99], x[3], mode="clip")
    return y


@mutation(OBLONG)
def put_along_axis(x):
    y = np.ones((2, 4))
    np.put_along_axis(y, np.array([[0, 3, 1], [2, 2, 0]]), x**2, axis=1)
    return y


@mutation(SQUARE)
def fill_diagonal(x):
    y = x.copy()
    np.fill_diagonal(y, x[0] * 2.0)
    y[np.diag_indices(3)] += x[1]
    return y


@mutation(X)
def sort_in_place(x):
    y = x**2
    y.sort()
    return y * np.arange(5.0)


@mutation(OBLONG)
def sort_a_view_along_an_axis(x):
    y = x * 2.0
    y.sort(axis=0)
    y[:, ::-1].sort()
    return y


@mutation(X)
def partition_in_place(x):
    y = x * 1.0
    y.partition(2)
    return np.array([y[2], y[:2].sum(), y[3:].sum()])


@mutation(X)
def store_zero_dimensional(x):
    y = np.zeros(())
    y[()] = x[0]
    y *= x[1]
    y[...] += x[2]
    return y


@mutation(X)
def store_with_ix(x):
    y = np.zeros((4, 4))
    y[np.ix_([0, 2], [1, 3])] = np.outer(x[:2], x[2:4])
    y[[3, 3], [0, 2]] += x[4]
    y[:, [0, 1]] *= x[0]
    return y


@mutation(X)
def store_with_mixed_index(x):
    y = np.ones((2, 3, 5))
    y[:, [0, 2], 1] = x[0]
    y[0, :, [1, 4]] = x[:3]  # the fancy axes move to the front
    y[1, np.array([[0], [2]]), 2:4] *= x[3]
    return y


@mutation(X)
def overwrite_by_constant(x):
    y = x * 1.0
    y[0] = 0.0
    y[1:3] = 1.0
    return y * x


@mutation(X)
def old_value_of_an_element(x):
    y = x * 1.0
    kept = y[0]  # a number, not a view
    y[0] = x[1]
    return kept * y[0]


@mutation(X)
def step_recurrence(x):
    y = x * 1.0
    for i in range(1, 5):
        y[i] = y[i - 1] * x[i] + np.sin(y[i])
    return y


# -- the argument itself


@mutation(X)
def argument_in_place(x):
    x *= 2.0
    x[1:] += x[:-1]
    x[0] = np.exp(x[0])
    return x


@mutation(X)
def argument_through_a_view(x):
    tail = x[2:]
    tail *= x[0]
    x.reshape(5, 1)[0, 0] = 3.0
    return x**2


def update(state, rate, *, scratch):
    scratch[...] = rate * state**2
    state += scratch
    state[0] -= rate


@mutation(X)
def updated_by_a_callee(x):
    state, scratch = x[1:] * 1.0, np.empty(4)
    for _ in range(3):
        update(state, x[0] * 0.1, scratch=scratch)
    update(x[:2], 0.5, scratch=scratch[:2])
    return np.concatenate((state, scratch, x))


@mutation(X)
def sliced_by_a_callee(x):
    def relax(block, factor=0.5):
        block -= factor * block**2
        return block

    y = x * 1.0
    relax(y[::2])
    relaxed = relax(y[1:3], factor=x[0])
    relaxed[0] = x[4]
    return y


@mutation(0.7)
def float_into_buffer(x):
    y = np.zeros(3)
    y[0] = x
    y[1:] = y[0] * x
    y[2] += np.sin(x)
    return y


@mutation(1.2)
def scratch_of_one_element(x):
    tmp = np.zeros(1)
    tmp[0] = 1
    for _ in range(5):
        tmp[0] *= x
    return tmp[0]


# -- containers


@mutation(X)
def lists_in_place(x):
    values = [0.0] * 5
    for i in range(5):
        values[i] = x[i] ** 2
    values[1:3] = [x[0], x[0] * x[1], x[2]]
    values.append(values.pop(0) * 2.0)
    values.insert(1, x[3])
    values += [1.0]
    values.sort()
    values.reverse()
    del values[0]
    values[0] *= x[4]
    return np.array(values)


@mutation(X)
def dicts_in_place(x):
    table = {"a": x[0]}
    table["b"] = table["a"] * x[1]
    table.setdefault("c", x[2])
    table.update(d=x[3] ** 2, a=x[4])
    table["a"] += table.pop("d")
    table |= {"e": x[1]}
    return np.array([table[k] for k in sorted(table)])


@mutation(X)
def aliased_names(x):
    y = np.zeros(5)
    z = w = y
    z[:3] = x[:3]
    w += x
    z = z + 1.0  # a new array
    z[0] = 0.0
    return y * z


@mutation(X)
def array_of_arrays(x):
    rows = np.empty(2, dtype=object)
    rows[0] = x[:3] * 2.0
    rows[1] = x[3:]
    rows[0][1] = x[4]
    return np.concatenate(list(rows))


@mutation(X)
def complex_buffer(x):
    z = np.zeros(5, dtype=complex)
    z.real = x
    z.imag[1:4] = x[1:4] ** 2
    z[0] += 2j * x[0]
    z *= 1 + 1j
    z.real[2] = x[0]
    return np.concatenate((z.real, z.imag, np.abs(z)))


@mutation(X)
def structured_fields(x):
    state = np.zeros(2, dtype=[("position", float, 2), ("mass", float)])
    state["position"][0] = x[:2]
    state["mass"] = x[2:4]
    state["position"][1] = x[3:]
    return state["position"] * state["mass"][:, np.newaxis]

"""Stores: lists of arrays, overlaps, rows exchanged, tangents overwritten by constants."""

import numpy as np
import pytest

import fwdad
from tests.cases.check import check_jacobian, programs, with_widths

STORES, stores = programs()

X = np.array([0.7, 1.3, 0.4])
OBLONG = np.array([[0.7, 1.3, 0.4], [0.2, -0.5, 0.9]])


@stores(X)
def list_of_written_arrays(x):
    a, y = np.zeros(3), np.zeros((2, 3))
    a[:] = x
    y[:] = [a, a * 2]
    z = np.zeros((2, 3))
    z[:] = (a, a)
    return y + z


@stores(X)
def array_of_written_arrays(x):
    a = np.zeros(3)
    a[:] = x
    return np.array([[a, a], [a[::-1], x]]) * np.asarray([a, a])


@stores(X)
def one_element_by_two_indices(x):
    return np.array([x[0] + x[-3], 2 * x[1] * x[-2], x[2] - x[-1], x[np.int64(2)] + x[2]])


@stores(np.linspace(0.1, 1.0, 12))
def periodic_stencil(x):
    return np.array([x[i - 1] - 2 * x[i] + x[(i + 1) % 12] * x[-12] for i in range(12)])


@stores(X)
def exchanged_rows(x):
    y = np.zeros((2, 3))
    y[0], y[1] = x, x**2
    y[0], y[1] = y[1], y[0]  # both rows are the old y[1]: they are views
    z = np.stack([x, x**2])
    z[[0, 1]] = z[[1, 0]]
    x[0], x[1] = x[1], x[0]
    return y + z + x


@stores(OBLONG)
def backwards_and_transposed(x):
    y = np.zeros((2, 3))
    y[:, ::-1] = x * 2
    x[:, ::-1] = y
    x[::-1] *= x
    x.T[...] = (y * x).T
    return x + y


@stores(OBLONG)
def fancy_axes_beside_slices(x):
    y = np.zeros((2, 3, 2))
    y[:, [0, 2], 1] = x[:, :2]
    y[[0, 1], :, [1, 0]] += x
    y[..., 0][x > 0] = 1.5
    y[np.array([True, False])] *= x[0, 0]
    y[1, [True, False, True]] = x.T[:2]
    return y


@stores(OBLONG)
def new_axes(x):
    y = np.zeros((2, 3))
    y[:, None, :] = x[:, None, :]
    y[None, 0, ::-1] = x[1]
    y[..., -1:] *= x[:, :1]
    y[:, :, None][0] = x[0][:, None]
    return y


@stores(X)
def constants_overwrite_tangents(x):
    y, z, w = x * 1, x * 1, np.zeros(3)
    y[:] = 1.0
    y *= x
    y[1] = 0.0
    z.fill(2)
    z[0] = 3.0
    w[:] = x
    np.copyto(w, 5.0)
    return y + z + w


@stores(X)
def overlapping_updates(x):
    y = np.zeros(3)
    y[:] = x
    y += y[::-1]
    y[1:] += y[:-1]
    y[:-1] *= y[1:]
    x += x[::-1]
    x[1:] -= x[:-1]
    return x * y


@stores(X)
def stops_half_way(x):
    y = np.zeros(3)
    try:
        for i in range(5):
            y[i] = x[i] * 2
    except IndexError:
        y[0] += x[2]
    return y + x


@stores(X)
def objects_in_an_array(x):
    y = np.empty(3, object)
    y[0], y[1], y[2] = x[0], x[1] * 2, 3.0
    z = y * y
    return np.array([y.sum(), np.dot(y, z), z[1], np.sum(z[:2])], dtype=float)


@stores(X)
def complex_halves(x):
    z = np.zeros(3, complex)
    z[:] = np.exp(1j * x) * (x[0] + 1j * x[1])
    z[0] = z[1].conjugate() * abs(z[2])
    z.real *= 2
    z.imag[1] = x[2]
    return np.concatenate([z.real, z.imag, np.angle(z)])


@stores(X)
def nothing_stored(x):
    y = np.ones(3)
    y[:0] = x[:0]
    y[[]] = x[:0]
    y[np.zeros(3, bool)] = x[0]
    return y * x


@pytest.mark.parametrize(("program", "chunk"), with_widths(STORES))
def test_store(program, chunk):
    check_jacobian(program, chunk)


def test_integer_array_is_refused():
    def f(x):
        y = np.zeros(3, int)
        y[0] = x[0]
        return y

    with pytest.raises(fwdad.errors.DualLeakError, match="int64"):
        fwdad.jacobian(f, X)


def test_index_out_of_bounds_is_numpys_own_error():
    def f(x):
        y = np.zeros(3)
        y[3] = x[0]
        return y

    with pytest.raises(IndexError):
        fwdad.jacobian(f, X)
    with pytest.raises(IndexError):
        fwdad.jacobian(lambda x: x[3], X)
    with pytest.raises(IndexError):
        fwdad.jacobian(lambda x: x[-4], X)

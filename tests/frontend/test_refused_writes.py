"""Writes that NumPy refuses: an exception in every mode, and none on a way that is not taken."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

X = np.array([1.4, 0.6, 0.3])


def out_of_too_few_axes(x):
    y = x * 1
    np.multiply(y, np.ones((1, 3)), out=y)
    return y


def in_place_with_too_many_axes(x):
    y = x * 1
    y += np.ones((1, 3))
    return y


def view_in_place_with_too_many_axes(x):
    y = x * 1
    y[1:] *= np.ones((1, 2))
    return y


def selection_in_place_with_too_many_axes(x):
    y = x * 1
    y[[0, 1]] *= np.ones((1, 2))
    return y


def sequence_as_an_element(x):
    y = np.zeros(2)
    y[0] = x[:2]
    return y


def sequence_of_numbers_as_an_element(x):
    y = np.zeros(2)
    y[0] = [x[0], x[1]]
    return y


def sequence_in_a_matrix(x):
    y = np.zeros((2, 2))
    y[0, np.argmax(x)] = x
    return y


def item_of_the_imaginary_part(x):
    y = x * 2
    y.imag[0] = 1
    return y


def imaginary_part_in_whole(x):
    y = x * 2
    y.imag[...] = x
    return y


def imaginary_part_set(x):
    y = x * 2
    y.imag = 1
    return y


def imaginary_part_in_place(x):
    y = x * 2
    y.imag += x
    return y


def safe_into_single_precision(x):
    y = np.zeros(3, "f4")
    np.add(x, 1, out=y, casting="safe")
    return y


def masked_into_single_precision(x):
    y = np.zeros(3, "f4")
    np.add(x, 1, out=y, casting="safe", where=x > 0.5)
    return y


def joined_into_single_precision(x):
    y = np.zeros(3, "f4")
    np.concatenate([x], out=y, casting="safe")
    return y


def dot_into_single_precision(x):
    y = np.zeros((), "f4")
    np.dot(x, x, out=y)
    return y


def dot_into_column_order(x):
    y = np.zeros((3, 3), order="F")
    np.dot(x[:, None], x[None], out=y)
    return y


def broadcast_array_stored_into(x):
    y = np.broadcast_to(x, (2, 3))
    y[0] = 1
    return y


def row_of_a_broadcast_array(x):
    y = np.broadcast_to(x, (2, 3)).T[0]
    y *= 2
    return y


def diagonal_stored_into(x):
    y = np.diagonal(np.outer(x, x))
    y[0] = 1
    return y


def deleted_item(x):
    y = x.copy()
    del y[0]
    return y


REFUSED = [
    out_of_too_few_axes, in_place_with_too_many_axes, view_in_place_with_too_many_axes,
    selection_in_place_with_too_many_axes,
    sequence_as_an_element, sequence_of_numbers_as_an_element, sequence_in_a_matrix,
    item_of_the_imaginary_part, imaginary_part_in_whole, imaginary_part_set,
    imaginary_part_in_place, safe_into_single_precision, masked_into_single_precision,
    joined_into_single_precision, dot_into_single_precision, dot_into_column_order,
    broadcast_array_stored_into, row_of_a_broadcast_array, diagonal_stored_into, deleted_item,
]  # fmt: skip


def ways(f):
    yield lambda x: fwdad.jvp(f, x, x)
    for chunk in (1, 2, 3):
        yield lambda x, chunk=chunk: fwdad.jacobian(f, x, mode="forward", chunk=chunk)
    yield lambda x: fwdad.jacobian(f, x, mode="reverse")
    yield fwdad.jit(f, backend="numpy")
    yield fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    yield fwdad.jit(fwdad.jacrev(f), backend="numpy")


@pytest.mark.parametrize("f", REFUSED)
def test_refused(f):
    with pytest.raises((TypeError, ValueError)) as theirs:
        f(X.copy())
    wanted = TypeError if theirs.errisinstance(TypeError) else ValueError
    for way in ways(f):
        with pytest.raises((wanted, fwdad.errors.UntraceableError)):
            way(X.copy())


@pytest.mark.parametrize(
    "f",
    [
        sequence_as_an_element, item_of_the_imaginary_part, imaginary_part_set, deleted_item,
        broadcast_array_stored_into, in_place_with_too_many_axes,
    ],
)  # fmt: skip
def test_refused_on_a_way_that_is_not_taken(f):
    def g(x):
        return f(x)[:3] if x[0] > 5 else x * 2

    for way in ways(g):
        way(X.copy())
    assert_array_equal(fwdad.jit(g, backend="numpy")(X), g(X))


def dropped_axes(x):
    y, z = np.zeros(3), np.zeros((2, 3))
    y[...] = (x * 2)[None]
    y[1:] = x[None, :2]
    np.copyto(y, np.array([[1.0, 2.0, 3.0]]) * y, where=np.array([True, False, True]))
    np.add(x, 1, out=z)
    z[0, ...] += x
    z[:, 1:] = np.ones((1, 2, 2))
    z[z > 100] *= np.ones(1)
    return np.concatenate([y, z.ravel()])


def into_all(x):
    z, w = np.zeros((1, 1)), np.zeros(3)
    np.dot(x[None], x[:, None], out=z)
    np.dot(np.outer(x, x), x, w)
    w.real = w.real * 2
    return z * w


@pytest.mark.parametrize("f", [dropped_axes, into_all])
def test_what_numpy_accepts(f):
    wanted = np.stack([(f(X + h) - f(X - h)) / 2e-6 for h in 1e-6 * np.eye(3)], -1)
    assert_array_equal(fwdad.jvp(f, X, X)[0], f(X))
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))
    for chunk in (1, 2, 3):
        found = fwdad.jacobian(f, X, mode="forward", chunk=chunk)
        assert_allclose(found, wanted, atol=1e-8)
    for transformed in (fwdad.jacfwd(f), fwdad.jacrev(f)):
        found = fwdad.jit(transformed, backend="numpy")(X)
        assert_allclose(found, wanted, atol=1e-8)


def test_broadcast_arrays_are_written_as_they_run():
    def f(x):
        y, _ = np.broadcast_arrays(x * 1, np.ones((2, 1)))
        with pytest.warns(DeprecationWarning, match="broadcast"):
            y[0] = 1
        return y

    def plain(x):
        y, _ = np.broadcast_arrays(x * 1, np.ones((2, 1)))
        y[0] = 1
        return y

    assert_array_equal(fwdad.jacobian(f, X, mode="forward"), np.zeros((2, 3, 3)))
    with pytest.raises(fwdad.errors.UntraceableError, match="write into a copy"):
        fwdad.jit(plain, backend="numpy")(X)


def test_masked_copies_without_axes():
    def f(x):
        y = np.array(x[0])
        np.copyto(y, y * y, where=x[0] > 0)
        return y * x[1]

    wanted = [2 * X[0] * X[1], X[0] ** 2, 0.0]
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, X, mode=mode), wanted)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X), wanted)

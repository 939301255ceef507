"""Structured arrays whose fields carry derivatives, and what NumPy aliases, copies and lays out."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from tests.cases.check import check_jacobian, programs, with_widths

PROGRAMS, program = programs()

X = np.array([0.7, 1.3, 0.4])
M = np.array([[0.7, 1.3, 0.4], [0.2, -0.5, 0.9]])


def table(x):
    y = np.zeros(3, dtype=[("a", float), ("n", int), ("b", float, (2,))])
    y["a"], y["n"] = x, [1, 2, 3]
    y["b"][:, 1] = x**2
    return y


def product(y):
    return np.concatenate([y["a"] * y["b"][..., 1], y["a"] * y["n"]])


@program(X)
def copy_of_records(x):
    y = table(x)
    z = y.copy()
    y["a"] = 0.0
    z["a"][0] *= 2.0
    return np.concatenate([product(z), product(y)])


@program(X)
def fields_by_a_list(x):
    y = table(x)
    z = y[["b", "a"]]
    y["a"][1] = x[0]
    return z["a"] * z["b"][:, 1]


@program(X)
def records_by_a_mask(x):
    y = table(x)
    z = y[np.array([True, False, True])]
    y["a"] = 1.0
    return product(z)


@program(X)
def records_by_places(x):
    y = np.zeros((2, 3), table(x).dtype)
    y["a"], y["b"][..., 1] = x, np.stack([x**2, x**3])
    return product(y[[1, 0, 1], [2, 0, 1]]) + product(y[:, [2, 0, 0]][1])


def on_both(name, f):
    """A program of a dual matrix, and of a plain one that active values were stored into."""

    def on_dual(x):
        return seen(x * 1)

    def on_memory(x):
        z = np.zeros((2, 3))
        z[:] = x
        return seen(z)

    def seen(z):
        y = f(z)
        y[0, 0] = 5.0
        y *= 2
        parts = (z.ravel(), y.ravel(), y.ravel("K"), y.copy("K").ravel("K"))
        return np.concatenate(parts)

    for g in (on_dual, on_memory):
        g.__name__ = g.__qualname__ = f"{name}_{g.__name__}"
        program(M)(g)


on_both("conj", lambda z: z.conj())
on_both("conjugate", lambda z: z.conjugate())
on_both("function_conj", lambda z: np.conj(z))
on_both("float64", lambda z: np.float64(z))
on_both("astype_F", lambda z: z.astype(float, order="F"))
on_both("astype_K", lambda z: z.T.astype(float).T)
on_both("astype_A", lambda z: z.T.astype(float, "A").T)
on_both("astype_itself", lambda z: z.astype(float, copy=False))
on_both("astype_wide", lambda z: z.astype(complex, order="F").real)


def on_vectors(name, write):
    """A program that writes into the four elements of a dual vector, and of a plain one."""

    def on_dual(x):
        z = x * 1
        write(z)
        return z

    def on_memory(x):
        z = np.zeros(4)
        z[:] = x
        write(z)
        return z

    for g in (on_dual, on_memory):
        g.__name__ = g.__qualname__ = f"{name}_{g.__name__}"
        program(np.array([0.731, -0.452, 1.213, 0.287]))(g)


on_vectors("place", lambda z: np.place(z[1:], [1, 1, 1], z[:-1]))
on_vectors("place_apart", lambda z: np.place(z, [1, 0, 1, 1], [z[3], 2.0]))
on_vectors("concatenate", lambda z: np.concatenate([z[1:3], z[:1]], out=z[:3]))
on_vectors("concatenate_lists", lambda z: np.concatenate([[z[0] * 2], z[3:]], out=z[1:3]))
on_vectors("flat", lambda z: z.flat.__setitem__(slice(1, None), z[:3]))


@pytest.mark.parametrize(("program", "chunk"), with_widths(PROGRAMS))
def test_program(program, chunk):
    check_jacobian(program, chunk)


@pytest.mark.parametrize(
    "f",
    [
        lambda y: y.take([0]),
        lambda y: np.concatenate([y, y]),
        lambda y: y[0],
        lambda y: np.copy(y),
    ],
    ids=["take", "concatenate", "record", "np_copy"],
)
def test_whole_records_are_refused(f):
    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="field"):
        fwdad.jacobian(lambda x: product(f(table(x))), X)


def test_record_arrays_are_refused():
    def f(x):
        y = np.zeros(3, dtype=[("a", float)]).view(np.recarray)
        y.a = x
        return y.a

    with pytest.raises(fwdad.errors.UnsupportedTypeError, match="recarray"):
        fwdad.jacobian(f, X)


def test_concatenate_into_another_shape_fails_as_in_numpy():
    def f(x):
        return np.concatenate([x, x], out=np.zeros(5))

    with pytest.raises(ValueError, match="Output array is the wrong shape"):
        fwdad.jacobian(f, X)


@pytest.mark.parametrize("chunk", [1, None])
def test_write_protection(chunk):
    outside = np.zeros(3)

    def f(x):
        assert outside.flags.writeable
        outside[:] = x
        outside.setflags(write=False)
        own = x * 2
        own.setflags(write=False)
        with pytest.raises(ValueError, match="read-only"):
            own[0] = 1.0
        return outside * own

    assert_array_equal(fwdad.jacobian(f, X, chunk=chunk), np.diag(4 * X))
    assert_array_equal(outside, X)
    assert not outside.flags.writeable

"""``like=`` of what makes arrays, ``a.flat`` as an argument, places of ``put`` and ``take``."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import DualLeakError, FwdadError, UnsupportedTypeError
from tests.differences import central_differences

X = np.array([0.5, 1.25, 2.0])


def check(f, x, *, traced=True):
    expected = central_differences(f, x)
    for mode in ("forward", "reverse"):
        assert_allclose(fwdad.jacobian(f, x, mode=mode), expected, rtol=1e-8, atol=1e-8)
    if traced:
        assert_allclose(fwdad.jit(f, backend="numpy")(x), f(x), rtol=1e-14)
        for call in (fwdad.jacfwd, fwdad.jacrev):
            compiled = fwdad.jit(call(f), backend="numpy")
            assert_allclose(compiled(x), expected, rtol=1e-8, atol=1e-8)


def written(x):
    work = np.zeros(3, like=x)
    work[1] = x[0] ** 2
    return np.zeros(3, like=work) + work


LIKE = {
    "zeros": lambda x: np.zeros(3, like=x) + x,
    "ones": lambda x: np.ones(3, like=x) * x,
    "empty": lambda x: len(np.empty((2, 2), like=x)) * x,
    "full": lambda x: np.full(3, x[0], like=x) * x,
    "full_like of a list": lambda x: np.full_like([1.0, 2.0], x[0]) * x[1],
    "full_like of a list of what moves": lambda x: np.full_like([x[1], 2.0], x[0]) * x[1],
    "ones_like of a list of what moves": lambda x: np.ones_like([x[0], x[1], 1.0]) * x,
    "zeros_like of a tuple": lambda x: np.zeros_like((x[0], x[1], 1.0)) + x**2,
    "eye": lambda x: np.eye(3, like=x) @ x,
    "identity": lambda x: np.identity(3, like=x) @ x,
    "tri": lambda x: np.tri(3, like=x) @ x,
    "arange": lambda x: np.arange(3, like=x) * x,
    "array": lambda x: np.array([x[0], 2.0], like=x) * x[1],
    "asarray": lambda x: np.asarray([1.0, 2.0], like=x) * x[1],
    "fromiter": lambda x: np.fromiter([1.0, 2.0], float, like=x) * x[1],
    "written": written,
}


@pytest.mark.parametrize("name", LIKE)
def test_like(name):
    check(LIKE[name], X)


def through_memory(x):
    work = np.zeros(3)
    work[:] = x
    same = work.__array__()
    same[0] = work[1] * 2.0
    return work**2


CALLED = {
    "an array": lambda x: x.__array__() ** 2,
    "a dtype": lambda x: x.__array__(complex).real * x,
    "no copy": lambda x: x.__array__(None, copy=False) * x,
    "a number": lambda x: x[0].__array__() * x,
    "memory": through_memory,
}


@pytest.mark.parametrize("name", CALLED)
def test_array_method_that_the_program_calls(name):
    check(CALLED[name], X)


def written_number(a):
    out = np.zeros(())
    out[...] = a * a
    return out


OF_OBJECTS = {
    "vectorize": lambda x: np.vectorize(lambda k: written_number(k * x[0]), otypes="d")(X) * x,
    "vectorize without otypes": lambda x: np.vectorize(lambda k: written_number(k * x[0]))(X) * x,
    "vectorize of what moves": lambda x: np.vectorize(written_number, otypes="d")(x * x),
    "fromiter": lambda x: np.fromiter((written_number(k) for k in x), float) * x,
}


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_numbers_in_arrays_without_axes_that_were_written(name):
    """NumPy has them as objects, whose memory carries the tangents."""
    check(OF_OBJECTS[name], X)


def test_objects_that_carry_tangents_in_their_memory():
    """No tape takes arrays of objects."""

    def f(x):
        made = np.frompyfunc(lambda k: written_number(k * x[0]), 1, 1)(X)
        return np.asarray(made, dtype=float) * x

    check(f, X, traced=False)


COPIES = {
    "asarray": lambda a: np.asarray(a, copy=True),
    "asanyarray": lambda a: np.asanyarray(a, dtype=float, copy=True),
    "reshape": lambda a: np.reshape(a, 3, copy=True),
    "method reshape": lambda a: a.reshape(3, copy=True),
    "array": lambda a: np.array(a, copy=True),
    "method __array__": lambda a: a.__array__(copy=True),
}


@pytest.mark.parametrize("name", COPIES)
def test_what_is_stored_in_a_copy_that_was_asked_for_is_not_in_the_array(name):
    def f(x):
        a = x * 1.0
        b = COPIES[name](a)
        b[0] = 5.0 * x[1]
        return a * b

    try:
        f(X)
    except TypeError:
        pytest.skip("NumPy 2.0 does not take it")
    check(f, X)


class Tripled(np.ndarray):
    def __mul__(self, other):
        return np.asarray(self) * 3.0


VIEWS = {
    "matrix": lambda a: np.asarray(a.view(np.matrix) * a),
    "masked": lambda a: a.view(np.ma.MaskedArray) * 2.0,
    "a class of the user's": lambda a: a.view(Tripled) * 2.0,
    "type=": lambda a: a.view(type=Tripled) * 2.0,
}


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_as_a_subclass_of_what_moves_is_refused(name, mode):
    def stored(x):
        work = np.zeros((2, 2))
        work[:] = x
        return VIEWS[name](work)

    for f in (VIEWS[name], stored):
        with pytest.raises(UnsupportedTypeError, match="cannot view an array"):
            fwdad.jacobian(f, np.array([[1.0, 2.0], [3.0, 4.0]]), mode=mode)
        with pytest.raises(FwdadError):
            fwdad.jit(lambda x, f=f: fwdad.jacobian(f, x, mode=mode))(np.eye(2))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_subclass_made_over_what_moves_is_refused(mode):
    class Over(np.ndarray):
        def __new__(cls, x):
            return super().__new__(cls, x.shape, x.dtype, buffer=x)

    def stored(x):
        work = np.zeros(3)
        work[:] = x
        return Over(work) * 2.0

    for f in (lambda x: Over(x * 1.0) * 2.0, stored):
        with pytest.raises(
            UnsupportedTypeError, match=r"Over is created by ndarray\.__new__ on memory"
        ):
            fwdad.jacobian(f, X, mode=mode)
    assert_array_equal(fwdad.jacobian(lambda x: x * np.asarray(Over(X)), X), np.diag(X))


def test_a_view_as_a_plain_array_is_one():
    check(lambda x: x.view(np.ndarray) * x.view(float) * x.view(type=np.ndarray), X, traced=False)


def test_like_a_number_is_an_error_of_numpy():
    def f(x):
        return np.zeros(3, like=x[0]) + x

    for call in (f, lambda x: fwdad.jacobian(f, x), fwdad.jit(f, backend="numpy")):
        with pytest.raises(TypeError, match="array-like that implements"):
            call(X)


M = np.array([[0.5, 1.25], [2.0, 0.75]])
FLAT = {
    "array": lambda x: np.array((x * x).flat),
    "asarray": lambda x: np.asarray((x * x).flat) * 2,
    "dtype": lambda x: np.array((x * x).T.flat, float),
    "ndmin": lambda x: np.array((x * x).flat, ndmin=2),
    "reshape": lambda x: np.reshape((x * x).flat, (2, 2)),
}


@pytest.mark.parametrize("name", FLAT)
def test_what_may_be_a_view_by_flat(name):
    check(FLAT[name], M, traced=False)
    with pytest.raises(FwdadError, match=r"a\.flat"):
        fwdad.jit(FLAT[name], backend="numpy")(M)


def test_new_memory_by_flat():
    check(lambda x: np.atleast_1d(np.sum((x * x).flat)), M)
    check(lambda x: np.sin((x * x).flat), M)


class Held:
    """An array by another name."""

    def __init__(self, x):
        self.x = x

    def __array__(self, dtype=None, copy=None):
        return self.x


def test_object_with_an_array_as_an_argument_of_a_ufunc():
    check(lambda x: np.multiply(Held(x), np.sin(Held(x * x))), X, traced=False)


def test_flat_in_a_list():
    with pytest.raises(DualLeakError):
        fwdad.jacobian(lambda x: np.concatenate([(x * x).flat, x[0]]), M)


class HeldAsAsked(Held):
    """It returns a copy where one is asked for."""

    def __array__(self, dtype=None, copy=None):
        return self.x.copy() if copy else self.x


class HeldAnyhow(Held):
    """What it is asked for it does not read."""

    def __array__(self, *_args, **_kwargs):
        return self.x


MAKERS = {
    "array": np.array,
    "of floats": lambda o: np.array(o, float),
    "more axes": lambda o: np.array(o, ndmin=2)[0],
    "if needed": lambda o: np.array(o, copy=None),
    "asarray": np.asarray,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("cls", [Held, HeldAsAsked, HeldAnyhow])
@pytest.mark.parametrize("stored", [False, True])
def test_array_of_an_object_that_returns_its_own(cls, make, stored):
    """NumPy takes what it is returned for the copy that it asks for; NumPy 2.0 made one."""

    def f(x):
        y = x * x
        if stored:
            y[0] = x[2]
        make(cls(y))[0] = 5.0 * x[1]
        return y

    found = np.array([1.0, 0.0, 0.0])
    shared = np.may_share_memory(make(cls(found)), found)
    assert f(X)[0] == (5.0 * X[1] if shared else X[2] if stored else X[0] ** 2)
    check(f, X, traced=False)
    for chunk in (1, 2, 3):
        found = fwdad.jacobian(f, X, chunk=chunk)
        assert_allclose(found, central_differences(f, X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("make", [np.array, np.asarray, lambda a: np.array(a, copy=None)])
def test_array_of_flat_is_a_view(make):
    """A view or, of `np.array` in NumPy 2.0, a copy: derivatives are those of what NumPy did."""

    def f(x, turned):
        y = (x * x).T if turned else x * x
        made = make(y.flat)
        made[1] = x[0, 0] ** 3
        return y * made[1]

    a_copy = not np.may_share_memory(make(M.flat), M)
    assert f(M, False)[0, 1] == 0.125 * (M[0, 1] ** 2 if a_copy else 0.125)
    check(lambda x: f(x, False), M, traced=False)
    if a_copy:
        check(lambda x: f(x, True), M, traced=False)
        return
    for call in (f, lambda x, turned: fwdad.jacobian(f, x, args=(turned,))):
        with pytest.raises(ValueError, match="read-only"):
            call(M, True)


def put(x, indices):
    y = np.outer(x, x)
    np.put_along_axis(y, np.array(indices), x[:2], axis=None)
    return y


@pytest.mark.parametrize("indices", [[1, 5], [-1, 3], [2, 2]])
def test_put_along_no_axis(indices):
    check(lambda x: put(x, indices), X)


def test_put_along_no_axis_raises():
    masks = [True, False, True]
    for indices, error in (([1, 9], IndexError), ([[1, 5]], ValueError), (masks, IndexError)):
        for call in (put, fwdad.jit(put, backend="numpy")):
            with pytest.raises(error):
                call(X, indices)
        with pytest.raises(error):
            fwdad.jacobian(put, X, args=(indices,))


def test_put_along_no_axis_of_a_vector():
    def f(x):
        y = x * x
        np.put_along_axis(y, np.array([2, 0]), x[1], axis=None)
        return y

    check(f, X)
    assert_array_equal(f(X), [1.25, 1.5625, 1.25])


MASK = np.array([True, False, True])


def taken(x, m):
    return np.take(np.outer(x, x), m, axis=1) @ np.take(x, m)


def put_at(x, m):
    y = x * x
    np.put(y, m, x[2])
    y.put([False], x[0] ** 3)
    return y


@pytest.mark.every(2, of="numba", first=1)
@pytest.mark.parametrize("f", [taken, put_at])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_truth_values_as_places_are_zeros_and_ones(f, backend):
    if backend == "numba":
        pytest.importorskip("numba")
    assert_allclose(fwdad.jit(f, backend=backend)(X, MASK), f(X, MASK), rtol=1e-14)
    expected = central_differences(lambda x: f(x, MASK), X)
    for call in (fwdad.jacfwd, fwdad.jacrev):
        for g in (call(f), fwdad.jit(call(f), backend=backend)):
            assert_allclose(g(X, MASK), expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("copy", ["IF_NEEDED", "ALWAYS", "NEVER"])
def test_copy_modes(copy):
    """What SciPy writes beside NumPy 2: a mode that is neither True nor False."""
    mode = getattr(np._CopyMode, copy)
    x = np.array([1.0, 2.0])
    assert fwdad.jacfwd(lambda x: np.array(x, copy=mode) ** 2)(x).tolist() == [[2, 0], [0, 4]]

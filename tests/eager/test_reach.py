"""Arrays with derivatives that C code reads through an object: right, or an error of both names."""

import ctypes

import numpy as np
import pytest
from numpy.polynomial import Chebyshev
from scipy import sparse
from scipy.interpolate import RegularGridInterpolator
from scipy.spatial import cKDTree

import fwdad
from fwdad.errors import FwdadError
from tests.differences import central_differences

X = np.array([0.5, 1.25])


def chebyshev():
    poly = Chebyshev([0.0, 0.0, 1.0])

    def f(x):
        poly.coef[:2] = x
        return poly(0.3) ** 2

    return f


def bound_sum():
    w = np.zeros(2)
    total = w.sum

    def f(x):
        w[:] = x
        return total() ** 2

    return f


def grid():
    table = RegularGridInterpolator((np.arange(4.0),), np.zeros(4))

    def f(x):
        table.values[1:3] = x
        return table([1.3])[0] ** 2

    return f


def tree():
    points = np.array([[0.0, 0.0], [3.0, 3.0]])
    held = cKDTree(points, copy_data=False)

    def f(x):
        points[1] = x
        return held.query([9.0, 9.0])[0]

    return f


def flat():
    w = np.zeros(2)
    seen = w.flat

    def f(x):
        w[:] = x
        return seen[0] * seen[1]

    return f


def buffer():
    w = np.zeros(2)
    seen = memoryview(w)

    def f(x):
        w[:] = x
        return seen[0] * seen[1]

    return f


def viewed_again():
    w = np.zeros(2)
    seen = np.asarray(memoryview(w))

    def f(x):
        w[:] = x
        return seen[0] * seen[1]

    return f


def c_array():
    held = (ctypes.c_double * 2)()
    w = np.frombuffer(held)

    def f(x):
        w[:] = x
        return held[0] * held[1]

    return f


def objects():
    w = np.zeros(2)
    held = np.empty(2, object)
    held[0], held[1] = w, w

    def f(x):
        w[:] = x
        return np.sum(held[0] * held[1])

    return f


def objects_summed():
    w = np.zeros(2)
    held = np.empty(2, object)
    held[0], held[1] = w, w

    def f(x):
        w[:] = x
        return np.sum(np.sum(held) ** 2)

    return f


def objects_summed_by_their_method():
    w = np.zeros(2)
    held = np.empty(2, object)
    held[0], held[1] = w, w

    def f(x):
        w[:] = x
        return np.sum(held.sum() ** 2)

    return f


def objects_added():
    w = np.zeros(2)
    held = np.empty(2, object)
    held[0], held[1] = w, w

    def f(x):
        w[:] = x
        return np.sum((held + 1.0)[0] ** 2)

    return f


def iterator():
    w = np.zeros(2)

    def f(x):
        seen = iter(w)
        w[:] = x
        return next(seen) ** 2

    return f


def sparse_array():
    a = sparse.csr_array(np.eye(2))

    def f(x):
        a.data[:] = x
        return np.sum((a @ np.ones(2)) ** 2)

    return f


def broadcast():
    def f(x):
        return sum(a * b for a, b in np.broadcast(x, 2.0)) ** 2

    return f


def broadcast_of_a_written_array():
    w = np.zeros(2)

    def f(x):
        w[:] = x
        return sum(a * b for a, b in np.broadcast(w, [2.0, 3.0])) ** 2

    return f


def broadcast_shape():
    def f(x):
        b = np.broadcast(x, np.ones((3, 1)))
        return np.sum(x**2) * b.size * b.ndim * b.shape[0]

    return f


def broadcast_before():
    w = np.zeros(2)
    seen = np.broadcast(w, 2.0)

    def f(x):
        seen.reset()
        w[:] = x
        return sum(a * b for a, b in seen) ** 2

    return f


def frame():
    pandas = pytest.importorskip("pandas")
    w = np.zeros((2, 1))
    held = pandas.DataFrame(w, copy=False)

    def f(x):
        w[:, 0] = x
        return held[0].sum() ** 2

    return f


def frame_at():
    pandas = pytest.importorskip("pandas")
    w = np.zeros((2, 1))
    held = pandas.DataFrame(w, copy=False)

    def f(x):
        w[:, 0] = x
        return held.iloc[0, 0] ** 2 + held.iat[1, 0]

    return f


def series():
    pandas = pytest.importorskip("pandas")
    w = np.zeros(2)
    held = pandas.Series(w, copy=False)

    def f(x):
        w[:] = x
        return held.iloc[0] * held.sum()

    return f


PROGRAMS = [
    chebyshev, bound_sum, grid, tree, flat, buffer, viewed_again, c_array, objects, objects_summed,
    objects_summed_by_their_method, objects_added, iterator, sparse_array, broadcast,
    broadcast_of_a_written_array, broadcast_shape, broadcast_before, frame, frame_at, series,
]  # fmt: skip
RIGHT = {chebyshev, bound_sum, flat, viewed_again, objects, broadcast, broadcast_shape, iterator,
         broadcast_of_a_written_array, grid, sparse_array}  # fmt: skip
MODES = {
    "forward": lambda f: fwdad.jacobian(f, X, mode="forward"),
    "chunk": lambda f: fwdad.jacobian(f, X, mode="forward", chunk=1),
    "grad": lambda f: fwdad.grad(f)(X),
    "vjp": lambda f: fwdad.vjp(f, X)[1](1.0),
    "linearize": lambda f: fwdad.linearize(f, X)[1].matmat(np.eye(2))[0],
    "jit": lambda f: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X),
}


@pytest.mark.slow_cases("frame-jit", "series-jit", "frame_at-jit")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_right_or_refused(program, mode):
    f = program()
    wanted = central_differences(f, X)
    for _ in range(2):
        try:
            found = MODES[mode](f)
        except FwdadError as error:
            assert "please report" not in str(error)  # noqa: PT017
            assert program not in RIGHT or mode == "jit", error  # noqa: PT017
            continue
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", [chebyshev, grid])
def test_value_under_jit(program):
    f = program()
    run = fwdad.jit(f, backend="numpy")
    for k in (1, 2, 3):
        try:
            found = run(k * X)
        except FwdadError:
            continue
        np.testing.assert_allclose(found, f(k * X))


def test_names_both():
    with pytest.raises(fwdad.errors.DualLeakError, match=r"cKDTree.*shape \(2, 2\).*frule"):
        fwdad.jacobian(tree(), X, mode="forward")


def test_unrelated_objects_are_called():
    held = cKDTree(np.eye(2))
    w = np.zeros(2)

    def f(x):
        w[:] = x
        return w[0] ** 2 * held.query([0.0, 0.5])[0]

    np.testing.assert_allclose(
        fwdad.jacobian(f, X, mode="forward"), central_differences(f, X), atol=1e-6
    )
    np.testing.assert_allclose(fwdad.grad(f)(X), central_differences(f, X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("called_before", [False, True])
@pytest.mark.parametrize("name", ["SARIMAX", "UnobservedComponents", "VARMAX"])
def test_state_space_models(name, called_before):
    tsa = pytest.importorskip("statsmodels.api").tsa
    rng = np.random.default_rng(0)
    y = np.cumsum(rng.normal(size=(40, 2)), axis=0)
    if name == "SARIMAX":
        model = tsa.SARIMAX(y[:, 0], order=(1, 0, 1))
    elif name == "UnobservedComponents":
        model = tsa.UnobservedComponents(y[:, 0], "local level")
    else:
        model = tsa.VARMAX(y, order=(1, 0))
    at = np.array(model.start_params)
    if called_before:
        model.loglike(at)
    runs = {
        "grad": lambda: fwdad.grad(model.loglike)(at),
        "forward": lambda: fwdad.jacobian(model.loglike, at, mode="forward"),
        "vjp": lambda: fwdad.vjp(model.loglike, at)[1](1.0),
        "linearize": lambda: fwdad.linearize(model.loglike, at)[1] @ at,
        "jit": lambda: fwdad.jit(fwdad.grad(model.loglike), backend="numpy")(at),
    }
    for _ in range(2):
        for run in runs.values():
            with pytest.raises(FwdadError) as caught:
                run()
            assert "please report" not in str(caught.value)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_class_that_borrows_a_method_in_c(chunk):
    """As SciPy's results do: it is a dict, and no memory of its own."""

    class Result(dict):
        __setattr__ = dict.__setitem__

    def f(x):
        result = Result(y=x * x, n=len(x))
        result.z = result["y"] * 3.0
        return result["z"]

    x = np.array([0.5, 1.5, -2.0])
    jacobian = fwdad.jacobian(f, x, mode="forward", chunk=chunk)
    np.testing.assert_array_equal(jacobian, np.diag(6.0 * x))
    np.testing.assert_array_equal(fwdad.vjp(f, x)[1](np.ones(3)), 6.0 * x)

"""Options of NumPy's and SciPy's functions, in every way to run."""

import numpy as np
import pytest
import scipy.fft
import scipy.linalg
import scipy.ndimage
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import MissingRuleError, UndefinedDerivativeError, UntraceableError
from tests.differences import central_differences
from tests.eager_reverse.pulling import jacobian_of, record

X = np.array([0.31, 1.37, 0.83, 1.13, 0.59, 1.61])
MASK = np.array([[True, False, True], [True, True, False]])
ROWS = np.array([True, False, True])


def square(x):
    return np.eye(3) * 2.0 + x[:3, None] * x[3:]


def into(fill):
    """What a function writes into an array of its own, and returns with it."""

    def f(x):
        out = np.ones(6)
        fill(x, out)
        return out

    return f


def filled(fill, n):
    def f(x):
        out = np.zeros(n)
        fill(x, out)
        return out

    return f


def holes(x):
    return np.where(x > 1.0, np.nan, x)


def nan_to_num_in_place(x):
    y = holes(x)
    z = np.nan_to_num(y, copy=False, nan=5.0)
    z[0] = x[1] * x[2]
    return y


def nan_to_num_by_position(x):
    y = holes(x)
    np.nan_to_num(y, False, 7.0)
    return y * x


def partition_in_place(x):
    a = (x * x).reshape(2, 3)
    a.partition(1, 1, "introselect")
    a.sort(0, "mergesort")
    return a[:, 0] * a[0, 1]


def nowhere_to_store(x):
    return np.add(x, x[0], None) * np.exp(x, out=(None,))


def copy_of_one_element(x):
    y = np.broadcast_to(x[0], (3,)).copy()
    y[0] = x[1] * 2.0
    return y


def masks_of_numbers(x):
    y = np.ones(6)
    np.exp(x, where=[1, 0, 1, 0, 1, 1], out=y)
    np.copyto(y, x[::-1] * x, where=[0, 1, 0, 0, 0, 1])
    np.place(y, np.array([1, 1, 0, 2, 0, 0]), x[3:5] * y[:2])
    return y


def placed_without_axes(x):
    y = np.array(x[0])
    np.place(y, np.array(True), [x[1] * 2.0])
    z = np.zeros(())
    np.putmask(z, True, x[2:3] ** 2)
    return y * z * x


def values_of_higher_rank(x):
    y = np.zeros((2, 3))
    y[...] = (x * x).reshape(1, 2, 3)
    y[[0]] = x[None, None, :3]
    y[1] = x[None, 2:3]
    z = np.zeros(())
    z[...] = x[1:2] * 2.0
    return y * z


PROGRAMS = {
    "masks_of_numbers": masks_of_numbers,
    "placed_without_axes": placed_without_axes,
    "values_of_higher_rank": values_of_higher_rank,
    "where_of_clip": into(lambda x, o: np.clip(x, 0.5, x[1], where=x > 0.5, out=o)),
    "where_of_sum": filled(lambda x, o: np.sum(x.reshape(2, 3), 1, out=o, where=MASK), 2),
    "where_of_a_square": filled(lambda x, o: np.sum(square(x), 0, where=ROWS, out=o), 3),
    "where_of_a_maximum": filled(
        lambda x, o: np.max(square(x), axis=0, initial=0.0, where=ROWS, out=o), 3
    ),
    "nan_to_num_in_place": nan_to_num_in_place,
    "nan_to_num_by_position": nan_to_num_by_position,
    "partition_in_place": partition_in_place,
    "nowhere_to_store": nowhere_to_store,
    "copy_of_one_element": copy_of_one_element,
    "axes_of_tensorsolve": lambda x: np.linalg.tensorsolve(
        square(x).reshape(3, 3, 1), x[:3], axes=(1,)
    ),
    "dtype_and_axis_of_vecdot": lambda x: np.vecdot(square(x), square(x), dtype=complex, axis=0),
    "casting_of_matmul": lambda x: np.matmul(square(x), [1, 2.0, 3], casting="same_kind"),
    "dtype_of_maximum": lambda x: np.maximum(x, 1, dtype=complex).real,
    "signature_of_square": lambda x: np.square(x, signature=(None, float)),
    "signature_of_maximum": lambda x: np.maximum(x * x, 1, sig="DD->D").real,
    "signature_of_matmul": lambda x: np.matmul(square(x), x[:3], signature="dd->d"),
    "dtype_of_less": lambda x: x * np.less(x, 1.0, dtype=bool),
    "dtype_of_a_number": lambda x: np.multiply(x[0], 3, dtype=complex) * x[1],
    "methods_of_ufuncs_by_name": lambda x: np.concatenate(
        [
            np.add.reduce(array=x.reshape(2, 3), axis=1),
            np.multiply.accumulate(array=x),
            np.add.reduceat(array=x, indices=[0, 2]),
        ]
    ),
    "axes_of_einsum_by_numbers": lambda x: np.einsum(
        square(x), [0, 1], np.ones((3, 2)) * x[0], [1, 2], [2, 0]
    ),
    "rollaxis": lambda x: np.rollaxis((x * x).reshape(1, 2, 3), 2),
    "power_by_name": lambda x: x * pow(base=x[0], exp=3),
    "lists_of_numbers": lambda x: np.concatenate(
        [
            np.dot([1.0, 2, 3], x[:3], None)[None],
            np.matmul([[1, 2, 3], [3, 4, 5]], x[3:]),
            scipy.linalg.solve_banded((1, 1), [[0, 1, 2], [4, 5, 6], [1, 1, 0]], x[:3]),
            np.linalg.lstsq(square(x), [1, 2, 3.0], rcond=None)[0],
            np.clip(x, [0.5] * 6, x[1]),
        ]
    ),
    "overwrite_of_solve": lambda x: scipy.linalg.solve(
        square(x), x[:3].copy(), overwrite_a=True, overwrite_b=True
    ),
    "overwrite_of_det": lambda x: scipy.linalg.det(square(x), True) * x[:2],
    "overwrite_of_median": lambda x: np.median(x * x, overwrite_input=True) * x[:2],
}


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_every_way_to_run(f):
    y, wanted = f(X.copy()), central_differences(f, X)
    assert np.abs(wanted).max() > 0.1  # something moves
    found, moved = fwdad.jvp(f, X, X)
    assert_array_equal(found, y)
    assert moved.dtype == y.dtype
    assert_allclose(moved, wanted @ X, rtol=1e-7, atol=1e-9)
    answer = fwdad.jit(f, backend="numpy")(X.copy())
    assert answer.dtype == y.dtype
    assert answer.flags.writeable or not y.flags.writeable
    assert_allclose(answer, y, rtol=1e-14)
    compiled = fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X)
    assert_allclose(compiled, wanted, rtol=1e-7, atol=1e-9)

    weights = np.cos(np.arange(y.size)).reshape(y.shape)

    def loss(x):
        return np.sum(weights * f(x).real)

    gradient = np.tensordot(weights, wanted.real, y.ndim)
    given = X.copy()
    assert_allclose(fwdad.grad(loss)(given), gradient, rtol=1e-7, atol=1e-9)
    assert_allclose(jacobian_of(record(loss, given), X, 1), gradient, rtol=1e-7, atol=1e-9)
    compiled = fwdad.jit(fwdad.grad(loss), backend="numpy")(given)
    assert_allclose(compiled, gradient, rtol=1e-7, atol=1e-9)
    assert_array_equal(given, X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: scipy.linalg.solve(square(x), x[:3], overwrite_b=True),
        lambda x: np.percentile(x, 40, overwrite_input=True),
        lambda x: scipy.fft.dct(x, overwrite_x=True) * x,
        lambda x: scipy.fft.fft(x + 1j * x[::-1], None, -1, None, True),
    ],
)
def test_memory_that_may_be_used_up_is_left_alone(f):
    given = X.copy()
    compiled = fwdad.jit(fwdad.jacfwd(f), backend="numpy")(given)
    assert_allclose(fwdad.jacobian(f, given, chunk=6), compiled, rtol=1e-12, atol=1e-14)
    assert_allclose(
        fwdad.jacrev(lambda x: np.real(f(x)))(given), np.real(compiled), rtol=1e-12, atol=1e-14
    )
    assert_array_equal(given, X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.add(x, 1, dtype=np.float32, casting="no"),
        lambda x: np.add(x, np.arange(6), casting="no"),
        lambda x: np.absolute(x + 0j, dtype=complex),
        lambda x: np.copyto(np.zeros(6, np.float32), x, casting="safe"),
    ],
)
def test_what_numpy_does_not_cast_raises(f):
    for run in (f, lambda x: fwdad.jvp(f, x, X), lambda x: record(f, x)):
        with pytest.raises(TypeError, match=r"(?i)cast"):
            run(X.copy())


def test_a_complex_number_does_not_go_into_a_float_array():
    def f(x):
        x[0] = 1j
        return x

    for run in (f, fwdad.jit(f, backend="numpy"), fwdad.jit(fwdad.jacfwd(f), backend="numpy")):
        with pytest.raises((TypeError, UntraceableError), match="complex"):
            run(X.copy())


@pytest.mark.parametrize("flag", [False, np.False_])
def test_a_flag_by_position_that_is_an_argument(flag):
    def values(x, flag):
        return np.linalg.svd(square(x), True, flag)

    found = fwdad.jit(values, backend="numpy")(X, flag)
    assert_allclose(found, values(X, False), rtol=1e-13)
    vectors = fwdad.jit(values, backend="numpy")(X, not flag)
    assert_allclose(vectors[1], found, rtol=1e-13)
    gradient = fwdad.jit(fwdad.grad(lambda x, flag: values(x, flag).sum()), backend="numpy")
    wanted = central_differences(lambda x: values(x, False).sum(), X)
    assert_allclose(gradient(X, flag), wanted, rtol=1e-7)


@pytest.mark.parametrize("options", [{"dtype": int}, {"signature": "d"}, {"signature": float}])
def test_a_cast_that_numpy_refuses_is_no_mistake_of_ours(options):
    def f(x):
        return np.add(x, 2 * x, **options)

    for way in (f, fwdad.jit(f), fwdad.jit(lambda x: fwdad.jvp(f, x, x))):
        with pytest.raises((TypeError, UntraceableError), match=r"cast|`dtype`|signature"):
            way(np.array([1.0, 2.0]))


def test_clip_with_a_mask_needs_an_output():
    with pytest.raises(MissingRuleError, match="out="):
        fwdad.jvp(lambda x: np.clip(x, 0.5, 1.0, where=x > 0.5), X, X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.pinv(square(x), rcond=0.5),
        lambda x: np.linalg.lstsq(square(x), x[:3], rcond=0.5)[0],
        lambda x: scipy.linalg.pinv(square(x), atol=2.5),
        lambda x: scipy.linalg.lstsq(square(x), x[:3], cond=0.5)[0],
    ],
)
def test_singular_values_that_are_cut_off_are_zero(f):
    for run in (fwdad.jacfwd(f), fwdad.jacrev(f), fwdad.jit(fwdad.jacfwd(f), backend="numpy")):
        with pytest.raises(UndefinedDerivativeError, match="nonzero singular values"):
            run(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.pinv(square(x), rcond=1e-3),
        lambda x: np.linalg.pinv(np.outer(x[:3], x[3:]), rtol=1e-6),
        lambda x: np.linalg.lstsq(square(x), x[:3], rcond=1e-3)[0],
    ],
)
def test_singular_values_that_are_zero_may_be_cut_off(f):
    assert_allclose(
        fwdad.jacobian(f, X, mode="forward"), central_differences(f, X), rtol=1e-6, atol=1e-8
    )


def test_dtype_of_a_comparison_when_compiled():
    f = fwdad.jit(lambda x: x * np.less(x, 1.0, dtype=bool), backend="numba")
    assert_array_equal(f(X), X * (X < 1.0))


def test_what_writes_in_c_is_not_lost():
    def f(x):
        return scipy.ndimage.geometric_transform(x.reshape(2, 3), lambda at: (at[0], at[1] + 0.2))

    for run in (fwdad.jit(fwdad.jacfwd(f)), fwdad.jit(fwdad.jacrev(f)), fwdad.jacfwd(f)):
        with pytest.raises((MissingRuleError, UntraceableError), match="geometric_transform"):
            run(X)


class Chosen:
    def __new__(cls, _):
        return super().__new__(Twice)

    def __init__(self, v):
        self.v = v


class Twice(Chosen):
    def __init__(self, v):
        self.v = 2.0 * v


def test_an_object_of_a_subclass_initialises_itself():
    def f(x):
        return Chosen(x[0]).v * x

    assert_array_equal(fwdad.jvp(f, X, X)[0], f(X))
    assert_array_equal(fwdad.jit(f, backend="numpy")(X), f(X))
    assert_allclose(fwdad.jacobian(f, X), central_differences(f, X), atol=1e-8)

"""Programs that are refused for their arrays."""

import numpy as np
import scipy.sparse

import fwdad
from tests.frontend.refused.table import Refused, V

PROGRAMS = refuses = Refused()


# -- what arrays have


@refuses("`.view(dtype)`", V, part="use astype")
def viewed(a):
    return a.view(np.int64)  # here


@refuses("`.resize` in place", V, part="in place")
def resized(a):
    b = a * 1.0
    b.resize((2, 2), refcheck=False)  # here
    return b


@refuses("setting `.shape`", V, part="`shape`")
def shape_set(a):
    b = a * 1.0
    b.shape = (2, 2)  # here
    return b


@refuses("`.strides`, `.base` and flags but `c_contiguous`", V, part="'strides'")
def strides(a):
    return a.strides[0] * a  # here


@refuses("`.strides`, `.base` and flags but `c_contiguous`", V, part="'flags'")
def flags(a):
    return a if a.flags.f_contiguous else 2 * a  # here


@refuses("`.strides`, `.base` and flags but `c_contiguous`", V, part="'base'")
def base(a):
    return a if a.base is None else 2 * a  # here


@refuses("`np.nditer`", V, part="nditer")
def nditer(a):
    return sum(float(x) for x in np.nditer(a))  # here


@refuses("`np.r_` with a directive", V, part="directive")
def directive(a):
    return np.r_["0,2", a, a]  # here


@refuses("`np.broadcast`", V, part="broadcast_arrays")
def broadcast(a):
    return np.broadcast(a, a).shape[0] * a  # here


@refuses("`np.pad` with a function", V, part="numpy.pad")
def padded(a):
    return np.pad(a, 1, lambda row, width, axis, options: None)  # here


@refuses("arrays of objects that NumPy makes of values", V, part="dtype object")
def objects(a):
    return np.array([a[0], None], object)[0] * 2  # here


RECORDS = np.zeros(2, [("x", float)])


@refuses("arrays of records", V)
def records(a):
    return a[:2] + RECORDS["x"]  # here


class Own(np.ndarray):
    pass


@refuses("arrays of a subclass, from outside, too", V, part="dtype or class")
def subclass(a):
    return a.view(Own) * 2  # here


_OUTSIDE = np.eye(2).view(Own)


@refuses("arrays of a subclass, from outside, too", V, part="give a plain array")
def subclass_from_outside(a):
    return _OUTSIDE * a[:2]  # here


@refuses("dates that are computed from values", V, part="timedelta64")
def dates(a):
    return a * (np.ones(len(a), int) * np.timedelta64(1, "D") / np.timedelta64(2, "D"))  # here


# -- dtypes

_DTYPES = (
    "functions whose result's dtype depends on values (`np.linalg.eig` and `np.emath` of real "
    "numbers, `np.poly` of complex ones, `np.roots`, `np.real_if_close`)"
)


@refuses(_DTYPES, V, part="depends on values")
def eigenvalues(a):
    return np.linalg.eig(np.outer(a, a))[0].real  # here


@refuses(_DTYPES, V, part="depends on values")
def roots(a):
    return np.roots(a).real  # here


@refuses(_DTYPES, V, part="its dtype is unknown")
def coefficients(a):
    return np.poly(a + 0j).real  # here


@refuses(_DTYPES, V, part="its dtype is unknown")
def of_a_matrix(a):
    return np.poly(np.outer(a, a) + 0j)  # here


@refuses(_DTYPES, V, part="depends on values")
def real_if_close(a):
    return np.real_if_close(a + 0j)  # here


@refuses(_DTYPES, V, part="")
def square_roots(a):
    return np.emath.sqrt(a)  # here


# -- stores

_FLAT = (
    "`a.flat[1:] = a[:-1]`, `np.place(a, m, a[1:])`: values stored one by one into the memory that "
    "they are in"
)


@refuses(_FLAT, V, part="store a copy")
def flat_into_itself(a):
    b = a * 1.0
    b.flat[1:] = b[:-1]  # here
    return b


@refuses(
    "`np.multiply.at` and other ufuncs' `at`, but `add` and `subtract`, at a tuple of arrays of "
    "several axes, or of arrays and slices, on arrays that carry derivatives",
    V,
    part="Write it as an assignment",
)
def derivative_of_at(a):
    def f(x):
        y = x[:, None] * 1.0
        np.multiply.at(y, (slice(2), [0]), 2.0)  # here
        return y

    return fwdad.jacobian(f, a)


_SPARSE = (
    "SciPy's sparse arrays that are made of values, "
    "and what is done with them and values but `A @ x`"
)


@refuses(_SPARSE, V, part="sparse arrays cannot be traced")
def sparse_made_inside(a):
    return scipy.sparse.diags_array(a) @ a  # here


@refuses(
    "derivatives, under `jit`, of a function that changes a list, dict or object which it is given",
    [1.0, 2.0], 3.0, part="changes a list, dict or object from outside",
)  # fmt: skip
def derivative_of_what_changes_a_list(items, x):
    def f(x):
        items[0] = x * x
        return items[0] * x

    return fwdad.grad(f)(x)

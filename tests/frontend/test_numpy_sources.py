"""NumPy's functions written in Python: traced in line, compiled whole, differentiated both ways."""

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UntraceableError
from fwdad.frontend.numpy_sources.table import SOURCES
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.opaque_call import Whole
from tests.differences import central_differences

X = np.array([0.3, -1.2, 0.7, 2.1, 0.45, -0.6])
MATRIX = np.array([[1.0, 0.2, 0.3], [0.5, 2.0, -0.3], [0.1, 0.7, 3.0]])
PLACES = np.array([0.0, 0.4, 1.5, 1.7, 3.0, 3.2])


def rows(x):
    return x.reshape(2, 3)


PROGRAMS = {
    "append": lambda x: np.append(x, x * 2),
    "apply_along_axis": lambda x: np.apply_along_axis(lambda r: r * np.sum(r), 1, rows(x)),
    "apply_along_axis to a number": lambda x: np.apply_along_axis(np.sum, 0, rows(x) ** 2),
    "array_split": lambda x: np.array_split(x, 4)[1] * x[0],
    "average": lambda x: np.average(x, weights=x * x),
    "average of rows": lambda x: np.average(rows(x), axis=1, weights=[1.0, 2.0, 4.0]),
    "block": lambda x: np.block([[rows(x), rows(x)], [rows(x) * 2, rows(x)]]),
    "corrcoef": lambda x: np.corrcoef(rows(x)),
    "cov": lambda x: np.cov(rows(x)),
    "cov of two": lambda x: np.cov(x, x * x),
    "delete": lambda x: np.delete(x, -2),
    "delete several": lambda x: np.delete(rows(x), [0, 2], axis=1),
    "diagflat": lambda x: np.diagflat(x, 1),
    "diff": lambda x: np.diff(x, 2),
    "diff of columns": lambda x: np.diff(rows(x) ** 2, axis=0),
    "ediff1d": lambda x: np.ediff1d(x * x, to_begin=x[0]),
    "fliplr": lambda x: np.fliplr(rows(x)) + np.flipud(rows(x)),
    "geomspace": lambda x: np.geomspace(x[0], x[3], 5),
    "gradient": lambda x: np.gradient(x * x),
    "gradient of second order": lambda x: np.gradient(x**2, 0.5, edge_order=2),
    "gradient at places": lambda x: np.gradient(x * x, PLACES),
    "gradient at active places": lambda x: np.gradient(PLACES, x + 3 * PLACES, edge_order=2),
    "gradient of columns": lambda x: np.gradient(rows(x), axis=0),
    "hsplit": lambda x: np.hsplit(x, 2)[1] ** 2,
    "insert": lambda x: np.insert(x, 2, x[0]),
    "insert a row": lambda x: np.insert(rows(x), 1, x[:3], axis=0),
    "insert several": lambda x: np.insert(x, [3, 1], x[:2]),
    "ix_": lambda x: rows(x)[np.ix_([0, 1], [0, 2])] * x[0],
    "linspace": lambda x: np.linspace(x[0], x[1], 7),
    "linspace of arrays": lambda x: np.linspace(x[:3], x[3:], 4, endpoint=False, axis=1),
    "logspace": lambda x: np.logspace(x[0], x[1], 4),
    "multi_dot": lambda x: np.linalg.multi_dot([rows(x), MATRIX, x.reshape(3, 2)]),
    "nanmedian": lambda x: np.nanmedian(rows(np.where(x > 2, np.nan, x)), axis=1),
    "nanpercentile": lambda x: np.nanpercentile(x, 30),
    "pad": lambda x: np.pad(rows(x), ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4))),
    "pad by the edge": lambda x: np.pad(x, (1, 2), mode="edge"),
    "pad by reflection": lambda x: np.pad(rows(x), ((1, 1), (2, 5)), mode="reflect"),
    "pad by symmetry": lambda x: np.pad(rows(x), ((3, 1), (2, 7)), mode="symmetric"),
    "pad around": lambda x: np.pad(x, (8, 7), mode="wrap"),
    "percentile": lambda x: np.percentile(x, [25, 50, 90]),
    "percentile as a number": lambda x: x[0] * isinstance(np.percentile(x, 37), float),
    "percentile of rows": lambda x: np.percentile(rows(x), 40, axis=1, keepdims=True),
    "percentile at active places": lambda x: np.percentile(x, 20 * x[3]),
    "quantile": lambda x: np.quantile(x, 0.3),
    "piecewise": lambda x: np.piecewise(x, [x < 0, x > 1], [lambda v: -v, lambda v: v * v, 7.0]),
    "poly": lambda x: np.poly(x[:3]),
    "polyadd": lambda x: np.polyadd(x[:3], x[2:]),
    "polyder": lambda x: np.polyder(x, 2),
    "polyfit": lambda x: np.polyfit(np.arange(6.0), x, 2),
    "polyint": lambda x: np.polyint(x, 2, k=[1.0, 2.0]),
    "polymul": lambda x: np.polymul(x[:3], x),
    "polyval": lambda x: np.polyval(x, x),
    "resize": lambda x: np.resize(x, (3, 4)),
    "rollaxis": lambda x: np.rollaxis(x.reshape(1, 2, 3), 2) ** 2,
    "rot90": lambda x: np.rot90(rows(x)) + np.rot90(rows(x), 3)[::-1],
    "split": lambda x: np.split(x, [1, 4])[1] ** 2,
    "trapezoid": lambda x: np.trapezoid(x * x, x),
    "trapezoid of rows": lambda x: np.trapezoid(rows(x), dx=0.5, axis=0),
    "tril_indices": lambda x: (x[:3, None] * x[:3])[np.tril_indices(3, -1)],
    "triu_indices of a length": lambda x: (x[:, None] * x)[np.triu_indices(len(x), 1)],
    "trim_zeros": lambda x: np.trim_zeros(np.where(x < 0.4, 0.0, x)),
    "trim_zeros of nothing": lambda x: x + np.sum(np.trim_zeros(x[x > 100.0])),
    "vander": lambda x: np.vander(x, 3, increasing=True),
    "views": lambda x: np.hamming(6) * x + np.kaiser(6, 3.0),
}


LINE = np.poly1d([1.5, -0.5])
POLYNOMIALS = {
    "polyadd": lambda x: np.polyadd(np.poly1d(x), LINE)(x[:2]),
    "polyadd to an array": lambda x: np.polyadd([1.0, 2.0], np.poly1d(x)).coeffs,
    "polysub": lambda x: np.polysub(np.poly1d(x), [1.0, 2.0])(0.3),
    "polymul": lambda x: np.polymul(np.poly1d(x), np.poly1d(x[:2])).coeffs,
    "polymul by an array": lambda x: np.polymul(np.poly1d(x), [1.0, 2.0])(0.3),
    "polyder": lambda x: np.polyder(np.poly1d(x), 2).coeffs,
    "polyint": lambda x: np.polyint(np.poly1d(x), 2, k=[x[0], 1.0])(0.3),
    "polyval": lambda x: np.polyval([1.0, 2.0, 3.0], np.poly1d(x))(0.3),
    "operators": lambda x: (np.poly1d(x) * LINE - np.poly1d(x[:3])).integ().deriv()(0.3),
}


@pytest.mark.parametrize("f", POLYNOMIALS.values(), ids=POLYNOMIALS)
def test_polynomials_stay_polynomials(f):
    slopes = central_differences(f, X)
    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-13)
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        assert_allclose(wrap(f)(X), slopes, rtol=1e-7, atol=1e-8)
        assert_allclose(fwdad.jit(wrap(f))(X), slopes, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jacobian(f, X, mode="forward", chunk=2), slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("part", [0, 1])
def test_a_quotient_of_polynomials(part):
    def f(x):
        return np.polydiv(np.poly1d(x[[0, 3, 1]]), LINE)[part](0.3)

    slopes = central_differences(f, X)
    assert_allclose(fwdad.jit(f)(X), f(X), rtol=1e-13)
    assert_allclose(fwdad.jacobian(f, X, mode="forward"), slopes, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jit(fwdad.jacfwd(f))(X), slopes, rtol=1e-7, atol=1e-8)


@pytest.mark.slow_cases("gradient at active places", "corrcoef", "cov of two")
@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_values_and_derivatives(f):
    expected = f(X)
    value = fwdad.jit(f, backend="numpy")(X)
    assert np.shape(value) == np.shape(expected)
    assert np.result_type(value) == np.result_type(expected)
    assert_allclose(value, expected, rtol=1e-13, atol=1e-14)
    slopes = central_differences(f, X)
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        found = fwdad.jit(wrap(f), backend="numpy")(X)
        assert_allclose(found, slopes, rtol=1e-7, atol=1e-8)


WITH_PIECES = {"polyfit", "polymul", "vander"}  # those have rules that are run whole


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in WITH_PIECES])
def test_nothing_is_left_to_numpy(name):
    numba_source = pytest.importorskip("fwdad.codegen.loops.source").numba_source
    for f in (PROGRAMS[name], fwdad.jacfwd(PROGRAMS[name])):
        program = trace(f, X).program
        whole = [
            op for op in program.walk() if isinstance(op, Apply) and isinstance(op.function, Whole)
        ]
        assert not whole
        numba_source(program)


def test_compiled():
    pytest.importorskip("numba")

    def f(x):
        padded = np.pad(rows(x), 1, mode="reflect")
        slopes = np.gradient(padded, axis=1)
        return np.percentile(slopes, 40) * np.trapezoid(x, PLACES) + np.cov(x, x * x)[0, 1]

    for g in (f, fwdad.grad(f)):
        compiled = fwdad.jit(g)
        assert_allclose(compiled(X), g(X), rtol=1e-12)
        assert "NumPy" not in str(fwdad.explain(compiled, X))


def test_other_arguments_are_left_to_numpy():
    """What a source does not know is one operation, with NumPy's own return."""
    for f in (
        lambda x: np.pad(x, 2, mode="linear_ramp"),
        lambda x: np.quantile(x, 0.3, method="nearest"),
        lambda x: np.gradient(x, axis=(0,)),
    ):
        assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X), rtol=1e-15)


def test_exceptions_are_those_of_numpy():
    for f, error in (
        (lambda x: np.delete(x, 6), IndexError),
        (lambda x: np.split(x, 4), ValueError),
        (lambda x: np.quantile(x, 2 * x[3]), ValueError),
        (lambda x: np.gradient(x[:1]), ValueError),
    ):
        for run in (f, fwdad.jit(f, backend="numpy")):
            with pytest.raises(error):
                run(X)


def test_every_source_stands_for_a_function_without_a_rule():
    from fwdad.rules.core.registry import find_rule

    assert not [f for f in SOURCES if find_rule(f) is not None]


def test_shapes_are_compared():
    def f(x, y):
        if x.shape != y.shape:
            raise ValueError("shapes")
        return x * y if x.shape == (6,) else x + y

    run = fwdad.jit(f, backend="numpy")
    assert_allclose(run(X, X), X * X)
    assert_allclose(run(X[:2], X[:2]), 2 * X[:2])
    with pytest.raises(ValueError, match="shapes"):
        run(X, X[:1])
    with pytest.raises(ValueError, match="shapes"):
        run(X, X[:4])


def test_axes_may_be_globals():
    assert_allclose(
        fwdad.jit(lambda x: np.expand_dims(rows(x), AXIS), backend="numpy")(X), [rows(X)]
    )
    assert "np.sum" in fwdad.show(fwdad.jit(lambda x: np.sum(rows(x), AXIS), backend="numpy"), X)


AXIS = 0


def flat_elements(x):
    m, total = rows(x).copy(), 0.0
    for v in m.flat:
        total = total + v**2
    m.flat[4] = x[0] * x[1]
    m.flat[-1] *= 2
    for k in range(3):
        m.T.flat[k] = m[0, k] * x[k]
    return m * total + m.T.flat[1:3].sum() + len(m.flat)


def test_flat():
    assert_allclose(fwdad.jit(flat_elements, backend="numpy")(X), flat_elements(X), rtol=1e-14)
    for wrap in (fwdad.jacfwd, fwdad.jacrev):
        found = fwdad.jit(wrap(flat_elements), backend="numpy")(X)
        assert_allclose(found, central_differences(flat_elements, X), rtol=1e-7, atol=1e-8)
    with pytest.raises(IndexError):
        fwdad.jit(lambda x, k: rows(x).copy().flat.__setitem__(k, 0.0), backend="numpy")(X, 6)


def least_squares_steps(x):
    """What a loop leaves in a name is no array before its first iteration."""
    p = x[:2].copy()
    for _ in range(4):
        m = p[0] * np.exp(-p[1] * PLACES)
        slopes = np.stack([np.exp(-p[1] * PLACES), -PLACES * m], axis=1)
        p = p - 0.3 * np.linalg.lstsq(slopes, m - np.cos(PLACES) * x[2], rcond=None)[0]
    return p


def test_lengths_are_not_asked_of_what_is_not_there_yet():
    found = fwdad.jit(fwdad.jacfwd(least_squares_steps), backend="numpy")(X)
    assert_allclose(found, fwdad.jacobian(least_squares_steps, X, mode="forward"), rtol=1e-9)


def test_an_identity_of_unknown_size_is_one_operation():
    assert "np.eye(" in fwdad.show(fwdad.jit(lambda x: np.eye(len(x)) * x, backend="numpy"), X)


ARRAYS = (X, rows(X), np.arange(24.0).reshape(2, 3, 4), np.array([3, 1, 4, 1, 5]), X.astype("f4"),
          X[:1], X[:3] + 1j)  # fmt: skip
FORMS = (
    lambda a: np.append(a, a),
    lambda a: np.array_split(a, 2, axis=-1)[0],
    lambda a: np.average(a, axis=0, returned=True)[1],
    lambda a: np.cov(a),
    lambda a: np.diff(a, 2, prepend=0),
    lambda a: np.diff(a > 1, axis=0, append=a[:1] > 2),
    lambda a: np.histogram(a, bins=[0, 2, 3], weights=a)[0],
    lambda a: np.histogram(a, bins=2, weights=np.ravel(a)[:3])[0],
    lambda a: np.histogram(a, bins=[0, 3, 2])[0],
    lambda a: np.delete(a, [0], axis=-1),
    lambda a: np.delete(a, slice(0, 2)),
    lambda a: np.ediff1d(a),
    lambda a: np.gradient(a, axis=0),
    lambda a: np.histogram(a, bins=3)[1],
    lambda a: np.histogram(a, bins=[0, 1, 2.5], density=True)[0],
    lambda a: np.insert(a, -1, 5, axis=-1),
    lambda a: np.insert(a, [0, 1], 7),
    lambda a: np.isin(a, [1, 4], invert=True),
    lambda a: np.ix_(a > 0)[0],
    lambda a: np.linspace(a[0], 3, 4, dtype=int),
    lambda a: np.linspace(a, a + 2, 1),
    lambda a: np.nanmedian(a, axis=0),
    lambda a: np.nanquantile(a, 0.2, axis=-1, keepdims=True),
    lambda a: np.pad(a, 2, mode="symmetric"),
    lambda a: np.pad(a, (2, 1), constant_values=7),
    lambda a: np.percentile(a, 30),
    lambda a: np.percentile(a, [0, 50, 100], axis=0),
    lambda a: np.piecewise(a, [a > 1, a < 0], [1, lambda v: v * 2, 5]),
    lambda a: np.poly(a.real),
    lambda a: np.polymul(a, a),
    lambda a: np.resize(a, (2, 9)),
    lambda a: np.rot90(a, -1),
    lambda a: np.std(a, axis=0),
    lambda a: np.tile(a, (2, 1, 2)),
    lambda a: np.trapezoid(a, dx=2),
    lambda a: np.trim_zeros(a),
    lambda a: np.array(a, ndmin=3),
    lambda a: a.shape == (6,),
)


@pytest.mark.parametrize("f", FORMS)
def test_values_types_and_exceptions_of_many_arrays(f):
    for a in ARRAYS:
        try:
            expected = f(a)
        except Exception as error:
            with pytest.raises((type(error), fwdad.errors.UntraceableError)):
                fwdad.jit(f, backend="numpy")(a)
            continue
        found = fwdad.jit(f, backend="numpy")(a)
        assert np.shape(found) == np.shape(expected)
        assert np.result_type(found) == np.result_type(expected)
        assert_allclose(found, expected, rtol=1e-6 if a.dtype == np.float32 else 1e-13, atol=1e-14)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("x", [
    np.ones(2, np.float16), np.ones(3, np.float32), np.array([True]), np.array([1, 2], np.int8),
    np.arange(4.0).reshape(2, 2),
])  # fmt: skip
def test_coefficients_from_roots(x, backend):
    if x.dtype == np.float16 and backend == "numba":
        return  # Numba has none
    found, wanted = fwdad.jit(lambda x: np.poly(x), backend=backend)(x), np.poly(x)
    assert_allclose(found, wanted, atol=1e-15)
    assert getattr(found, "dtype", type(found)) == getattr(wanted, "dtype", type(wanted))


def test_coefficients_from_complex_roots():
    def size(z):
        return np.abs(np.poly(z)).sum()

    z = np.array([1 + 1j, 2 - 1j])
    with pytest.raises(UntraceableError, match="dtype is unknown"):
        fwdad.jit(lambda z: np.poly(z).real)(z)
    assert_allclose(fwdad.grad(fwdad.jit(size))(z), fwdad.grad(size)(z))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("f", [
    lambda x: x.conj(), lambda x: x[0].conj(), lambda x: x[0].item().conjugate(),
    lambda x: x[0].item().real, scipy.linalg.toeplitz,
])  # fmt: skip
@pytest.mark.parametrize("x", [np.array([True, False]), np.arange(2), np.array([0.5, 1 - 2j])])
def test_conjugates(f, x, backend):
    found, wanted = fwdad.jit(lambda x: f(x), backend=backend)(x), f(x)
    assert type(found) is type(wanted)
    assert getattr(found, "dtype", None) == getattr(wanted, "dtype", None)
    assert_allclose(found, wanted)

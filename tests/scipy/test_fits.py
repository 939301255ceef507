"""``curve_fit`` and ``least_squares``: certified results, SciPy's options, and how often f runs."""

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg
from numpy.testing import assert_allclose

import fwdad
from fwdad import scipy as door
from fwdad.errors import MissingRuleError
from tests.scipy.problems import STRD, counted, misra1a, powell_singular


@pytest.mark.every(2, of="compiled", first=1)
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("name", STRD)
def test_certified_fits(name, start, way):
    model, (x, y), starts, certified, deviations, squares = STRD[name]
    tight = {"xtol": 1e-14, "ftol": 1e-14, "maxfev": 10000}
    best, covariance, info, _, _ = door.curve_fit(
        model, x, y, starts[start], full_output=True, **tight
    )
    assert_allclose(best, certified, rtol=1e-6)
    assert_allclose(np.sum(info["fvec"] ** 2), squares, rtol=1e-9)
    # MINPACK's covariance is that of its last Jacobian but one step
    assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=1e-3)


def decay(t, amplitude, rate, offset):
    return amplitude * np.exp(-rate * t) + offset


def decay_jac(t, amplitude, rate, offset):
    fall = np.exp(-rate * t)
    return np.column_stack([fall, -amplitude * t * fall, np.ones_like(t)])


T = np.linspace(0, 4, 60)
DATA = decay(T, 2.5, 1.3, 0.5) + 0.02 * np.sin(37 * T)
SPREAD = 0.1 + 0.05 * T
COVARIANCE = 0.04 * np.exp(-np.abs(T[:, None] - T) / 0.3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"p0": [1, 1, 0]},  # ints
        {"method": "trf"},
        {"method": "dogbox", "p0": (1, 1, 0)},
        {"bounds": ([0, 0, 0], [3, 1, 2])},
        {"bounds": scipy.optimize.Bounds([0, 0, 0], [3, 1, 2])},
        {"sigma": SPREAD},
        {"sigma": SPREAD, "absolute_sigma": True},
        {"sigma": COVARIANCE, "method": "trf"},
        {"method": "trf", "loss": "soft_l1", "f_scale": 0.01},
        {"method": "trf", "x_scale": [1, 2, 1]},
        {"xtol": 1e-12, "maxfev": 50},
        {"col_deriv": 1},
    ],
    ids=str,
)
def test_options_are_scipys(options):
    """The result is SciPy's with the Jacobian written by hand, number for number but rounding."""
    by_hand = {key: value for key, value in options.items() if key != "col_deriv"}
    found = door.curve_fit(decay, T, DATA, **options)
    expected = scipy.optimize.curve_fit(decay, T, DATA, jac=decay_jac, **by_hand)
    assert_allclose(found[0], expected[0], rtol=1e-9)
    assert_allclose(found[1], expected[1], rtol=1e-6)


def test_fewer_runs_than_by_differences():
    f, runs = counted(decay)
    door.curve_fit(f, T, DATA, p0=[1, 1, 0])
    differences, runs_of_differences = counted(decay)
    scipy.optimize.curve_fit(differences, T, DATA, p0=[1, 1, 0])
    assert 0 < len(runs) < len(runs_of_differences)


def test_kinds_of_xdata():
    def plane(x, a, b):
        return a * x[0] + b * x[1]

    u, v = np.array([1.0, 2, 3, 4]), np.array([1.0, 0, 2, 1])
    for x in ((u, v), [u, v], np.array([u, v])):
        assert_allclose(door.curve_fit(plane, x, 2 * u - v)[0], [2, -1], atol=1e-9)

    class Points:
        t = u

    model = lambda x, a, b: a * (u if x is None else x.t) + b  # noqa: E731
    for x in (None, Points()):
        assert_allclose(door.curve_fit(model, x, 3 * u + 1)[0], [3, 1], atol=1e-9)


def test_missing_data_and_constant_models():
    holes = np.where(T > 3, np.nan, DATA)
    found = door.curve_fit(decay, T, holes, nan_policy="omit")[0]
    kept = T <= 3
    assert_allclose(found, scipy.optimize.curve_fit(decay, T[kept], DATA[kept])[0], rtol=1e-5)
    with pytest.raises(ValueError, match="NaN"):
        door.curve_fit(decay, T, holes)
    for method in ("lm", "trf"):
        mean = door.curve_fit(lambda x, a: a, T, DATA, method=method)[0]
        assert_allclose(mean, [np.mean(DATA)], rtol=1e-9)
    mean = door.curve_fit(lambda x, a: a, T, holes, nan_policy="omit")[0]
    assert_allclose(mean, [np.mean(DATA[kept])], rtol=1e-9)


def test_an_own_jacobian_is_called():
    jac, calls = counted(decay_jac)
    f, runs = counted(decay)
    _, _, info, _, _ = door.curve_fit(f, T, DATA, p0=[1, 1, 0], jac=jac, full_output=True)
    assert len(calls) > 0
    assert len(runs) <= info["nfev"] + 1  # and nothing is differentiated


@pytest.mark.parametrize("method", ["lm", "trf", "dogbox"])
def test_differences_may_be_asked_for(method):
    found = door.curve_fit(decay, T, DATA, method=method, jac="2-point")
    expected = scipy.optimize.curve_fit(decay, T, DATA, method=method)
    assert_allclose(found[0], expected[0], rtol=0)


def through_bytes(x):
    """The same numbers by way of their bytes, which carry no derivative."""
    x = np.asarray(x, float)
    return np.frombuffer(x.tobytes()).reshape(x.shape)


def table(x, a, b):
    """A model that has no derivative in b."""
    return a * np.interp(x, np.arange(5.0), through_bytes(np.arange(5) * b))


@pytest.mark.parametrize("method", ["lm", "trf"])
def test_what_has_no_derivative_says_how_to_go_on(method):
    y = 2 * T
    with pytest.raises((MissingRuleError, fwdad.errors.DualLeakError)) as caught:
        door.curve_fit(table, T, y, p0=[1, 1], method=method)
    assert caught.value.filename == __file__
    assert "tobytes" in caught.value.text
    assert caught.value.__notes__ == [
        "fwdad.scipy.curve_fit fills in jac. jac='2-point' takes finite differences instead"
    ]
    best = door.curve_fit(table, T, y, p0=[1, 1], method=method, jac="2-point")[0]
    assert_allclose(np.prod(best), 2, rtol=1e-6)


def residuals(x, scale=10.0, *, shift=1.0):
    return [scale * (x[1] - x[0] ** 2), shift - x[0]]


def residuals_jac(x, scale=10.0, *, shift=1.0):
    return np.array([[-2 * scale * x[0], scale], [-1.0, 0]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"method": "lm"},
        {"method": "dogbox", "bounds": ([-2, -2], [0.5, 5])},
        {"bounds": ([-2, -2], [0.5, 5])},
        {"args": (3.0,), "kwargs": {"shift": 2.0}},
        {"loss": "huber", "f_scale": 0.1},
        {"loss": "cauchy"},
        {"loss": lambda z: np.array([z, np.ones_like(z), np.zeros_like(z)])},
        {"x_scale": "jac"},
        {"tr_solver": "lsmr"},
        {"max_nfev": 3},
    ],
    ids=lambda options: " ".join(options) or "none",
)
def test_least_squares_is_scipys(options):
    found = door.least_squares(residuals, [-1, 2], **options)
    expected = scipy.optimize.least_squares(residuals, [-1, 2], residuals_jac, **options)
    assert type(found) is type(expected)
    assert_allclose(found.x, expected.x, rtol=1e-7, atol=1e-10)
    assert_allclose(found.jac, expected.jac, rtol=1e-7)
    assert (found.nfev, found.njev, found.status) == (expected.nfev, expected.njev, expected.status)


def test_many_unknowns_are_matrix_free(capsys):
    n = 200

    def chain(x):
        return np.concatenate([10 * (x[1:] - x[:-1] ** 2), 1 - x[:-1]])

    def dense_chain(x):
        return chain(x) + 1e-6 * np.mean(x - 1) ** 2

    found = door.least_squares(chain, np.full(n, 0.8), tr_solver="lsmr", verbose=1)
    assert_allclose(found.x, np.ones(n), rtol=1e-6)
    assert isinstance(found.jac, scipy.sparse.csr_array)
    assert "fwdad: jac is a sparse matrix, by 2 directions" in capsys.readouterr().out
    free = door.least_squares(dense_chain, np.full(n, 0.8), tr_solver="lsmr", verbose=1)
    assert_allclose(free.x, np.ones(n), rtol=1e-6)
    assert isinstance(free.jac, scipy.sparse.linalg.LinearOperator)
    assert "fwdad: jac is a LinearOperator" in capsys.readouterr().out
    dense = door.least_squares(chain, np.full(n, 0.8))
    assert isinstance(dense.jac, np.ndarray)
    v = np.linspace(-1, 1, n)
    assert_allclose(found.jac @ v, fwdad.jacobian(chain, found.x) @ v, rtol=1e-9)


def test_options_of_differences_mean_differences(capsys):
    door.least_squares(residuals, [-1, 2], jac_sparsity=np.ones((2, 2)), verbose=1)
    assert "fwdad: jac is by SciPy's finite differences" in capsys.readouterr().out


def test_powell_by_marquardt():
    found = door.least_squares(powell_singular, [3, -1, 0, 1], xtol=None, ftol=None, gtol=1e-12)
    assert np.max(np.abs(found.x)) < 1e-3
    assert found.cost < 1e-12


def test_scipys_messages_stay():
    with pytest.raises(ValueError, match="x0` must be real"):
        door.least_squares(residuals, [1j, 2])
    with pytest.raises(ValueError, match="method` must be"):
        door.least_squares(residuals, [1, 2], method="bfgs")
    with pytest.raises(ValueError, match="only works for unconstrained"):
        door.curve_fit(decay, T, DATA, method="lm", bounds=(0, 3))
    with pytest.raises(TypeError, match="must not exceed"):
        door.curve_fit(decay, T[:2], DATA[:2])


def test_a_plain_jacobian_for_scipys_own_function():
    x, y = STRD["Misra1a"][1]
    jac = fwdad.jacfwd(misra1a, argnums=(1, 2), stack=True)
    best = scipy.optimize.curve_fit(misra1a, x, y, p0=[250.0, 0.0005], jac=jac)[0]
    assert_allclose(best, STRD["Misra1a"][3], rtol=1e-6)

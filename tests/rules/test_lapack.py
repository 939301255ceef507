"""NumPy's own LAPACK: the bits of numpy.linalg.solve, and factors that are used again."""

import ctypes

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules.core import lapack as module
from fwdad.rules.core.define import call_rule
from fwdad.rules.core.lapack import cholesky_tangent, solve_and_factorize
from fwdad.rules.core.numpy_lapack import NumpyLapack, agrees, numpy_lapack
from fwdad.rules.core.scipy_lapack import SciPyLapack
from fwdad.tangents.chunk import Chunk
from tests.rules.case import Draw

draw = Draw(21)
SIZES = (1, 2, 3, 5, 8, 13, 16, 17, 31, 40, 64, 65, 100, 128, 200)


@pytest.fixture(params=["numpy", "scipy"])
def library(request, monkeypatch):
    """Both ways to LAPACK, whichever this build of NumPy would take."""
    if request.param == "numpy" and not isinstance(module.lapack(), NumpyLapack):
        pytest.skip("the LAPACK of this NumPy is out of reach")
    chosen = module.lapack() if request.param == "numpy" else SciPyLapack()
    monkeypatch.setattr(module, "lapack", lambda: chosen)
    return chosen


@pytest.mark.parametrize("dtype", ["d", "f", "D", "F", "l"])
@pytest.mark.parametrize("columns", [None, 1, 2, 7])
def test_the_solution_is_numpys_to_the_last_bit(library, dtype, columns):
    for n in SIZES:
        a, b = (
            9 * draw.complex(n, n),
            9 * draw.complex(*((n,) if columns is None else (n, columns))),
        )
        if dtype in "dfl":
            a, b = a.real, b.real
        a, b = a.astype(dtype) + 40 * np.eye(n, dtype=dtype), b.astype(dtype)
        for layout in (np.ascontiguousarray, np.asfortranarray):
            x, _ = solve_and_factorize(layout(a), layout(b))
            want = np.linalg.solve(layout(a), layout(b))
            assert x.dtype == want.dtype
            assert x.flags.writeable
            assert_array_equal(x, want)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("columns", [None, 3])
@pytest.mark.parametrize("n_lanes", [1, 4])
def test_the_factors_solve_for_every_lane(library, complex_, columns, n_lanes):
    n = 6
    a = draw.regular(n, n, complex=complex_)
    shape = (n,) if columns is None else (n, columns)
    make = draw.complex if complex_ else draw.real
    lanes = make(n_lanes, *shape)
    _, factors = solve_and_factorize(a, make(*shape))
    x_dot = factors.solve(Chunk(lanes))
    assert x_dot.shape == shape
    for k in range(n_lanes):
        assert_allclose(a @ x_dot.lanes[k], lanes[k], atol=1e-12)


def test_real_lanes_of_a_complex_system(library):
    a, b = draw.regular(4, 4, complex=True), draw.complex(4)
    lanes = draw.real(2, 4)
    _, factors = solve_and_factorize(a, b)
    assert_allclose((a @ factors.solve(Chunk(lanes)).lanes.T).T, lanes, atol=1e-12)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("n", [1, 2, 5, 40, 64, 65, 131, 200])
def test_the_tangent_of_a_cholesky_factor_solves_its_equation(library, n, complex_):
    a = draw.definite(n, n, complex=complex_)
    lower = np.linalg.cholesky(a)
    lanes = draw.complex(2, n, n) if complex_ else draw.real(2, n, n)
    kept = lanes.copy()
    lower_dot = cholesky_tangent(lower, Chunk(lanes)).lanes
    assert_array_equal(lanes, kept)
    assert_array_equal(lower_dot, np.tril(lower_dot))
    # only the lower triangle of the lanes counts, and of their diagonal the real part
    strict = np.tril(lanes, -1)
    a_dot = strict + np.conj(np.swapaxes(strict, 1, 2)) + np.real(lanes) * np.eye(n)
    product = lower_dot @ np.conj(lower.T)
    assert_allclose(product + np.conj(np.swapaxes(product, 1, 2)), a_dot, atol=1e-10)


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("layout", [np.ascontiguousarray, np.asfortranarray])
def test_what_is_above_the_diagonal_is_never_read(library, complex_, layout):
    """Not even multiplied by zero; in lanes of any layout."""
    n = 131
    lower = np.linalg.cholesky(draw.definite(n, n, complex=complex_))
    lanes = draw.complex(2, n, n) if complex_ else draw.real(2, n, n)
    clean = cholesky_tangent(lower, Chunk(np.tril(lanes))).lanes
    lanes[:, np.triu(np.ones((n, n), bool), 1)] = np.nan
    assert_array_equal(cholesky_tangent(lower, Chunk(layout(lanes))).lanes, clean)


def test_a_singular_matrix_raises_as_numpy_does(library):
    for a in (np.zeros((2, 2)), np.array([[1.0, 2.0], [2.0, 4.0]]), np.zeros((2, 2), complex)):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            solve_and_factorize(a, np.ones(2))


def test_one_factorisation_for_the_primal_and_every_lane(monkeypatch):
    if not isinstance(module.lapack(), NumpyLapack):
        pytest.skip("the LAPACK of this NumPy is out of reach")
    made = []
    gesv = NumpyLapack.gesv
    monkeypatch.setattr(NumpyLapack, "gesv", lambda *args: made.append("gesv") or gesv(*args))
    solve = np.linalg.solve

    def counted(*args):
        made.append("solve")
        return solve(*args)

    monkeypatch.setattr(np.linalg, "solve", counted)
    a, b = draw.regular(5, 5), draw.real(5)
    for n in (1, 2, 5, 32):
        made.clear()
        tangents = Chunk(draw.real(n, 5, 5)), Chunk(draw.real(n, 5))
        (call_rule(solve, (a, b), tangents)[1]).lanes  # noqa: B018  (multiplied out)
        assert made == ["gesv"]


def test_a_library_without_the_symbols_is_not_used(monkeypatch):
    class Nothing:
        def __init__(self, _path):
            pass

    monkeypatch.setattr(ctypes, "CDLL", Nothing)
    assert numpy_lapack() is None


def test_a_library_that_returns_otherwise_is_not_used(library):
    class Wrong:
        def __getattr__(self, name):
            return getattr(library, name)

        def gesv(self, a, b):
            x, factors = library.gesv(a, b)
            return x * (1 + 2**-52), factors

    assert agrees(library)
    assert not agrees(Wrong())


def test_threads_share_nothing():
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    systems = [(draw.regular(30, 30), draw.real(30)) for _ in range(40)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda s: fwdad.jvp(np.linalg.solve, s[0], s[0], args=(s[1],)), systems)
        )
    for (a, b), (x, x_dot) in zip(systems, answers, strict=True):
        assert_array_equal(x, np.linalg.solve(a, b))
        assert_allclose(x_dot, -x, rtol=1e-9)

"""The rules of scipy.linalg are written onto tapes: same derivatives, and no call is run whole."""

import numpy as np
import pytest
import scipy.linalg as sl
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UndefinedDerivativeError
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Apply
from fwdad.ir.primitives.opaque_call import Whole
from tests.differences import central_differences

X = np.array([0.7, 0.4])
FIXED = np.array([[0.3, -0.2, 0.1], [0.5, -0.1, 0.4], [-0.3, 0.2, 0.6]])
WEIGHTS = np.array([[1.0, -0.5, 0.3], [0.7, 0.2, -1.1], [0.4, 1.3, 0.6]])
REAL_OR_COMPLEX = [0.0, 0.3j]


def matrix(x, turn=0.0):
    """No triangle is that of the other; with ``turn`` complex."""
    a = FIXED * np.sin(x[0]) + FIXED.T @ FIXED * x[1] + np.diag(np.array([3.0, 4.0, 5.5]))
    return a + turn * (x[0] * FIXED.T - x[1] * FIXED) if turn else a


def vector(x):
    return np.stack([x[0], x[1] ** 2, x[0] * x[1]])


def columns(x):
    return np.stack([vector(x), np.cos(vector(x))], axis=1)


def tall(x):
    return np.concatenate((matrix(x), x[0] * FIXED[:1], x[1] * FIXED[1:2]))


def band(a):
    weight = np.array([[0.3], [1.0], [0.3]])
    return a[[0, 2, 1]] * weight + np.array([[0.0], [5.0], [0.0]])


PROGRAMS = {
    "cholesky": lambda a, x: sl.cholesky(a),
    "cholesky, lower": lambda a, x: sl.cholesky(a, lower=True),
    "cho_factor": lambda a, x: sl.cho_factor(a)[0],
    "cho_solve": lambda a, x: sl.cho_solve(sl.cho_factor(a), vector(x)),
    "cho_solve, lower": lambda a, x: sl.cho_solve(sl.cho_factor(a, lower=True), columns(x)),
    "cho_solve of any matrix": lambda a, x: sl.cho_solve((a, False), vector(x)),
    "det": lambda a, x: sl.det(a),
    "eigh": lambda a, x: sl.eigh(a, lower=False)[0],
    "eigh, vectors": lambda a, x: np.abs(sl.eigh(a)[1]) ** 2,
    "eigh, a subset": lambda a, x: np.abs(sl.eigh(a, subset_by_index=[1, 2])[1]) ** 2,
    "eigvalsh, a subset": lambda a, x: sl.eigvalsh(a, subset_by_index=[0, 1]),
    "eigh, generalised": lambda a, x: sl.eigh(a, matrix(vector(x)))[0],
    "eigvalsh": lambda a, x: sl.eigvalsh(a),
    "expm": lambda a, x: sl.expm(0.3 * a),
    "expm, scaled": lambda a, x: 1e-3 * sl.expm(1.2 * a),
    "inv": lambda a, x: sl.inv(a),
    "inv of a stack": lambda a, x: sl.inv(np.stack([a, 2.0 * a]))[1],
    "logm": lambda a, x: sl.logm(a),
    "lstsq": lambda a, x: sl.lstsq(a, columns(x))[0],
    "lu": lambda a, x: sl.lu(a[::-1])[1] + sl.lu(a[::-1])[2],
    "lu, permuted": lambda a, x: sl.lu(a[::-1], permute_l=True)[0],
    "lu_solve": lambda a, x: sl.lu_solve(sl.lu_factor(a[::-1]), columns(x)),
    "lu_solve, transposed": lambda a, x: sl.lu_solve(sl.lu_factor(a[::-1]), vector(x), trans=1),
    "norm": lambda a, x: sl.norm(a),
    "norm, 2": lambda a, x: sl.norm(a, 2),
    "pinv": lambda a, x: sl.pinv(a),
    "pinvh": lambda a, x: sl.pinvh(a, lower=False),
    "polar": lambda a, x: sl.polar(a)[0],
    "qr": lambda a, x: sl.qr(a, mode="economic")[1],
    "qr, pivoting": lambda a, x: sl.qr(a, pivoting=True)[0],
    "qr, r": lambda a, x: sl.qr(a, mode="r")[0],
    "solve": lambda a, x: sl.solve(a, columns(x)),
    "solve, pos": lambda a, x: sl.solve(a, vector(x), assume_a="pos", lower=True),
    "solve, sym": lambda a, x: sl.solve(a, vector(x), assume_a="sym"),
    "solve_banded": lambda a, x: sl.solve_banded((1, 1), band(a), vector(x)),
    "solve_triangular": lambda a, x: sl.solve_triangular(a, columns(x)),
    "solve_triangular, C": lambda a, x: sl.solve_triangular(a, vector(x), trans="C", lower=True),
    "solve_triangular, T": lambda a, x: sl.solve_triangular(a, vector(x), 1, unit_diagonal=True),
    "solve_sylvester": lambda a, x: sl.solve_sylvester(a, a.T, a),
    "solve_continuous_lyapunov": lambda a, x: sl.solve_continuous_lyapunov(a, a @ a),
    "solve_discrete_lyapunov": lambda a, x: sl.solve_discrete_lyapunov(0.1 * a, a @ a),
    "solve_continuous_are": lambda a, x: sl.solve_continuous_are(
        a, columns(x), 2 * np.eye(3) + 0 * a, np.eye(2)
    ),
    "solve_discrete_are": lambda a, x: sl.solve_discrete_are(
        0.3 * a, columns(x), np.eye(3), np.eye(2)
    ),
    "sqrtm": lambda a, x: sl.sqrtm(a),
    "svd": lambda a, x: sl.svd(a)[1],
    "svd, vectors": lambda a, x: np.abs(sl.svd(a)[0]) ** 2,
    "svdvals": lambda a, x: sl.svdvals(a),
    "toeplitz": lambda a, x: sl.toeplitz(a[0], a[1]) + sl.toeplitz(a[2]),
    "hankel": lambda a, x: sl.hankel(a[0], a[1]) + sl.hankel(a[2]),
    "circulant": lambda a, x: sl.circulant(a[1]),
}
REAL_PROGRAMS = {
    "qr of a tall matrix": lambda x: sl.qr(tall(x), mode="economic")[0][:3],
    "qr of a wide matrix": lambda x: sl.qr(tall(x).T, mode="economic")[1][:, 2:],
    "lu of a tall matrix": lambda x: sl.lu(tall(x)[::-1])[1][2:],
    "lu_factor of a tall matrix": lambda x: sl.lu_factor(tall(x)[::-1])[0][2:],
    "pinv of a tall matrix": lambda x: sl.pinv(tall(x))[:, :3],
    "lstsq, residuals": lambda x: sl.lstsq(tall(x), np.concatenate((vector(x), x)))[1],
    "lstsq by gelsy": lambda x: sl.lstsq(
        tall(x), np.concatenate((vector(x), x)), lapack_driver="gelsy"
    )[0],
    "solve, transposed": lambda x: sl.solve(matrix(x), vector(x), transposed=True),
    "solveh_banded": lambda x: sl.solveh_banded(
        matrix(x)[[0, 2]] * np.array([[0.3], [1.0]]) + np.array([[0.0], [5.0]]), columns(x)
    ),
    "det of a singular matrix": lambda x: sl.det(np.outer(vector(x), vector(x)) + 0.0 * x[0]),
}
CASES = [
    *(
        pytest.param(
            lambda x, f=f, turn=turn: f(matrix(x, turn), x), id=f"{name}{', complex' * bool(turn)}"
        )
        for name, f in PROGRAMS.items()
        for turn in REAL_OR_COMPLEX
    ),
    *(pytest.param(f, id=name) for name, f in REAL_PROGRAMS.items()),
]


def weighed(f):
    def number(x):
        y = f(x)
        shape = np.shape(y)
        w = np.ravel(WEIGHTS)[: np.size(y)].reshape(shape) if shape else 1.0
        return np.sum(w * (np.real(y) + np.real(y) ** 2 + 2.0 * np.imag(y)))

    return number


def whole_calls(f):
    """The functions that a program runs whole."""
    program = trace(f, X).program
    return [op for op in program.walk() if isinstance(op, Apply) and isinstance(op.function, Whole)]


@pytest.mark.parametrize("f", CASES)
@pytest.mark.every(4)
def test_derivatives_on_tapes(f):
    f = weighed(f)
    want = central_differences(f, X)
    on_duals = fwdad.jacobian(f, X, mode="forward")
    assert_allclose(on_duals, want, rtol=1e-6, atol=1e-7)

    def on_tape(g):
        return fwdad.jit(g, backend="numpy")(X)

    assert_allclose(on_tape(f), f(X), rtol=1e-12)
    assert_allclose(on_tape(fwdad.grad(f)), on_duals, rtol=1e-9, atol=1e-11)
    assert_allclose(on_tape(fwdad.jacfwd(f)), on_duals, rtol=1e-9, atol=1e-11)
    second = central_differences(lambda x: fwdad.jacobian(f, x, mode="forward"), X)
    assert_allclose(on_tape(fwdad.hessian(f)), second, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("f", CASES)
@pytest.mark.every(4, first=1)
def test_no_call_is_run_whole(f, request):
    f = weighed(f)
    by_values = request.node.callspec.id in ("logm", "sqrtm")  # of real matrices may be complex
    assert bool(whole_calls(fwdad.grad(f))) is by_values
    assert bool(whole_calls(fwdad.jacfwd(f))) is by_values


def test_compiled():
    pytest.importorskip("numba")

    def f(x):
        p, total = np.eye(2) * x[0], 0.0
        for _ in range(5):
            p = p + 0.1 * np.outer(x, x)
            total += np.sum(sl.cholesky(p)) + np.sum(sl.inv(p)) + sl.det(p)
            total += np.sum(sl.cho_solve(sl.cho_factor(p), x) + sl.lu_solve(sl.lu_factor(p), x))
        return total

    want = central_differences(f, X)
    for derivative in (fwdad.grad(f), fwdad.jacfwd(f)):
        compiled = fwdad.jit(derivative)
        assert_allclose(compiled(X), want, rtol=1e-7)
        assert "pull_" not in str(fwdad.explain(compiled, X))
    second = central_differences(fwdad.grad(f), X)
    assert_allclose(fwdad.jit(fwdad.hessian(f))(X), second, rtol=1e-6)


def test_a_program_that_may_overwrite():
    def f(x):
        a, b = np.asfortranarray(matrix(x)), np.asfortranarray(columns(x))
        y = sl.solve(a, b, overwrite_a=True, overwrite_b=True)
        c = sl.cholesky(np.asfortranarray(matrix(x)), overwrite_a=True)
        return np.sum(y) + np.sum(c)

    want = central_differences(f, X)
    for derivative in (fwdad.grad(f), fwdad.jacfwd(f)):
        assert_allclose(fwdad.jit(derivative, backend="numpy")(X), want, rtol=1e-7)


@pytest.mark.parametrize(
    ("f", "error", "match"),
    [
        (lambda x: sl.cholesky(-matrix(x)), np.linalg.LinAlgError, "not positive definite"),
        (lambda x: sl.cholesky(matrix(x) * np.log(x[0] - 1.0)), ValueError, "infs or NaNs"),
        (lambda x: sl.solve(0.0 * matrix(x), vector(x)), np.linalg.LinAlgError, "singular"),
        (lambda x: sl.solve_triangular(matrix(x) * 0.0, vector(x)), np.linalg.LinAlgError, "singu"),
        (lambda x: sl.eigh(np.eye(3) * x[0])[1], UndefinedDerivativeError, "repeated"),
        (lambda x: sl.qr(np.outer(vector(x), vector(x)))[0], UndefinedDerivativeError, "dependent"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_exceptions(f, error, match):
    f = weighed(f)
    for derivative in (fwdad.grad(f), fwdad.jacfwd(f)):
        for run in (derivative, fwdad.jit(derivative, backend="numpy")):
            with pytest.raises(error, match=match):
                run(X)


def test_lengths_that_the_tape_does_not_know():
    def f(a, b):
        return np.sum(sl.cho_solve(sl.cho_factor(a @ a.T + np.eye(len(b))), b) ** 2)

    gradient = fwdad.jit(fwdad.grad(f), backend="numpy")
    for n in (3, 2, 4):
        a, b = np.sin(np.arange(n * n)).reshape(n, n), np.arange(1.0, n + 1)
        want = central_differences(lambda a, b=b: f(a, b), a)
        assert_allclose(gradient(a, b), want, rtol=1e-7, atol=1e-9)


def test_the_solver_of_a_user_s_rule_takes_a_tangent():
    """In a rule of the user's NumPy's functions meet symbols and tangents at once."""

    def solved(a, b):
        return np.linalg.solve(a, b)

    @fwdad.frule(solved)
    def rule(primals, tangents):
        (a, b), (a_dot, b_dot) = primals, tangents
        y = solved(a, b)
        return y, np.linalg.solve(a, b_dot - a_dot @ y)

    f = weighed(lambda x: solved(matrix(x), vector(x)))
    want = central_differences(f, X)
    for derivative in (fwdad.grad(f), fwdad.jacfwd(f)):
        assert not whole_calls(derivative)
        assert_allclose(fwdad.jit(derivative, backend="numpy")(X), want, rtol=1e-7)


COMPILED = {
    "cholesky": sl.cholesky,
    "cholesky, lower": lambda a: sl.cholesky(a, lower=True),
    "det": sl.det,
    "svd": lambda a: sl.svd(a)[1],
    "svd, thin": lambda a: sl.svd(a, full_matrices=False)[0],
    "svdvals": sl.svdvals,
    "qr": lambda a: sl.qr(a, mode="economic")[1],
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.every(4)
def test_compiled_forms(name, dtype):
    """What has one is computed as SciPy does; only one triangle is read, whatever the layout is."""
    pytest.importorskip("numba")
    f = COMPILED[name]
    compiled = fwdad.jit(f)
    a = matrix(X, 0.3j).astype(dtype) if dtype is np.complex128 else matrix(X).astype(dtype)
    for given in (a, np.asfortranarray(a), a[::-1, ::-1]):
        want, found = f(given), compiled(given)
        assert np.result_type(found) == np.result_type(want)
        assert_allclose(found, want, rtol=1e-5 if dtype is np.float32 else 1e-13, atol=1e-13)
    if dtype is np.float64:
        assert "NumPy" not in str(fwdad.explain(compiled, a))
    if dtype is not np.float32:
        with pytest.raises(ValueError, match="must not contain infs or NaNs"):
            compiled(a * np.inf)
    if name.startswith(("cholesky", "det")):
        with pytest.raises(ValueError, match="square"):
            compiled(a[:2])
    if name.startswith("cholesky"):
        with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
            compiled(-a)
    if name == "det":
        assert compiled(0.0 * a) == 0.0

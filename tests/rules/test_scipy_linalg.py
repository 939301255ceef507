"""scipy.linalg: solvers, factorisations, decompositions, functions of matrices; SuperLU."""

import subprocess
import sys

import numpy as np
import pytest
import scipy
import scipy.linalg as sl
import scipy.sparse
import scipy.sparse.linalg
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import MissingRuleError, UndefinedDerivativeError
from fwdad.rules.core.define import call_rule
from fwdad.rules.matrix_functions import expm_derivative, logm_derivative
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw, transposes
from tests.tiers import every

draw = Draw(27)
VERSION = tuple(int(part) for part in scipy.__version__.split(".")[:2])
SECOND = (1,)
INF = np.inf


def _hermitian(n, complex_):
    a = draw.complex(n, n) if complex_ else draw.real(n, n)
    return a + np.conj(a.T) + 6 * np.diag(np.arange(n))


def _band(make, lower, upper, n):
    ab = make(lower + upper + 1, n)
    ab[upper] += 6
    return ab


def _hermitian_band(make, width, n, lower):
    ab = 0.3 * make(width + 1, n)
    ab[0 if lower else -1] = 4 + np.arange(n)
    return ab


def _solvers(complex_):
    g = draw.complex if complex_ else draw.real

    def regular(n=3):
        return draw.regular(n, n, complex=complex_)

    def definite(n=3):
        return draw.definite(n, n, complex=complex_)

    symmetric = definite()
    symmetric = (symmetric + symmetric.T) / 2
    pairs = (("sym", symmetric), ("her", definite()), ("pos", definite()))
    return [
        *(Case(sl.solve, regular(), b, linear=SECOND) for b in (g(3), g(3, 2))),
        *([] if complex_ else [Case(sl.solve, regular(), g(3), transposed=True, linear=SECOND)]),
        *(
            Case(sl.solve, a, g(3, 2), assume_a=kind, lower=lower, linear=SECOND)
            for kind, a in pairs
            for lower in (False, True)
        ),
        *(
            Case(sl.solve_triangular, regular(), b, linear=SECOND, **options)
            for b in (g(3), g(3, 2))
            for options in (
                {},
                {"lower": True},
                {"trans": 1},
                {"trans": "T", "lower": True},
                {"trans": 2, "unit_diagonal": True},
                {"trans": "C", "lower": True},
                {"lower": True, "unit_diagonal": True},
            )
        ),
        *(
            Case(sl.solve_banded, band, _band(g, *band, 5), b, linear=(2,))
            for band in ((1, 2), (0, 1), (2, 0), (1, 1), (0, 0))
            for b in (g(5), g(5, 2))
        ),
        *(
            Case(sl.solveh_banded, _hermitian_band(g, w, 5, lower), b, lower=lower, linear=SECOND)
            for w, b in ((0, g(5)), (1, g(5, 2)), (2, g(5)))
            for lower in (False, True)
        ),
        Case(sl.solve_sylvester, regular(3), regular(2), g(3, 2), linear=(2,)),
        Case(sl.solve_continuous_lyapunov, regular(3), g(3, 3), linear=SECOND),
        *(
            Case(sl.solve_discrete_lyapunov, 0.2 * g(3, 3), g(3, 3), linear=SECOND, method=method)
            for method in ("direct", "bilinear")
        ),
        *(
            case
            for riccati in (sl.solve_continuous_are, sl.solve_discrete_are)
            for case in (
                Case(riccati, g(1, 1), g(1, 1), np.eye(1), np.eye(1)),
                Case(riccati, g(3, 3), g(3, 2), definite(), definite(2), check={"argnums": (0, 1)}),
                Case(
                    riccati,
                    g(3, 3),
                    g(3, 1),
                    definite(),
                    np.eye(1),
                    s=0.1 * g(3, 1),
                    check={"argnums": (0, 1, 3)},
                ),
            )
        ),
    ]


def _factors(complex_):
    g = draw.complex if complex_ else draw.real
    definite = draw.definite(3, 3, complex=complex_)
    factors = sl.lu_factor(g(4, 4))
    return [
        *(Case(sl.lu_factor, g(*s)) for s in ((1, 1), (3, 3), (4, 3), (3, 5))),
        *(Case(sl.lu, g(*s)) for s in ((3, 3), (4, 3), (3, 5))),
        Case(sl.lu, g(4, 3), permute_l=True),
        Case(sl.lu, g(3, 3), p_indices=True),
        Case(sl.lu, g(2, 3, 3)),
        *(
            Case(sl.lu_solve, factors, b, trans=trans, linear=SECOND)
            for trans in (0, 1, 2)
            for b in (g(4), g(4, 2))
        ),
        *(Case(sl.cho_factor, definite, lower=lower) for lower in (False, True)),
        *(
            Case(sl.cho_solve, sl.cho_factor(definite, lower=lower), b, linear=SECOND)
            for lower in (False, True)
            for b in (g(3), g(3, 2))
        ),
        *(Case(sl.expm, scale * g(n, n)) for n, scale in ((1, 1), (2, 1), (4, 1), (3, 9))),
        Case(sl.expm, g(2, 3, 3)),
        # of complex matrices SciPy < 1.16 returns long doubles
        *([] if complex_ and VERSION < (1, 16) else [Case(sl.sqrtm, g(3, 3) + 5 * np.eye(3))]),
        Case(sl.logm, g(3, 3) + 5 * np.eye(3), check={"float32": False}),
    ]


def _decompositions(complex_):
    g = draw.complex if complex_ else draw.real
    definite = draw.definite(3, 3, complex=complex_)
    spread = 2 * np.diag(np.arange(3.0))
    return [
        *(Case(sl.inv, draw.regular(n, n, complex=complex_)) for n in (1, 3)),
        *(Case(sl.det, a) for a in (g(1, 1), g(3, 3), g(3, 2) @ g(2, 3), g(2, 3, 3))),
        *(Case(sl.pinv, g(*s)) for s in ((3, 3), (4, 2), (2, 4))),
        Case(sl.pinv, g(3, 2), return_rank=True),
        *(Case(sl.pinvh, _hermitian(3, complex_), lower=lower) for lower in (False, True)),
        *(Case(sl.lstsq, g(*s), g(s[0])) for s in ((3, 3), (4, 2), (2, 4))),
        Case(sl.lstsq, g(4, 2), g(4, 2)),
        Case(sl.lstsq, g(4, 2), g(4, 2), lapack_driver="gelsy"),
        *(Case(sl.norm, g(3, 4), o) for o in (None, 1, 2, INF, "fro")),
        Case(sl.norm, g(3, 4), axis=0),
        *(Case(sl.cholesky, definite, lower=lower) for lower in (False, True)),
        *(
            Case(sl.qr, g(*s), mode=mode, pivoting=pivoting)
            for mode, shapes in (
                ("full", ((3, 3), (2, 4))),
                ("economic", ((3, 3), (4, 3), (2, 4))),
                ("r", ((3, 3), (4, 3), (2, 4))),
            )
            for s in shapes
            for pivoting in (False, True)
        ),
        *(Case(sl.svdvals, g(*s)) for s in ((3, 3), (4, 3))),
        Case(sl.svd, g(3, 4), compute_uv=False),
        *(
            Case(sl.eig, g(n, n) + spread[:n, :n], check={"float32": False})  # signs may differ
            for n in (1, 3)
        ),
        Case(sl.eig, g(3, 3) + spread, right=False),
        *(
            Case(sl.eigh, _hermitian(4, complex_), b, eigvals_only=True, **options)
            for b in (None, draw.definite(4, 4, complex=complex_))
            for options in ({}, {"lower": False}, {"subset_by_index": (1, 2)})
        ),
    ]


REAL_ONLY = [
    *(Case(sl.svd, draw.real(*s)) for s in ((3, 3), (4, 3), (3, 4))),
    Case(sl.svd, draw.real(5, 3), full_matrices=False, lapack_driver="gesvd"),
    Case(sl.qr, draw.real(4, 3), mode="full", pivoting=True),
    Case(sl.eigh, _hermitian(4, complex_=False), driver="ev"),
    Case(sl.solve_banded, (1, 1), _band(draw.real, 1, 1, 5), draw.complex(5), linear=(2,)),
    Case(sl.solve_banded, (1, 2), _band(draw.complex, 1, 2, 5), draw.real(5), linear=(2,)),
]

SPARSE = scipy.sparse.csc_array(np.array([[4.0, 1.0, 0.0], [0.0, 3.0, 1.0], [1.0, 0.0, 5.0]]))
SUPERLU = [
    Case(
        scipy.sparse.linalg.SuperLU.solve,
        scipy.sparse.linalg.splu(matrix),
        b.astype(matrix.dtype),
        trans,
        check={"float32": False},
        linear=SECOND,
    )
    for matrix in (SPARSE, (SPARSE * (1 + 0.5j)).tocsc())
    for trans in "NTH"
    for b in (draw.real(3), draw.real(3, 2))
]

CONSTANTS = [Case(f, draw.real(3, 3)) for f in (sl.bandwidth, sl.issymmetric, sl.ishermitian)]

CASES = [
    *(c for z in (False, True) for part in (_solvers, _factors, _decompositions) for c in part(z)),
    *REAL_ONLY,
    *SUPERLU,
    *CONSTANTS,
]
if VERSION >= (1, 15):
    CASES += [
        Case(sl.solve, draw.regular(3, 3), draw.real(3), assume_a=kind, linear=SECOND)
        for kind in ("diagonal", "tridiagonal", "upper triangular", "lower triangular", "banded")
    ]


@pytest.mark.parametrize("case", every(2, CASES), ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


# What SciPy writes in Python goes through the builder, down to the rules above.
THROUGH_THE_BUILDER = [
    (sl.block_diag, (2, 2), (3, 1)),
    (sl.toeplitz, (3,), (4,)),
    (sl.circulant, (4,)),
    (sl.hankel, (3,), (4,)),
    (sl.companion, (4,)),
    (sl.khatri_rao, (2, 3), (4, 3)),
    (sl.orth, (4, 2)),
    (sl.null_space, (3, 4)),
    (sl.polar, (3, 3)),
    (sl.subspace_angles, (4, 2), (4, 2)),
    (sl.sinm, (2, 2)),
    (sl.coshm, (2, 2)),
    (sl.eigvals, (3, 3)),
    (sl.eigvalsh, (3, 3)),
]


@pytest.mark.parametrize(("function", "shapes"), [(f, s) for f, *s in THROUGH_THE_BUILDER])
def test_python_code_of_scipy(function, shapes, rng):
    args = [draw.real(*s) for s in shapes]
    check_frule(function, *args, rng=rng, float32=False, opaque=True)


# The signs of eigenvectors of LAPACK's newer drivers jump from one matrix to the next.
@pytest.mark.parametrize(
    "options",
    [{}, {"lower": False}, {"subset_by_index": (1, 2)}, {"subset_by_value": (3.0, 40.0)}],
    ids=str,
)
@pytest.mark.parametrize("generalised", [False, True])
@pytest.mark.parametrize("complex_", [False, True])
def test_what_does_not_depend_on_the_phase_of_eigenvectors(complex_, generalised, options, rng):
    a = _hermitian(4, complex_)
    b = draw.definite(4, 4, complex=complex_) if generalised else None

    def projectors(m, b):
        v = sl.eigh(m, b, **options)[1]
        return np.einsum("ij,kj->jik", v, np.conj(v))

    check_frule(projectors, a, b, rng=rng, float32=False, opaque=True)


@pytest.mark.parametrize("make", [draw.real, draw.complex])
@pytest.mark.parametrize("derivative", [expm_derivative, logm_derivative])
def test_transpose_of_the_derivative_of_a_function(derivative, make, rng):
    a, e = make(3, 3) + 5 * np.eye(3), make(3, 3)
    check_transpose(derivative, a, e, argnum=1, rng=rng)


@pytest.mark.parametrize("make", [draw.real, draw.complex])
def test_the_unitary_factor(make, rng):
    def unitary(m):
        u, _, vh = sl.svd(m, full_matrices=False)
        return u @ vh

    check_frule(unitary, make(4, 3), rng=rng, float32=False, opaque=True)


@pytest.mark.parametrize("kind", ["sym", "her", "pos"])
@pytest.mark.parametrize("lower", [False, True])
def test_the_triangle_that_a_solver_does_not_read(kind, lower):
    a, b, a_dot = draw.definite(3, 3), draw.real(3), draw.real(1, 3, 3)
    hidden = np.triu_indices(3, 1) if lower else np.tril_indices(3, -1)
    tangents = (Chunk(a_dot), Chunk(np.zeros((1, 3))))
    want = call_rule(sl.solve, (a, b), tangents, assume_a=kind, lower=lower)[1].lanes
    a, a_dot = a.copy(), a_dot.copy()
    a[hidden] = 1e3
    a_dot[(slice(None), *hidden)] = 1e3
    tangents = (Chunk(a_dot), Chunk(np.zeros((1, 3))))
    got = call_rule(sl.solve, (a, b), tangents, assume_a=kind, lower=lower)[1].lanes
    assert_allclose(got, want, rtol=1e-12)


def test_the_corners_of_a_band_have_no_influence():
    ab, b = _band(draw.real, 1, 2, 5), draw.real(5)
    ab_dot = draw.real(1, 4, 5)
    want = call_rule(
        sl.solve_banded, ((1, 2), ab, b), (fwdad.ZERO, Chunk(ab_dot), Chunk(np.zeros((1, 5))))
    )[1].lanes
    for row, column in ((0, 0), (0, 1), (1, 0), (3, 4)):
        ab_dot[0, row, column] = np.nan
    got = call_rule(
        sl.solve_banded, ((1, 2), ab, b), (fwdad.ZERO, Chunk(ab_dot), Chunk(np.zeros((1, 5))))
    )[1].lanes
    assert_array_equal(got, want)


def test_lu_as_programs_use_it():
    a, b = draw.regular(4, 4), draw.real(4)

    def solve(m):
        return sl.lu_solve(sl.lu_factor(m), b)

    def log_det(m):
        lu, _ = sl.lu_factor(m)
        return np.sum(np.log(np.abs(np.diag(lu))))

    want = fwdad.jacobian(lambda m: np.linalg.solve(m, b), a)
    assert_allclose(fwdad.jacobian(solve, a), want, rtol=1e-10)
    assert_allclose(fwdad.grad(log_det)(a), np.linalg.inv(a).T, rtol=1e-10)


def test_pivots_are_never_made_up(monkeypatch):
    """LAPACK does not check them: it would write behind the arrays."""
    get, pivots = sl._decomp_lu.get_lapack_funcs, []

    def watched(names, *args, **kwargs):
        functions = get(names, *args, **kwargs)
        if tuple(names) != ("getrs",):
            return functions

        def getrs(lu, places, *rest, **options):
            pivots.append(places.max() < len(lu))
            return functions[0](lu, places, *rest, **options)

        return (getrs,)

    monkeypatch.setattr(sl._decomp_lu, "get_lapack_funcs", watched)

    def f(m, b):
        return np.sum(sl.lu_solve(sl.lu_factor(m), b) ** 2)

    for n in (1, 2, 3):
        a, b = draw.regular(n, n), draw.real(n)
        want = fwdad.jacobian(f, a, args=(b,), mode="forward")
        for derivative in (fwdad.grad(f), fwdad.jit(fwdad.grad(f)), fwdad.jit(fwdad.jacfwd(f))):
            assert_allclose(derivative(a, b), want, rtol=1e-9)
    assert len(pivots) > 12
    assert all(pivots)


def test_exponential_of_a_generator_of_rotations():
    def rotated(angle):
        return sl.expm(angle * np.array([[0.0, -1.0], [1.0, 0.0]]))

    for angle in (0.0, 0.3, 30.0):  # with and without scaling
        want = [[-np.sin(angle), -np.cos(angle)], [np.cos(angle), -np.sin(angle)]]
        assert_allclose(fwdad.jvp(rotated, angle, 1.0)[1], want, atol=1e-12)


def test_overwriting_does_not_reach_the_tangent():
    a, b = draw.regular(3, 3), draw.real(3)
    want = fwdad.jacobian(lambda m: sl.solve(m, b), a)
    got = fwdad.jacobian(lambda m: sl.solve(m, b, overwrite_a=True, overwrite_b=True), a)
    assert_allclose(got, want, rtol=1e-12)


def test_what_has_no_frule_says_what_to_do():
    a = draw.real(3, 3)
    with pytest.raises(MissingRuleError, match=r"eigh; otherwise"):
        fwdad.jvp(lambda m: sl.eig(m, np.eye(3)), a, a)
    with pytest.raises(MissingRuleError, match="rewrite the problem as type 1"):
        fwdad.jvp(lambda m: sl.eigh(m, np.eye(3), type=2), a, a)


def test_vectors_of_repeated_eigenvalues_raise_only_where_they_are_used():
    a_dot = Chunk(draw.real(1, 3, 3))
    _, (w_dot, v_dot) = call_rule(sl.eigh, (np.eye(3), None), (a_dot,))
    assert_allclose(np.sum(w_dot.lanes), np.trace(a_dot.lanes[0]))
    with pytest.raises(UndefinedDerivativeError):
        v_dot * 2.0
    with pytest.raises(UndefinedDerivativeError):
        call_rule(sl.qr, (np.ones((3, 2)),), (Chunk(np.ones((1, 3, 2))),), mode="raw")[1][1] * 2.0


def test_a_sparse_factorisation_inside_a_program():
    lu = scipy.sparse.linalg.splu(SPARSE)
    jacobian = fwdad.jacobian(lambda b: lu.solve(b**2), np.array([1.0, 2.0, 3.0]))
    want = np.linalg.inv(SPARSE.toarray()) @ np.diag([2.0, 4.0, 6.0])
    assert_allclose(jacobian, want, rtol=1e-12, atol=1e-15)


def test_importing_the_rules_imports_no_scipy():
    code = "import fwdad, sys; print(sorted(m for m in sys.modules if m.split('.')[0] == 'scipy'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "scipy.linalg" not in done.stdout
    assert "scipy.fft" not in done.stdout
    assert "scipy.sparse.linalg" not in done.stdout

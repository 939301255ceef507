"""solve, inv, det, slogdet, lstsq, pinv, matrix_power and what is composed of them."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.errors import UndefinedDerivativeError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.testing import check_frule, check_transpose
from tests.differences import difference_along
from tests.rules.case import Case, Draw, transposes

draw = Draw(22)
la = np.linalg
INF = np.inf


def _low_rank(n, rank, make):
    return make(n, rank) @ make(rank, n)


def _systems(complex_):
    g = draw.complex if complex_ else draw.real

    def r(*shape):
        return draw.regular(*shape, complex=complex_)

    return [
        *(Case(la.solve, r(n, n), g(n), linear=(1,)) for n in (1, 2, 3, 5)),
        *(Case(la.solve, r(n, n), g(n, 2), linear=(1,)) for n in (1, 2, 3, 5)),
        # stacks: b broadcasts, and is a vector only if it has one axis (NumPy 2)
        Case(la.solve, r(4, 3, 3), g(3), linear=(1,)),
        Case(la.solve, r(4, 3, 3), g(3, 2), linear=(1,)),
        Case(la.solve, r(4, 3, 3), g(4, 3, 2), linear=(1,)),
        Case(la.solve, r(3, 3), g(4, 3, 2), linear=(1,)),
        Case(la.solve, r(2, 1, 3, 3), g(4, 3, 2), linear=(1,)),
        Case(la.solve, np.asfortranarray(r(3, 3)), g(6, 2)[::2]),
        Case(la.solve, r(3, 3).T, g(2, 3).T),
        *(Case(la.inv, r(n, n)) for n in (1, 2, 4)),
        Case(la.inv, r(2, 1, 3, 3)),
        *(Case(la.det, g(n, n)) for n in (1, 2, 3, 5)),
        Case(la.det, g(2, 3, 3)),
        # every rank: the gradient of det is a polynomial
        *(Case(la.det, _low_rank(n, k, g)) for n in (2, 3, 4, 6) for k in range(max(n - 3, 1), n)),
        Case(la.det, np.stack([g(3, 3), _low_rank(3, 2, g), _low_rank(3, 1, g)])),
        *(Case(la.slogdet, r(n, n)) for n in (1, 2, 4)),
        *(Case(la.slogdet, g(n, n)) for n in (2, 3)),
        Case(la.slogdet, g(3, 2, 2)),
        *(Case(la.matrix_power, r(3, 3), n) for n in (-3, -2, -1, 1, 2, 3, 5, 6, 7)),
        Case(la.matrix_power, g(2, 3, 3), 4),
        *(Case(la.pinv, g(*shape)) for shape in ((3, 3), (5, 3), (3, 5), (2, 5, 3), (1, 1))),
        Case(la.pinv, draw.definite(3, 3, complex=complex_), hermitian=True),
        *(Case(la.lstsq, g(*shape), g(shape[0])) for shape in ((3, 3), (6, 3), (3, 5))),
        *(Case(la.lstsq, g(*shape), g(shape[0], 2)) for shape in ((3, 3), (6, 3), (3, 5))),
        Case(la.lstsq, g(6, 3), g(6, 1), rcond=1e-12),
        *(Case(la.cond, g(3, 3), p) for p in (None, 2, -2, 1, -1, INF, -INF, "fro", "nuc")),
        *(Case(la.cond, g(2, 3, 3), p) for p in (None, 1, "fro")),
        Case(la.cond, g(4, 3)),
        Case(la.tensorsolve, r(6, 6).reshape(2, 3, 6), g(2, 3)),
        Case(la.tensorsolve, r(6, 6).reshape(6, 2, 3), g(6)),
        Case(la.tensorsolve, r(6, 6).reshape(3, 2, 6).transpose(2, 0, 1), g(3, 2), axes=(0,)),
        Case(la.tensorinv, r(6, 6).reshape(2, 3, 6)),
        Case(la.tensorinv, r(6, 6).reshape(6, 2, 3), ind=1),
    ]


CASES = [
    *_systems(complex_=False),
    *_systems(complex_=True),
    Case(la.solve, draw.regular(3, 3), draw.complex(3), linear=(1,)),
    Case(la.solve, draw.regular(3, 3, complex=True), draw.real(3), linear=(1,)),
    Case(la.solve, draw.regular(3, 3, complex=True), draw.real(3, 2), linear=(1,)),
    Case(la.solve, np.zeros((0, 0)), np.zeros((0, 2)), linear=(1,)),
    Case(la.inv, np.zeros((0, 0))),
    Case(la.det, np.zeros((3, 3))),
    Case(la.det, np.array([[1, 0, 0], [0, 2, 0], [0, np.pi, 3]])),
    Case(la.matrix_rank, draw.real(3, 3)),
]


@pytest.mark.every(3, first=1)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


@pytest.mark.parametrize(("case", "argnum"), transposes(CASES), ids=str)
def test_transpose(case, argnum, rng):
    check_transpose(case.function, *case.args, argnum=argnum, rng=rng, **case.options)


def cofactors_by_minors(a):
    """Cofactors at fifty digits."""
    n = len(a)
    with mpmath.workdps(50):
        return np.array(
            [
                [
                    (-1) ** (i + j)
                    * float(mpmath.det(mpmath.matrix(np.delete(np.delete(a, i, 0), j, 1).tolist())))
                    for j in range(n)
                ]
                for i in range(n)
            ]
        )


def test_gradient_of_the_determinant_of_a_known_matrix():
    a = np.array([[1, 0, 0], [0, 2, 0], [0, np.pi, 3]])
    want = [[6, 0, 0], [0, 3, -np.pi], [0, 0, 2]]
    assert_allclose(fwdad.grad(np.linalg.det)(a), want, atol=1e-14)


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e-6, 1e-3, 1e-1])
@pytest.mark.parametrize("small", [1, 2])
def test_cofactors_of_nearly_singular_matrices(scale, small):
    q, _ = np.linalg.qr(draw.real(5, 5))
    p, _ = np.linalg.qr(draw.real(5, 5))
    s = np.array([3.0, 2.0, 1.0, 0.5, 0.25])
    s[-small:] *= scale
    a = q @ np.diag(s) @ p
    gradient = fwdad.grad(np.linalg.det)(a)
    want = cofactors_by_minors(a)
    # rounding a alone moves cofactors by 2⁻⁵² times products of three singular values
    assert_allclose(gradient, want, rtol=0, atol=1e-12 * np.max(np.abs(want)) + 2e-15)


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
def test_second_derivatives_of_the_determinant_at_any_rank(rank):
    n = 4
    a = _low_rank(n, rank, draw.real) if rank else np.zeros((n, n))
    hessian = fwdad.hessian(np.linalg.det, a)
    # d²det / da_ij da_kl is a signed minor of a without both rows and columns
    for i, j, k, m in ((0, 0, 1, 1), (0, 1, 1, 0), (2, 3, 0, 1), (3, 1, 1, 2)):
        rest = np.delete(np.delete(a, (i, k), 0), (j, m), 1)
        sign = (-1) ** (i + j + k + m) * (-1) ** ((k > i) != (m > j))
        assert_allclose(hessian[i, j, k, m], sign * np.linalg.det(rest), atol=1e-12)
    assert_allclose(hessian[0, 0, 0], np.zeros(n), atol=1e-12)  # two of one row


def test_a_matrix_of_very_low_rank_has_no_cofactors():
    a = draw.real(30, 3) @ draw.real(3, 30)
    assert not np.any(fwdad.grad(np.linalg.det)(a))


def test_log_determinant_of_a_singular_matrix_is_undefined_only_where_it_is_used():
    a = np.array([[1.0, 2.0], [2.0, 4.0]])
    (sign, logdet), (sign_dot, logdet_dot) = call_rule(
        la.slogdet, (a,), (Chunk(np.ones((1, 2, 2))),)
    )
    assert (sign, logdet) == (0.0, -INF)
    for part in (sign_dot, logdet_dot):
        with pytest.raises(UndefinedDerivativeError, match=r"-inf; np\.linalg\.det"):
            part + part


def test_singular_matrices_raise_as_the_primal_does():
    a, a_dot = np.zeros((2, 2)), Chunk(np.ones((1, 2, 2)))
    for f, args in ((la.inv, (a,)), (la.solve, (a, np.ones(2))), (la.matrix_power, (a, -2))):
        with pytest.raises(la.LinAlgError, match="Singular"):
            call_rule(f, args, (a_dot,))


def test_least_squares_of_deficient_rank_along_directions_that_keep_it():
    left, right, b = draw.real(6, 2), draw.real(2, 4), draw.real(6)
    left_dot, right_dot = draw.real(6, 2), draw.real(2, 4)

    def solution(t):
        return la.lstsq((left + t * left_dot) @ (right + t * right_dot), b, rcond=1e-10)[0]

    _, x_dot = fwdad.jvp(solution, 0.0, 1.0)
    assert_allclose(x_dot, difference_along(solution, 0.0), rtol=1e-6, atol=1e-8)


def test_pseudo_inverse_of_deficient_rank_along_directions_that_keep_it():
    left, right = draw.complex(5, 2), draw.complex(2, 4)
    left_dot, right_dot = draw.complex(5, 2), draw.complex(2, 4)

    def inverse(t):
        return la.pinv((left + t * left_dot) @ (right + t * right_dot), 1e-10)

    _, x_dot = fwdad.jvp(inverse, 0.0, 1.0)
    assert_allclose(x_dot, difference_along(inverse, 0.0), rtol=1e-6, atol=1e-8)


def test_inverse_of_a_view_and_its_jacobian():
    a = draw.regular(3, 3)
    x = la.inv(a)
    jacobian = fwdad.jacobian(la.inv, a).reshape(9, 9)
    assert_allclose(jacobian, -np.kron(x, x.T), rtol=1e-12, atol=1e-14)
    padded = np.zeros((5, 5))
    padded[1:4, 1:4] = a
    of_view = fwdad.jacobian(lambda p: la.inv(p[1:4, 1:4]), padded)
    assert_allclose(of_view[:, :, 1:4, 1:4].reshape(9, 9), jacobian, rtol=1e-12, atol=1e-14)


def test_what_tensorsolve_refuses_is_refused_with_its_own_words():
    a = draw.real(2, 3, 4)
    with pytest.raises(la.LinAlgError, match="requirement"):
        call_rule(la.tensorsolve, (a, draw.real(2, 3)), (Chunk(np.ones((1, 2, 3, 4))),))

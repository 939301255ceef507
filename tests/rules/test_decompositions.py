"""cholesky, qr, eigh, eig, svd and their values alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import UndefinedDerivativeError
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.symbolic import as_traced, defined
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw

draw = Draw(23)
la = np.linalg


def _hermitian(*shape, complex_=False):
    a = draw.complex(*shape) if complex_ else draw.real(*shape)
    return a + np.conj(np.swapaxes(a, -1, -2)) + 3 * np.diag(np.arange(shape[-1]))


def _common(complex_):
    g = draw.complex if complex_ else draw.real

    def definite(*shape):
        return draw.definite(*shape, complex=complex_)

    def hermitian(*shape):
        return _hermitian(*shape, complex_=complex_)

    return [
        *(Case(la.cholesky, definite(n, n)) for n in (1, 2, 3, 6)),
        *(Case(la.cholesky, definite(n, n), upper=True) for n in (1, 3)),
        Case(la.cholesky, definite(2, 3, 3)),
        Case(la.cholesky, definite(2, 3, 3), upper=True),
        Case(la.cholesky, np.asfortranarray(definite(3, 3))),
        *(Case(la.qr, g(*s), mode=m) for s in ((3, 3), (1, 1), (4, 3)) for m in ("reduced", "r")),
        *(Case(la.qr, g(*s), mode="complete") for s in ((3, 3), (3, 5))),
        *(Case(la.qr, g(*s)) for s in ((3, 5), (2, 5, 3), (2, 3, 5))),
        *(Case(la.eigvalsh, hermitian(n, n), UPLO=u) for n in (1, 2, 4) for u in "LU"),
        Case(la.eigvalsh, hermitian(2, 3, 3)),
        Case(la.eigvalsh, g(3, 3)),  # one triangle is read, the other is not
        *(Case(la.eig, g(n, n) + 2 * np.diag(np.arange(n))) for n in (1, 2, 3, 4)),
        *(Case(la.eigvals, g(n, n) + 2 * np.diag(np.arange(n))) for n in (1, 2, 3, 4)),
        Case(la.eig, hermitian(3, 3) + 0.1 * g(3, 3)),
        Case(la.eig, g(2, 3, 3) + 2 * np.diag(np.arange(3))),
        Case(la.eigvals, g(2, 3, 3) + 2 * np.diag(np.arange(3))),
        Case(la.eigvals, g(12, 12)),
        *(Case(la.svdvals, g(*s)) for s in ((1, 1), (3, 3), (4, 3), (3, 5), (2, 3, 3))),
        *(Case(la.svd, g(*s), compute_uv=False) for s in ((3, 3), (5, 3), (2, 3, 4))),
        Case(la.svd, hermitian(3, 3) - 4 * np.eye(3), hermitian=True, compute_uv=False),
    ]


CASES = [
    *_common(complex_=False),
    *_common(complex_=True),
    Case(la.cholesky, np.zeros((0, 0))),
    Case(defined, draw.real(2, 3), False, "what the error would say"),
    Case(as_traced, draw.real(2, 3), False, "what the error would say"),
    Case(la.qr, draw.real(4, 3), mode="complete"),
    *(Case(la.eigh, _hermitian(n, n), UPLO=u) for n in (1, 2, 4) for u in "LU"),
    Case(la.eigh, _hermitian(2, 3, 3)),
    Case(la.eigh, draw.real(3, 3)),
    *(
        Case(la.svd, draw.real(*s), full_matrices=False)
        for s in ((1, 1), (3, 3), (5, 3), (3, 5), (2, 4, 3))
    ),
    *(Case(la.svd, draw.real(*s)) for s in ((3, 3), (4, 3), (3, 4), (2, 3, 3))),
    Case(la.svd, _hermitian(3, 3) - 4 * np.eye(3), hermitian=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


# Where vectors are fixed up to their phase, or up to the choice of a basis, what does not depend
# on that choice is checked against differences.


def spectral_projectors(a):
    v = np.linalg.eigh(a)[1]
    return np.einsum("...ij,...kj->...jik", v, np.conj(v))


def function_of_a_matrix(a):
    w, v = np.linalg.eigh(a, UPLO="U")
    return (v * np.sin(w)) @ np.conj(v.T)


def left_singular_projectors(a):
    u = np.linalg.svd(a, full_matrices=False)[0]
    return np.einsum("ij,kj->jik", u, np.conj(u))


def right_singular_projectors(a):
    vh = np.linalg.svd(a, full_matrices=False)[2]
    return np.einsum("ji,jk->jik", np.conj(vh), vh)


def singular_pairs(a):
    u, _, vh = np.linalg.svd(a)
    k = min(a.shape)
    return np.einsum("ij,jk->jik", u[:, :k], vh[:k])


def product_of_the_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return (u * s**2) @ vh


def projector_on_the_left_null_space(a):
    u = np.linalg.svd(a)[0][:, a.shape[1] :]
    return u @ np.conj(u.T)


def projector_on_the_right_null_space(a):
    vh = np.linalg.svd(a)[2][a.shape[0] :]
    return np.conj(vh.T) @ vh


def complement_of_the_range(a):
    q = np.linalg.qr(a, mode="complete")[0][:, a.shape[1] :]
    return q @ np.conj(q.T)


def product_of_the_complete_qr(a):
    q, r = np.linalg.qr(a, mode="complete")
    return q @ (r * 2.0)


INVARIANTS = [
    *((spectral_projectors, (3, 3)), (function_of_a_matrix, (3, 3))),
    *(
        (f, s)
        for f in (left_singular_projectors, right_singular_projectors, product_of_the_svd)
        for s in ((3, 3), (5, 3), (3, 5))
    ),
    *((singular_pairs, s) for s in ((3, 3), (5, 3), (3, 5))),
    (projector_on_the_left_null_space, (5, 3)),
    (projector_on_the_right_null_space, (3, 5)),
    *((f, (5, 3)) for f in (complement_of_the_range, product_of_the_complete_qr)),
]


@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize(("function", "shape"), INVARIANTS)
def test_what_does_not_depend_on_the_gauge(function, shape, complex_, rng):
    a = draw.complex(*shape) if complex_ else draw.real(*shape)
    if function in (spectral_projectors, function_of_a_matrix):
        a = _hermitian(*shape, complex_=complex_)
    check_frule(function, a, rng=rng, float32=False, opaque=True)


def test_tangents_of_bases_keep_them_orthonormal():
    for make in (draw.real, draw.complex):
        a, a_dot = make(5, 3), Chunk(make(2, 5, 3))
        (u, _, vh), (u_dot, _, vh_dot) = call_rule(la.svd, (a,), (a_dot,))
        (q, _), (q_dot, _) = call_rule(la.qr, (a,), (a_dot,), mode="complete")
        for basis, basis_dot in (
            (u, u_dot.lanes),
            (np.conj(vh.T), np.conj(np.swapaxes(vh_dot.lanes, 1, 2))),
            (q, q_dot.lanes),
        ):
            product = np.conj(basis.T) @ basis_dot
            assert_allclose(product + np.conj(np.swapaxes(product, 1, 2)), 0, atol=1e-12)


def test_the_triangle_that_is_not_read_may_hold_anything():
    a = draw.definite(3, 3)
    a_dot = draw.real(1, 3, 3)
    for f, options in (
        (la.cholesky, {}),
        (la.eigvalsh, {}),
        (la.cholesky, {"upper": True}),
        (la.eigvalsh, {"UPLO": "U"}),
    ):
        hidden = np.triu_indices(3, 1) if not options else np.tril_indices(3, -1)
        want = call_rule(f, (a,), (Chunk(a_dot),), **options)[1].lanes
        b, b_dot = a.copy(), a_dot.copy()
        b[hidden] = 1e3
        b_dot[(slice(None), *hidden)] = np.nan
        got = call_rule(f, (b,), (Chunk(b_dot),), **options)[1].lanes
        assert_array_equal(got, want)


def test_eigenvectors_of_a_repeated_eigenvalue_raise_only_where_they_are_used():
    a = np.diag([1.0, 1.0, 2.0])
    a_dot = Chunk(draw.real(2, 3, 3))
    for f in (la.eigh, la.eig):
        _, (w_dot, v_dot) = call_rule(f, (a,), (a_dot,))
        assert_allclose(np.sum(w_dot.lanes, axis=1), np.trace(a_dot.lanes, axis1=1, axis2=2))
        with pytest.raises(UndefinedDerivativeError, match="repeated eigenvalue"):
            v_dot * 2.0
    _, (u_dot, s_dot, vh_dot) = call_rule(la.svd, (a,), (a_dot,))
    assert_allclose(np.sum(s_dot.lanes, axis=1), np.trace(a_dot.lanes, axis1=1, axis2=2))
    for part in (u_dot, vh_dot):
        with pytest.raises(UndefinedDerivativeError, match="repeated or zero singular value"):
            part * 2.0


def test_symmetric_functions_of_nearly_equal_eigenvalues():
    q = la.qr(draw.real(4, 4))[0]
    a = q @ np.diag([1.0, 1.0 + 1e-14, 1.0 - 1e-13, 2.0]) @ q.T
    a_dot = _hermitian(4, 4)
    _, total = fwdad.jvp(lambda m: np.sum(la.eigvalsh(m) ** 3), a, a_dot)
    assert_allclose(total, 3 * np.trace(a @ a @ a_dot), rtol=1e-12)


def test_zero_singular_values_have_tangent_zero():
    a = draw.real(4, 2) @ draw.real(2, 4)
    s_dot = call_rule(la.svdvals, (a,), (Chunk(draw.real(2, 4, 4)),))[1].lanes
    assert np.all(s_dot[:, :2] != 0)
    assert_array_equal(s_dot[:, 2:], 0.0)


def test_eigenvalues_of_a_defective_matrix_are_undefined():
    a = np.array([[1.0, 1.0], [0.0, 1.0]])
    a_dot = Chunk(np.ones((1, 2, 2)))
    with pytest.raises(UndefinedDerivativeError, match="defective"):
        call_rule(la.eigvals, (a,), (a_dot,))[1] * 1.0
    with pytest.raises(UndefinedDerivativeError, match="defective"):
        call_rule(la.eig, (a,), (a_dot,))[1][0] * 1.0


def test_q_of_dependent_columns_is_undefined():
    a = np.ones((3, 2))
    for mode in ("reduced", "complete", "r", "raw"):
        tangents = call_rule(la.qr, (a,), (Chunk(np.ones((1, 3, 2))),), mode=mode)[1]
        part = tangents if mode == "r" else tangents[0]
        with pytest.raises(UndefinedDerivativeError):
            part * 1.0


def test_eigenvalues_in_another_order_than_those_with_vectors(monkeypatch):
    a, a_dot = draw.real(4, 4) + np.diag([0.0, 3.0, 6.0, 9.0]), Chunk(draw.real(2, 4, 4))
    want = call_rule(la.eigvals, (a,), (a_dot,))[1].lanes
    eig = la.eig

    def turned(m):
        w, v = eig(m)
        return w[::-1], v[:, ::-1]

    monkeypatch.setattr("fwdad.rules.eigenvalues.np.linalg.eig", turned)
    got = fwdad.rules.core.registry.find_rule(la.eigvals).body((a,), (a_dot,))[1].lanes
    assert_allclose(got, want, rtol=1e-12)

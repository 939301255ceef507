"""Arrays that are gone through column by column lie so; views that lie apart need no copies."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.tiers import every

pytest.importorskip("numba")

from fwdad.codegen.loops.source import numba_source
from fwdad.frontend.trace import trace
from fwdad.transforms.passes import optimise

M = np.arange(30.0).reshape(5, 6) / 20


def source(f, *args):
    """What Numba is given of a program."""
    program = trace(f, *args).program
    optimise(program)
    return numba_source(program)[0].code


def columns(x):
    p = np.zeros_like(x)
    for j in range(1, x.shape[1]):
        p[1:-1, j] = 0.5 / (2.0 + p[1:-1, j - 1]) + x[1:-1, j]
    for j in range(x.shape[1] - 2, -1, -1):
        p[:, j] = p[:, j] * p[:, j + 1] + p[:, j]
    return np.sum(p)


def rows(x):
    p = np.zeros_like(x)
    for i in range(1, x.shape[0]):
        p[i] = 0.5 / (2.0 + p[i - 1]) + x[i]
    return np.sum(p)


def answered(x):
    p = np.zeros_like(x)
    for j in range(1, x.shape[1]):
        p[:, j] = p[:, j - 1] + x[:, j]
    return p


def swept(x):
    """Each column is read and written often enough to be worth a copy of what is returned."""
    p = x.copy()
    q = np.zeros_like(p)
    for j in range(x.shape[1]):
        for k in range(j):
            q[:, j] = q[:, j] + p[:, j] * p[:, k]
            p[:, j] -= 0.1 * p[:, k]
    return q, np.sum(p)


def swept_twice_answered(x):
    q, t = swept(x)
    return q, q, t


def swept_with_a_view(x):
    q, t = swept(x)
    return q, q[1:], t


def swept_by_calls(x):
    """What a function that is called returns; it calls itself, and is not written out."""

    def inner(x, n):
        if n == 0:
            return swept(x)[0]
        return inner(x * 0.5, n - 1) + swept(x)[0]

    return inner(x, 3)


def copied(x):
    p = np.zeros_like(x)
    for _ in range(2):
        for j in range(1, x.shape[1]):
            p[:, j] = p[:, j - 1] + x[:, j]
    return p.copy(), p * 2.0, np.ravel(p + 1.0), p[1:].copy()


def known_by_another_name(x):
    p, q = np.zeros_like(x), x * 2.0
    for j in range(1, x.shape[1]):
        p[:, j] = p[:, j - 1] + q[:, j]
        if p[0, j] > 1.0:
            p, q = q, p
    return np.sum(p * p)


def planes(x):
    p = np.zeros((x.shape[0], 3, x.shape[1]))
    for k in range(1, x.shape[1]):
        p[:, :, k] = p[:, :, k - 1] * 0.5 + x[:, k, None]
    return np.sum(p)


def written_by_elements(x):
    p = np.zeros_like(x)
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            p[i, j] = x[i, j] * j + p[i - 1, j]
    return np.sum(p) + np.sum(np.cumsum(p[:, 1]))


def from_the_end(x):
    """The first iteration reads the last column, which is the only one where there is one."""
    p = x.copy()
    for j in range(x.shape[1]):
        p[:, j] = p[::-1, j - 1] + p[:, j]
    return np.sum(p * p)


@pytest.mark.parametrize(
    ("f", "made"),
    [(columns, "(x.shape[1], x.shape[0]), np.float64).T"), (written_by_elements, ".T"),
     (planes, ".transpose((1, 2, 0))"), (rows, None), (answered, None),
     (known_by_another_name, None), (swept, "np.ascontiguousarray(q)"),
     (swept, "p = np.empty((x.shape[1], x.shape[0]), np.float64).T")],
)  # fmt: skip
def test_order(f, made):
    code = source(f, M)
    assert made in code if made else ".T" not in code and ".transpose" not in code


def test_views_that_are_disjoint_need_no_temporary():
    assert "np.empty" not in source(columns, M)
    assert "np.empty" in source(from_the_end, M)  # column -1 may be column 0


@pytest.mark.slow_cases("planes", "columns", "from_the_end")
@pytest.mark.parametrize("f", [columns, rows, answered, planes, written_by_elements, from_the_end])
def test_values(f):
    jitted = fwdad.jit(f, backend="numba")
    for shape in [(5, 6), (3, 2), (2, 7), (4, 3)]:
        x = M.ravel()[: shape[0] * shape[1]].reshape(shape)
        assert_allclose(jitted(x), f(x), rtol=1e-13)
    if f is not written_by_elements:
        assert_allclose(jitted(M[:1, :1].copy()), f(M[:1, :1].copy()))
    if f is answered:
        assert jitted(M).flags.c_contiguous


@pytest.mark.slow_cases("swept_with_a_view")
@pytest.mark.parametrize(
    "f", every(2, [swept, swept_twice_answered, swept_with_a_view, swept_by_calls]),
)  # fmt: skip
def test_what_is_returned_is_c_contiguous(f):
    jitted = fwdad.jit(f, backend="numba")
    for shape in [(5, 6), (3, 2), (1, 4), (4, 1), (0, 3), (3, 0)]:
        x = M.ravel()[: shape[0] * shape[1]].reshape(shape)
        found, wanted = jitted(x), f(x)
        if not isinstance(found, tuple):
            found, wanted = (found,), (wanted,)
        for a, b in zip(found, wanted, strict=True):
            assert_allclose(a, b, rtol=1e-13, atol=1e-15)
            assert np.ndim(a) == 0 or a.strides == b.strides or a.size == 0
    if f is swept_twice_answered:
        y = jitted(M)
        assert y[0] is y[1] or np.shares_memory(y[0], y[1])


def test_gradients_of_columns_are_c_contiguous():
    def loss(x):
        q, t = swept(x)
        return np.sum(q * q) + t

    g = fwdad.jit(fwdad.grad(loss), backend="numba")
    found = g(M)
    assert found.flags.c_contiguous
    assert_allclose(found, fwdad.jacobian(loss, M, mode="forward"), rtol=1e-12)


def test_copies_have_numpys_layout():
    assert ".T" in source(copied, M)
    for found, wanted in zip(fwdad.jit(copied, backend="numba")(M), copied(M), strict=True):
        assert_array_equal(found, wanted)
        assert found.strides == wanted.strides


def test_gradient():
    g = fwdad.jit(fwdad.grad(columns), backend="numba")
    for x in (M, M[:3, :2].copy()):
        assert_allclose(g(x), fwdad.jacobian(columns, x, mode="forward"), rtol=1e-12)


def test_one_element_is_read_before_it_is_written():
    """A view that a store writes may be read in the same loop, element by element."""

    def f(x):
        u = x.copy()
        u[1:, 1:] = u[1:, 1:] * 2.0 + x[:-1, :-1]
        u[1:, 1:] = u[:-1, 1:] * 2.0
        return u

    assert source(f, M).count("np.empty") == 1  # for the second
    assert_array_equal(fwdad.jit(f, backend="numba")(M), f(M))


def turned_onto_itself(x):
    y = x * 1.0
    y[...] = y.T
    z = y[:, ::-1].T.copy()
    return y + 0.5 * z


def test_a_copy_of_what_is_turned_is_c_contiguous():
    x = np.arange(36.0).reshape(6, 6)
    assert_array_equal(fwdad.jit(turned_onto_itself)(x), turned_onto_itself(x))

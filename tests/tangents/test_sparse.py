"""SciPy's sparse arrays: the tangent lives on ``.data``, and SciPy's own methods carry it."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spl
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.cases.sparse_arrays import (
    BASE,
    FORMATS,
    OTHER,
    PATTERN,
    B,
    C,
    b,
    c,
    dense,
    difference,
    differences,
    rng,
)
from tests.tiers import every


def scaled_in_place(a):
    a = a.copy()
    a *= 2.0
    a /= 3.0
    return a


def written(a):
    a = a.tocsr().copy()
    a.data[:3] = a.data[1:4] ** 2
    a.data *= a.data[0]
    return a


PROGRAMS = {
    "A @ b": lambda A: A @ b,
    "A.T @ c": lambda A: A.T @ c,
    "c @ A": lambda A: c @ A,
    "A @ B": lambda A: A @ B,
    "A.dot(b)": lambda A: A.dot(b),
    "A.sum()": lambda A: A.sum(),
    "A.sum(axis=0)": lambda A: A.sum(axis=0),
    "A.sum(axis=1)": lambda A: A.sum(axis=1),
    "A.mean()": lambda A: A.mean(),
    "A.mean(axis=0)": lambda A: A.mean(axis=0),
    "A.multiply(C)": lambda A: A.multiply(C),
    "A.multiply(row)": lambda A: A.multiply(b),
    "A.multiply(column)": lambda A: A.multiply(c[:, None]),
    "A.multiply(OTHER)": lambda A: A.multiply(OTHER),
    "A.multiply(A)": lambda A: A.multiply(A),
    "A.data * 2": lambda A: A.data * 2,
    "np.sin(A.data)": lambda A: np.sin(A.data),
    "A.toarray()": lambda A: A.toarray() ** 2,
    "A.toarray(order='F')": lambda A: A.toarray(order="F") ** 2,
    "2 * A": lambda A: 2 * A,
    "A * 3.0": lambda A: A * 3.0,
    "A / 2": lambda A: A / 2,
    "-A": lambda A: -A,
    "abs(A)": abs,
    "A.power(3)": lambda A: A.power(3),
    "A.sqrt()": lambda A: A.sqrt(),
    "A + OTHER": lambda A: A + OTHER,
    "A - OTHER": lambda A: A - OTHER,
    "OTHER - A": lambda A: OTHER - A,
    "A + C": lambda A: A + C,
    "C - A": lambda A: C - A,
    "A + A": lambda A: A + A,
    "A - A.multiply(A)": lambda A: A - A.multiply(A),
    "A @ A.T": lambda A: A @ A.T,
    "A @ OTHER.T": lambda A: A @ OTHER.T,
    "A.T @ A": lambda A: A.T @ A,
    "OTHER.T @ A": lambda A: OTHER.T @ A,
    "A.tocsr()": lambda A: A.tocsr(),
    "A.tocsc()": lambda A: A.tocsc(),
    "A.tocoo()": lambda A: A.tocoo(),
    "A.copy()": lambda A: A.copy(),
    "A.T": lambda A: A.T,
    "A.diagonal()": lambda A: A.diagonal(),
    "A.diagonal(1)": lambda A: A.diagonal(1),
    "A.trace()": lambda A: A.trace(),
    "A.reshape": lambda A: A.reshape((5, 4)),
    "A.astype": lambda A: A.astype(complex).real,
    "A.conjugate()": lambda A: A.conjugate(),
    "A[0, 2]": lambda A: A.tocsr()[0, 2],
    "A[0]": lambda A: A.tocsr()[[0]],
    "A[1:3]": lambda A: A.tocsr()[1:3],
    "A[:, 1:4]": lambda A: A.tocsr()[:, 1:4],
    "A[::2]": lambda A: A.tocsr()[::2],
    "A[[0, 2]]": lambda A: A.tocsr()[[0, 2]],
    "A[:, [4, 0]]": lambda A: A.tocsr()[:, [4, 0]],
    "A[[0, 3], [2, 4]]": lambda A: A.tocsr()[[0, 3, 1], [2, 4, 1]],
    "vstack": lambda A: sp.vstack([A, OTHER]),
    "hstack": lambda A: sp.hstack([A, OTHER]),
    "block_array": lambda A: sp.block_array([[A, None], [None, OTHER]]),
    "kron": lambda A: sp.kron(A, OTHER),
    "tril": lambda A: sp.tril(A, 1),
    "norm": lambda A: spl.norm(A),
    "scaled in place": scaled_in_place,
    "written": written,
}


# DIA stores the zeros beside its elements: roots of them, and an order of elements of its own
NOT_OF_DIA = {"A.sqrt()", "written"}


@pytest.mark.parametrize("name", every(3, PROGRAMS))
@pytest.mark.parametrize("layout", FORMATS)
def test_program(layout, name):
    if layout == "dia" and name in NOT_OF_DIA:
        return
    f, a = PROGRAMS[name], BASE.asformat(layout)
    before = {attribute: np.array(value) for attribute, value in vars(a).items()}
    v, w = np.random.default_rng(1).standard_normal((2, *a.data.shape))
    seed = a.copy()
    seed.data = v
    y, y_dot = fwdad.jvp(f, a, seed)
    for attribute, value in before.items():  # the caller's array is as it was
        assert_array_equal(getattr(a, attribute), value)
    plain = f(a)
    assert type(y) is type(plain)
    assert_allclose(dense(y), dense(plain), rtol=1e-14, atol=1e-14)
    assert_allclose(dense(y_dot), difference(f, a, v), rtol=1e-7, atol=1e-8)
    # K directions, in chunks, are the single ones stacked
    _, lanes = fwdad.jvp(f, a, np.stack([v, w, v - w]), chunk=2)
    _, w_dot = fwdad.jvp(f, a, w)
    first, second = (t.data if sp.issparse(t) else t for t in (y_dot, w_dot))
    assert_allclose(lanes, np.stack([first, second, first - second]), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    "f",
    [
        lambda A: A * b,
        lambda A: A @ b,
        lambda A: A * B,
        lambda A: A.T * c,
        lambda A: A * OTHER.T,
        lambda A: 2 * A,
        lambda A: A.sum(),
        lambda A: A.mean(),
        lambda A: A.multiply(C),
        lambda A: A.toarray() ** 2,
        lambda A: (A + A.multiply(A)).data,
        lambda A: A.tocsr()[2].toarray() * 3,
    ],
)
def test_matrices_are_like_arrays(layout, f):
    """``csr_matrix`` and its like, whose ``*`` is a matrix product."""
    a = getattr(sp, f"{layout}_matrix")(BASE)
    v = np.random.default_rng(2).standard_normal(a.data.shape)
    y, y_dot = fwdad.jvp(f, a, v)
    assert_allclose(dense(y), dense(f(a)), rtol=1e-14)
    assert_allclose(dense(y_dot), difference(f, a, v), rtol=1e-7, atol=1e-8)


# -- an inactive matrix


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("chunk", [1, 2, 5, None])
def test_inactive_matrix_and_active_vector(layout, kind, chunk):
    a = getattr(sp, f"{layout}_{kind}")(BASE)
    assert_array_equal(fwdad.jacobian(lambda x: a @ x, b, chunk=chunk), BASE.toarray())
    assert_array_equal(fwdad.jacobian(lambda x: a.T @ x, c, chunk=chunk), BASE.toarray().T)
    assert_array_equal(fwdad.jacobian(lambda x: x @ a, c, chunk=chunk), BASE.toarray().T)
    J = fwdad.jacobian(lambda x: a @ x, B, chunk=chunk)
    assert_array_equal(J, np.einsum("ij,kl->ikjl", BASE.toarray(), np.eye(3)))


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: OTHER + np.outer(c, x), b),
        (lambda x: OTHER - np.outer(c, x), b),
        (lambda x: np.outer(c, x) - OTHER, b),
        (lambda x: OTHER.multiply(x).toarray(), b),
        (lambda x: (OTHER * x).toarray(), b),
        (lambda x: (x * OTHER).toarray(), b),
        (lambda x: (OTHER * x[0] + x[1] * OTHER).toarray(), b),
        (lambda x: (OTHER / x[0]).toarray(), b),
        (lambda x: (OTHER / np.outer(np.ones(4), x)).toarray(), b),
        (lambda x: OTHER @ [x[0], x[1] * 2, 0.0, 1.0, x[2]], b),
        (lambda x: (OTHER.T @ np.sin(OTHER @ x)) * x, b),
    ],
)
def test_programs_of_a_vector(f, x):
    x = x + 3
    assert_allclose(fwdad.jacobian(f, x), differences(f, x), rtol=1e-7, atol=1e-8)


def test_a_captured_matrix_is_as_a_plain_call_leaves_it():
    """SciPy sorts and sums in place, and keeps flags, where it needs to."""

    def made():
        indices, indptr = np.array([3, 1, 1, 0, 2]), np.array([0, 3, 5])
        a = sp.csr_array((np.array([1.0, 2, 3, 4, 5]), indices, indptr), shape=(2, 4))
        assert not a.has_canonical_format

        def f(x):
            a.sum_duplicates()
            return (a @ x) * a.data[:2]

        return a, f

    plain, f = made()
    f(np.arange(4.0))
    a, f = made()
    y, J = fwdad.value_and_jacobian(f, np.arange(4.0), chunk=2)
    assert_allclose(y, [8 * 5.0, 10 * 1.0])
    assert_allclose(J, [[0, 25, 0, 5], [4, 0, 5, 0]])
    assert vars(a).keys() == vars(plain).keys()
    for name, value in vars(plain).items():
        assert_array_equal(getattr(a, name), value)


# -- seeds and layouts


def test_layouts():
    a = BASE.copy()
    rows, cols = a.tocoo().coords
    y, J = fwdad.value_and_jacobian(lambda A: A @ b, a)
    expected = np.zeros((4, a.nnz))
    expected[rows, np.arange(a.nnz)] = b[cols]
    assert_array_equal(J, expected)  # the derivative by a number per stored element: an array
    gradient = fwdad.grad(lambda A: c @ (A @ b))(a)
    assert type(gradient) is sp.csr_array  # one number per stored element: a sparse array
    assert_allclose(gradient.toarray(), np.outer(c, b) * (PATTERN != 0), rtol=1e-14)
    _, y_dot = fwdad.jvp(lambda A: 2 * A, a)
    assert_array_equal(y_dot, 2 * np.eye(a.nnz))
    _, y_dot = fwdad.jvp(lambda A: {"A": 2 * A, "n": A.nnz}, a, a)
    assert_array_equal(y_dot["A"].toarray(), 2 * a.toarray())
    assert y_dot["n"] is fwdad.NoTangent
    assert_array_equal(y, a @ b)


def test_hessian_of_a_function_of_a_matrix():
    rows, cols = BASE.tocoo().coords
    H = fwdad.hessian(lambda A: np.sum((A @ b) ** 2), BASE)
    expected = 2 * (rows[:, None] == rows) * np.outer(b[cols], b[cols])
    assert_allclose(H, expected, rtol=1e-13, atol=1e-15)


def test_linearize():
    y, J = fwdad.linearize(lambda A: A @ b, BASE)
    v = np.random.default_rng(3).standard_normal(BASE.nnz)
    moved = BASE.copy()
    moved.data = v
    assert_array_equal(y, BASE @ b)
    assert_allclose(J.matvec(v), moved @ b, rtol=1e-13)


def test_a_direction_has_the_pattern_of_its_matrix():
    wider = sp.csr_array(np.ones((4, 5)))
    for seed, message in [
        (OTHER, "other stored elements"),
        (wider, "other stored elements"),
        (sp.csr_array((4, 4)), r"shape is \(4, 5\)"),
        (BASE.tocsc(), "csc_array"),
        (sp.csr_matrix(BASE), "csr_matrix"),
        (np.ones(3), r"argument of shape \(8,\)"),
        (np.ones((4, 5)), r"argument of shape \(8,\)"),
        (1j * BASE.data, "complex seed"),
    ]:
        with pytest.raises(fwdad.errors.SeedError, match=message):
            fwdad.jvp(lambda A: A @ b, BASE, seed)


def test_a_matrix_among_other_arguments():
    x = {"A": BASE, "scale": 2.0}
    gradient = fwdad.grad(lambda x: x["scale"] * x["A"].sum() ** 2)(x)
    total = BASE.data.sum()
    assert_allclose(gradient["scale"], total**2)
    assert_allclose(gradient["A"].data, 4 * total)
    J = fwdad.jacobian(lambda A, x: A @ x, BASE, args=(b,), argnums=(0, 1))
    assert_array_equal(J[1], BASE.toarray())
    assert J[0].shape == (4, 8)


def test_integer_elements_have_no_tangent():
    with pytest.raises(fwdad.errors.UnsupportedTypeError):
        fwdad.jvp(lambda A: A @ b, sp.csr_array(PATTERN))


# -- kinds of numbers


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_single_precision_stays_single(layout):
    a, x = BASE.asformat(layout).astype(np.float32), b.astype(np.float32)
    for f in (lambda A: A @ x, lambda A: (A + A).toarray(), lambda A: (A @ A.T).toarray()):
        y, y_dot = fwdad.jvp(f, a, a)
        assert y.dtype == y_dot.dtype == f(a).dtype == np.float32


def test_complex_elements():
    a = (BASE * (1 + 2j)).tocsr()
    J = fwdad.jacobian(lambda A: (A @ A.T) @ c, a, holomorphic=True)
    v = rng.standard_normal(a.nnz) + 1j * rng.standard_normal(a.nnz)
    expected = difference(lambda A: (A @ A.T) @ c, a, v)
    assert_allclose(J @ v, expected, rtol=1e-8, atol=1e-8)


# -- what is not supported says so


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda A: sp.csr_matrix(A).sum(axis=0), fwdad.errors.UnsupportedTypeError, "csr_array"),
        (lambda A: sp.csr_matrix(A).todense(), fwdad.errors.UnsupportedTypeError, "numpy.matrix"),
        (lambda A: np.asmatrix(A.data), fwdad.errors.UnsupportedTypeError, "numpy.matrix"),
        (lambda A: spl.splu((A @ A.T).tocsc()).solve(c), fwdad.errors.MissingRuleError, "gstrf"),
        (np.sum, fwdad.errors.DualLeakError, "lose it"),
    ],
)
def test_unsupported(f, error, message):
    with pytest.raises(error, match=message) as caught:
        fwdad.jvp(f, BASE, BASE)
    assert caught.value.filename == __file__


@pytest.mark.parametrize(
    "f",
    [
        lambda A: A.tolil()[0, 0],
        lambda A: sp.csgraph.dijkstra(A @ A.T),
    ],
)
def test_code_in_c_gets_no_plain_numbers(f):
    with pytest.raises((TypeError, fwdad.errors.MissingRuleError)):
        fwdad.jvp(f, BASE, BASE)


@pytest.mark.parametrize("layout", ["dok", "lil"])
def test_formats_without_an_array_of_elements(layout):
    with pytest.raises(fwdad.errors.UnsupportedTypeError):
        fwdad.jvp(lambda A: A @ b, BASE.asformat(layout))


def test_scipy_sparse_is_imported_by_who_uses_it():
    code = (
        "import sys, numpy as np, fwdad\n"
        "fwdad.jacobian(lambda x: np.sin(x) * x[0], np.ones(3))\n"
        "assert 'scipy.sparse' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scipy_sparse_imported_in_the_middle_of_a_call(tmp_path):
    """The handlers are there from the first call on."""
    (tmp_path / "late.py").write_text(
        "import sys\nimport numpy as np\nimport fwdad\n\n"
        "def f(x):\n    from scipy.sparse import csr_array\n"
        "    return csr_array((x, ([0, 1, 2], [0, 2, 2])), shape=(3, 3)) @ np.arange(3.0)\n\n"
        "assert 'scipy.sparse' not in sys.modules\n"
        "J = fwdad.jacobian(f, np.ones(3))\n"
        "assert (J == np.diag([0.0, 2.0, 2.0])).all(), J\n"
    )
    subprocess.run([sys.executable, str(tmp_path / "late.py")], check=True)

"""Places of entries through gathers, scatters and sums, where indices from outside are known."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from tests.differences import complex_step, difference_along
from tests.drivers.sparse import meshes
from tests.transforms.forward.test_entries import is_placed

X = np.random.default_rng(5).uniform(0.5, 1.5, meshes.N)
FULL = np.random.default_rng(2).normal(size=(meshes.N, meshes.N))
STACK = np.random.default_rng(4).normal(size=(2, meshes.N, 7))


def differences(f, x, step=1e-6):
    return np.stack([(f(x + step * v) - f(x - step * v)) / (2 * step) for v in np.eye(x.size)], -1)


@pytest.mark.every(4, of="numba")
@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("f", meshes.JACOBIANS)
def test_jacobians(f, backend):
    pattern = fwdad.jacobian_sparsity(f, X)
    wanted = differences(f, X)

    def entries(x):
        return fwdad.jacobian(f, x, sparse=pattern)

    assert is_placed(entries, X)
    J = fwdad.jit(entries, backend=backend)
    for x in (X, X[::-1].copy()):
        wanted = differences(f, x)
        assert_allclose(J(x).toarray(), wanted, rtol=1e-7, atol=1e-7)
        assert not np.any(wanted[pattern.toarray() == 0])


@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("f", meshes.HESSIANS)
def test_hessians(f, backend):
    pattern = fwdad.hessian_sparsity(f, X)

    def entries(x):
        return fwdad.hessian(f, x, sparse=pattern)

    assert is_placed(entries, X)
    H = fwdad.jit(entries, backend=backend)(X).toarray()
    gradient = fwdad.grad(f)
    assert_allclose(H, differences(gradient, X), rtol=1e-6, atol=1e-6)
    assert_allclose(H, H.T, rtol=1e-13, atol=1e-14)


@pytest.mark.slow_cases("springs", "scaled")
@pytest.mark.parametrize("f", [meshes.springs, meshes.scaled, meshes.cells])
def test_derivatives_of_entries(f):
    pattern = fwdad.jacobian_sparsity(f, X)
    weights = np.random.default_rng(1).standard_normal(pattern.nnz)

    def weighed(x):
        return fwdad.jacobian(f, x, sparse=pattern, check=False).data @ weights

    directions = np.stack([np.ones_like(X), X, X[::-1]])
    wanted = [difference_along(fwdad.jit(weighed), X, v) for v in directions]
    for n in (1, 2, 3):
        found = fwdad.jit(lambda x, v: fwdad.jvp(weighed, x, v)[1])(X, directions[:n])
        assert_allclose(found, wanted[:n], rtol=1e-7, atol=1e-9)
    gradient = fwdad.jit(fwdad.grad(weighed))(X)
    assert_allclose([gradient @ v for v in directions], wanted, rtol=1e-7, atol=1e-9)


def test_a_chain_of_calls_is_one_loop_each():
    def f(u):
        out = np.zeros_like(u)
        np.add.at(out, np.arange(5), u[:5] ** 2)
        return out

    pattern = fwdad.jacobian_sparsity(f, X)
    assert pattern.nnz == 5
    text = fwdad.show(lambda x: fwdad.jacobian(f, x, sparse=pattern, check=False), X)
    assert "np.add.at" in text  # of the values alone; entries are runs
    assert text.count("np.add.at") == 1


def test_indices_may_change():
    edges = np.stack([meshes.BEGIN, meshes.END])
    full = sp.csr_array(np.ones((meshes.N, meshes.N)))

    def f(u):
        begin, end = edges
        out = np.zeros_like(u)
        np.add.at(out, begin, np.sin(u[end]))
        return out

    J, compiled = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=full, check=False)), fwdad.jit(f)
    for _ in range(3):
        assert is_placed(lambda x: fwdad.jacobian(f, x, sparse=full), X)
        wanted = complex_step(f, X)
        for _ in range(2):
            assert_allclose(J(X).toarray(), wanted, rtol=1e-13)
            found = fwdad.jacobian(compiled, X, sparse=full, check=False)
            assert_allclose(found.toarray(), wanted, rtol=1e-13)
            found = fwdad.jacobian(compiled, X, sparse=True)
            assert_allclose(found.toarray(), wanted, rtol=1e-13)
        edges[:] = np.roll(edges, 7, axis=1)
        edges[0, :4] += 1
        edges %= meshes.N


def test_indices_that_change_again_and_again():
    order = np.arange(meshes.N)
    full = sp.csr_array(np.ones((meshes.N, meshes.N)))
    J = fwdad.jit(lambda x: fwdad.jacobian(lambda u: u[order] ** 2, x, sparse=full, check=False))
    for _ in range(14):
        order[:] = np.roll(order, 1)
        wanted = np.zeros((meshes.N, meshes.N))
        wanted[np.arange(meshes.N), order] = 2 * X[order]
        assert_array_equal(J(X).toarray(), wanted)
    assert fwdad.cache_info(J).traces == 9  # the last assumes nothing of them


def test_lists_of_indices():
    order = [3, 1, 2, 2]
    full = sp.csr_array(np.ones((4, meshes.N)))
    J = fwdad.jit(lambda x: fwdad.jacobian(lambda u: u[order] ** 2, x, sparse=full, check=False))
    for k in range(3):
        order[k] = k
        wanted = np.zeros((4, meshes.N))
        wanted[np.arange(4), order] = 2 * X[order]
        assert_array_equal(J(X).toarray(), wanted)


def test_indices_that_the_program_has_written():
    order = np.arange(meshes.N)
    full = sp.csr_array(np.ones((meshes.N, meshes.N)))

    def f(u):
        order[:2] = order[1], order[0]
        return u[order] ** 2

    def entries(x):
        order[3:5] = order[4], order[3]
        return fwdad.jacobian(lambda u: u[order] ** 2, x, sparse=full, check=False)

    for of in (lambda x: fwdad.jacobian(f, x, sparse=full, check=False, mode="forward"), entries):
        order[:] = np.arange(meshes.N)
        J = fwdad.jit(of)
        for _ in range(3):
            found = J(X).toarray()
            wanted = np.zeros((meshes.N, meshes.N))
            wanted[np.arange(meshes.N), order] = 2 * X[order]
            assert_array_equal(found, wanted)


def test_indices_that_a_loop_writes_further_below():
    order = np.arange(meshes.N)
    full = sp.csr_array(np.ones((meshes.N, meshes.N)))
    weights = np.arange(float(full.nnz))

    def f(x):
        total = 0.0
        for _ in range(3):
            J = fwdad.jacobian(lambda u: u[order] ** 2, x, sparse=full, check=False)
            total += J.data @ weights
            order[:2] = order[1], order[0]
        return total

    wanted = [f(X), f(X)]
    order[:] = np.arange(meshes.N)
    compiled = fwdad.jit(f)
    assert_allclose([compiled(X), compiled(X)], wanted, rtol=1e-14)


def gathered(u, order):
    return u[order] ** 2


def matrix_of_gathered(order):
    wanted = np.zeros((order.size, meshes.N))
    wanted[np.arange(order.size), order] = 2 * X[order]
    return wanted


@pytest.mark.every(2, of="numba", first=1)
@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize("sparse", ["full", True])
def test_indices_that_are_arguments(sparse, backend):
    """The tape holds for these contents; what has others each time is not assumed for long."""
    full = sp.csr_array(np.ones((meshes.N, meshes.N))) if sparse == "full" else True

    def entries(x, order):
        return fwdad.jacobian(gathered, x, args=(order,), sparse=full, check=False)

    order = np.arange(meshes.N)
    J, compiled = fwdad.jit(entries, backend=backend), fwdad.jit(gathered, backend=backend)
    for k in range(5):
        for _ in range(2):
            wanted = matrix_of_gathered(order)
            assert_array_equal(J(X, order).toarray(), wanted)
            found = fwdad.jacobian(compiled, X, args=(order,), sparse=full, check=False)
            assert_array_equal(found.toarray(), wanted)
        order[k:] = order[k:][::-1].copy()
    assert fwdad.cache_info(J).traces == (5 if sparse is True else 4)
    order = np.arange(meshes.N)
    assert_array_equal(J(X, order).toarray(), matrix_of_gathered(order))
    assert is_placed(entries, X, order)  # again the first one


def test_indices_that_are_arguments_and_written_later():
    full = sp.csr_array(np.ones((meshes.N, meshes.N)))

    def after(x, order):
        J = fwdad.jacobian(gathered, x, args=(order,), sparse=full, check=False)
        order[:2] = order[1], order[0]
        return J

    def before(x, order):
        order[:2] = order[1], order[0]
        return fwdad.jacobian(gathered, x, args=(order,), sparse=full, check=False)

    def between(x, order):
        total = 0.0
        for _ in range(2):
            J = fwdad.jacobian(gathered, x, args=(order,), sparse=full, check=False)
            total += J.data @ np.arange(float(full.nnz))
            order[:2] = order[1], order[0]
        return total

    for f in (after, before, between):
        compiled = fwdad.jit(f)
        for _ in range(2):
            orders = np.arange(meshes.N), np.arange(meshes.N)
            found, wanted = compiled(X, orders[0]), f(X, orders[1])
            found, wanted = (getattr(J, "toarray", lambda J=J: J)() for J in (found, wanted))
            assert_allclose(found, wanted, rtol=1e-14)
            assert_array_equal(*orders)


def test_a_mesh_that_is_an_argument():
    """Numbers, arrays of ints and of truth values, in a tuple; and another mesh."""

    def f(u, mesh, power):
        cells, inside = mesh
        out = np.zeros_like(u)
        np.add.at(out, cells[:, 0], u[cells[:, 1]] ** power)
        out[inside] += 1.0 / u[inside]
        return out

    J = fwdad.jit(lambda u, mesh, n: fwdad.jacobian(f, u, args=(mesh, n), sparse=True))
    forward = fwdad.jit(fwdad.jacfwd(f, sparse=True))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        mesh = rng.integers(0, meshes.N, (40, 2)), rng.random(meshes.N) < 0.5
        for power in (2, 3):
            wanted = complex_step(lambda u, mesh=mesh, power=power: f(u, mesh, power), X)
            assert_allclose(J(X, mesh, power).toarray(), wanted, rtol=1e-13, atol=1e-15)
            slopes = forward(X, mesh, power)
            assert_allclose(slopes.toarray(), wanted, rtol=1e-13, atol=1e-15)


def test_a_number_from_outside_may_change():
    size = [12]

    def f(u):
        return u[: size[0]] ** 2

    full = sp.csr_array(np.ones((12, meshes.N)))
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=full, check=False))
    assert_allclose(J(X).toarray(), complex_step(f, X), rtol=1e-14)
    size[0] = 13
    with pytest.raises(fwdad.errors.PatternError):
        J(X)


def test_indices_out_of_range_raise_as_in_the_program():
    order = np.arange(meshes.N)
    full = sp.csr_array(np.ones((meshes.N, meshes.N)))
    order[3] = meshes.N
    with pytest.raises(IndexError):
        fwdad.jit(lambda x: fwdad.jacobian(lambda u: u[order], x, sparse=full, check=False))(X)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_products_with_matrices_and_of_them(layout):
    A = meshes.MATRIX.asformat(layout)
    indices, indptr = meshes.MATRIX.indices[:7], np.array([0, 3, 7])

    def f(u):
        return np.ravel(A @ np.stack([u, u**2], 1))

    def of_data(u):
        B = sp.csr_array((u[meshes.SOME], indices, indptr), shape=(2, meshes.N))
        return B @ (u**2)

    for of in (f, of_data):
        pattern = fwdad.jacobian_sparsity(of, X)
        J = fwdad.jit(fwdad.jacobian(of, sparse=pattern)) if of is f else fwdad.jacobian
        found = J(X) if of is f else J(of, X, sparse=pattern)
        assert_allclose(found.toarray(), differences(of, X), atol=1e-8)


PRODUCTS = {
    "vector, matrix": lambda u: u @ FULL[:, :7],
    "matrix, vector": lambda u: FULL[:7] @ u,
    "vectors": lambda u: (u @ u) * u,
    "vector, stack": lambda u: (u @ STACK).ravel(),
    "stack, vector": lambda u: (STACK.transpose(0, 2, 1) @ u).ravel(),
    "matrices": lambda u: (u.reshape(6, 5) @ FULL[:5, :2]).ravel(),
    "matrices, the other": lambda u: (FULL[:2, :6] @ u.reshape(6, 5)).ravel(),
    "inner": lambda u: np.inner(u, FULL),
    "tensordot": lambda u: np.tensordot(u.reshape(6, 5), FULL[:6, :4], (0, 0)).ravel(),
    "outer": lambda u: np.outer(u[:5], FULL[0, :20]).ravel(),
    "mean": lambda u: np.mean(u.reshape(6, 5), axis=1),
    "array": lambda u: np.array([[u[0], u[1] * 2], [3.0, u[2]]]).ravel() * u[:4],
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    f = PRODUCTS[name]
    wanted = complex_step(f, X)
    full = sp.csr_array(np.ones(wanted.shape))

    def entries(x):
        return fwdad.jacobian(f, x, sparse=full, check=False, mode="forward")

    assert is_placed(entries, X)
    J = fwdad.jit(entries, backend="numpy")(X)
    assert_allclose(J.toarray(), wanted, rtol=1e-12, atol=1e-13)


def test_a_long_sum_is_a_full_row():
    def f(u):
        return u * np.sum(u**2)

    pattern = fwdad.jacobian_sparsity(f, X)
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=pattern))(X)
    assert_allclose(J.toarray(), complex_step(f, X), rtol=1e-12)


def test_a_coefficient_of_zero_beside_infinity():
    def f(u):
        total = np.sum(u[meshes.CELLS] ** 2, axis=1)
        return np.sqrt(total)

    x = X.copy()
    x[meshes.CELLS[0]] = 0  # where the slope of the root is infinite
    pattern = fwdad.jacobian_sparsity(f, X)
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=pattern, check=False))(x).toarray()
    wanted = fwdad.jacobian(f, x)
    assert_array_equal(J[0], np.zeros(meshes.N))
    assert_allclose(J, wanted, rtol=1e-13)


# -- memory that is written after it was read: entries are put in their places at the end


def einsum_of_overwritten(u):
    w = WEIGHTS * 1.0
    y = np.einsum("i,i->i", w, u)
    w[:] = 0
    return y + w


def product_of_overwritten(u):
    w = FULL * 1.0
    y = w @ u
    w[:] = 0
    return y + w[0]


def added_then_overwritten(u):
    w, out = WEIGHTS * 1.0, np.zeros(meshes.N)
    np.add.at(out, PLACES, w * u)
    w[:] = 0
    y = out * u
    out[:] = 1
    return y + out + w


def views_of_what_was_added(u):
    out = np.zeros((meshes.N, 2))
    np.add.at(out[:, 0], PLACES, u)
    np.add.at(out, (PLACES, 1), u**2)
    both = out[:, 0] * out[:, 1]
    out[3] = 0
    np.subtract.at(out.T, (0, PLACES), both)
    backwards = out[::-1]
    backwards[2:5, 1] = u[:3] ** 2
    backwards[10:12] += u[5]
    return out.ravel()


def added_again_and_again(u):
    w = u * 1.0
    for _ in range(3):
        w[1:] = w[:-1] * u[1:]
        np.add.at(w, PLACES, u)
    return w


WEIGHTS = np.arange(meshes.N) + 1.0
PLACES = np.random.default_rng(3).integers(0, meshes.N, meshes.N)


@pytest.mark.every(2, of="numba", first=1)
@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize(
    "f",
    [
        einsum_of_overwritten,
        product_of_overwritten,
        added_then_overwritten,
        views_of_what_was_added,
        added_again_and_again,
    ],
)
def test_memory_that_is_overwritten(f, backend):
    wanted = differences(f, X)
    full = sp.csr_array(np.ones(wanted.shape))

    def entries(x):
        return fwdad.jacobian(f, x, sparse=full, check=False, mode="forward")

    assert is_placed(entries, X)
    J = fwdad.jit(entries, backend=backend)(X).toarray()
    assert_allclose(J, wanted, rtol=1e-7, atol=1e-7)
    assert_allclose(J, fwdad.jacobian(f, X), rtol=1e-12, atol=1e-12)

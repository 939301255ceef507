"""Entries of sparse Jacobians that are coefficients at known places, and what takes directions."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import PatternError
from fwdad.frontend.trace import trace
from fwdad.ir.ops import Apply
from fwdad.tangents.placed import NOWHERE
from fwdad.transforms.forward import place_entries
from fwdad.transforms.forward.placing import points_of, runs_of, runs_through
from tests.differences import complex_step, difference_along
from tests.drivers.sparse import programs
from tests.transforms.forward.test_placing import SMOOTH

X = np.random.default_rng(3).uniform(0.5, 1.5, 40)
ACROSS = X.reshape(5, 8)
PLACED = [
    *((f, X) for f in SMOOTH),
    (programs.burgers, X),
    (programs.bratu, ACROSS),
    (programs.arrow, X),
]
DIRECTIONS = [  # running sums, loops, and indices that depend on the argument
    (programs.written_in_loops, X), (lambda x: x * np.cumsum(x), X),
    (lambda x: x[np.argsort(x)] ** 2, X),
]  # fmt: skip


def pattern_of(f, x):
    return fwdad.jacobian_sparsity(f, x)


def is_placed(g, *args):
    ops = trace(g, *args).program.walk()
    return any(isinstance(op, Apply) and op.function is place_entries for op in ops)


@pytest.mark.every(4, of="numba", first=2)
@pytest.mark.parametrize("backend", ["numba", "numpy"])
@pytest.mark.parametrize(("f", "x"), PLACED)
def test_values(f, x, backend):
    wanted = complex_step(f, x).reshape(-1, x.size)
    pattern = pattern_of(f, x)
    for form in ("csr", "csc", "coo"):

        def entries(x, form=form):
            return fwdad.jacobian(f, x, sparse=pattern, format=form, check=False)

        assert is_placed(entries, x)
        J = fwdad.jit(entries, backend=backend)(x)
        assert J.format == form
        assert J.nnz == pattern.nnz
        assert_allclose(J.toarray(), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("f", "x"), DIRECTIONS)
def test_elsewhere_directions_are_pushed(f, x):
    pattern = pattern_of(f, x)

    def entries(x):
        return fwdad.jacobian(f, x, sparse=pattern)

    assert not is_placed(entries, x)
    assert_allclose(fwdad.jit(entries)(x).toarray(), fwdad.jacobian(f, x), rtol=1e-13)


def test_value_and_aux():
    def f(x):
        return x[1:] * x[:-1], {"size": x.sum()}

    pattern = pattern_of(lambda x: f(x)[0], X)
    both = fwdad.jit(lambda x: fwdad.value_and_jacobian(f, x, sparse=pattern, has_aux=True))
    y, J, aux = both(X)
    assert_array_equal(y, X[1:] * X[:-1])
    assert_allclose(J.toarray(), complex_step(lambda x: f(x)[0], X), rtol=1e-14)
    assert_allclose(aux["size"], X.sum())


def test_hessians():
    def f(x):
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    pattern = fwdad.hessian_sparsity(f, X)

    def entries(x):
        return fwdad.hessian(f, x, sparse=pattern)

    assert is_placed(entries, X)
    own = np.append(1200 * X[:-1] ** 2 - 400 * X[1:] + 2, 0) + np.append(
        0, np.full(X.size - 1, 200)
    )
    wanted = np.diag(own) + np.diag(-400 * X[:-1], 1) + np.diag(-400 * X[:-1], -1)
    assert_allclose(fwdad.jit(entries)(X).toarray(), wanted, rtol=1e-12, atol=1e-11)


@pytest.mark.slow_cases("bratu-x1")
@pytest.mark.parametrize(("f", "x"), [(programs.burgers, X), (programs.bratu, ACROSS)])
def test_derivatives_of_entries(f, x):
    pattern = pattern_of(f, x)
    weights = np.random.default_rng(1).standard_normal(pattern.nnz)

    def weighed(x):
        return fwdad.jacobian(f, x, sparse=pattern, check=False).data @ weights

    wanted = [difference_along(fwdad.jit(weighed), x, v) for v in (np.ones_like(x), x)]
    directions = np.stack([np.ones_like(x), x])
    for n in (1, 2):
        found = fwdad.jit(lambda x, v: fwdad.jvp(weighed, x, v)[1])(x, directions[:n])
        assert_allclose(found, wanted[:n], rtol=1e-8)
    gradient = fwdad.jit(fwdad.grad(weighed))(x)
    assert_allclose([np.sum(gradient * v) for v in directions], wanted, rtol=1e-8)


def test_a_pattern_that_lacks_an_entry():
    f = programs.burgers
    lacking = pattern_of(f, X).tolil()
    lacking[7, 8] = 0
    with pytest.raises(PatternError):
        fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=lacking.tocsr()))(X)


def test_a_pattern_without_entries():
    def f(x):
        return x[1:] * x[:-1]

    empty = sp.csr_array((X.size - 1, X.size))
    with pytest.raises(PatternError):
        fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=empty))(X)
    assert fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=empty, check=False))(X).nnz == 0


@pytest.mark.every(2, of="numba", first=1)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.real((x + 0j) * (1 + 2j) * np.exp(1j * x))[1:] * x[:-1],
        lambda x: np.abs(x[1:] * 1j + x[:-1]),
    ],
)
@pytest.mark.parametrize("backend", ["numba", "numpy"])
def test_complex_numbers_on_the_way(f, backend):
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=True), backend=backend)(X)
    assert_allclose(J.toarray(), fwdad.jacobian(f, X), rtol=1e-13, atol=1e-14)


def test_effects_are_not_repeated():
    calls = np.zeros(1)

    def f(x):
        calls[0] += 1
        return x[1:] * x[:-1]

    whole = pattern_of(lambda x: x[1:] * x[:-1], X)
    lacking = whole.tolil()
    lacking[7, 8] = 0
    for k, pattern in enumerate((whole, lacking.tocsr())):
        J = fwdad.jit(lambda x, of=pattern: fwdad.jacobian(f, x, sparse=of, check=False))
        J(X)
        assert calls[0] == k + 1


def test_a_pattern_with_more_entries():
    f = programs.burgers
    more = sp.csr_array(np.ones((X.size, X.size)))
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=more, mode="forward"))(X)
    assert J.nnz == X.size**2
    assert_allclose(J.toarray(), fwdad.jacobian(f, X), rtol=1e-14)


def test_single_precision():
    x = X.astype(np.float32)
    J = fwdad.jit(lambda x: fwdad.jacobian(programs.burgers, x, sparse=True))(x)
    assert J.dtype == np.float32
    assert_allclose(J.toarray(), fwdad.jacobian(programs.burgers, X), rtol=1e-5, atol=1e-6)


def test_runs():
    rng = np.random.default_rng(0)
    for size in range(1, 12):
        for _ in range(40):
            places = rng.integers(-1, 4, size) if size % 2 else np.arange(size) * 2 - 3
            elements = np.flatnonzero(places >= 0)
            runs = runs_of(np.where(places < 0, NOWHERE, places))
            again = [np.stack([a.ravel() for a in points_of(run)], 1) for run in runs]
            found = np.concatenate([*again, np.empty((0, 2), int)])
            assert_array_equal(
                found[np.argsort(found[:, 0])], np.stack([elements, places[elements]], 1)
            )


def test_runs_of_a_torus():
    # each row's first element is a point, the others a run: two forms, taken in turns
    elements = np.arange(600)
    places = np.where(elements % 20 == 0, elements + 19, elements - 1) * 3
    assert len(runs_through(elements, places)) == 2

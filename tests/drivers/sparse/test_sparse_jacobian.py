"""Sparse Jacobians and Hessians beside dense ones, at once and compiled, in every mode."""

import copy
import pickle
from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import fwdad
from fwdad.colouring import Colouring, colour, kernels
from fwdad.drivers.sparse import plans
from fwdad.errors import ColouringError, PatternError, SeedError, UnsupportedTypeError
from tests.colouring import patterns
from tests.drivers.sparse import programs
from tests.tiers import every

RNG = np.random.default_rng(5)
FORMATS = ("csr", "csc", "coo", "bsr", "dia")
CASES = [
    (programs.burgers, RNG.random(13), patterns.banded(13, 1)),
    (programs.written_in_loops, RNG.random(13), patterns.banded(13, 1)),
    (programs.bratu, RNG.random((4, 5)), patterns.laplacian(4, 5)),
    (programs.arrow, RNG.random(9), patterns.arrow(9)),
    (programs.wide, RNG.random(8), None),
    (programs.scattered, RNG.random(10), None),
]


def dense(f, x, derivative=fwdad.jacobian):
    return derivative(f, x).reshape(-1, x.size)


def pattern_of(f, x, given):
    return programs.ones(dense(f, x)) if given is None else given


@pytest.mark.every(18, of="jit")
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
@pytest.mark.parametrize(("f", "x", "given"), CASES)
def test_values(f, x, given, mode, jit):
    pattern = pattern_of(f, x, given)
    for chunk in (1, 2, 3, None, "auto"):
        J = fwdad.jacobian(jit(f), x, sparse=pattern, mode=mode, chunk=chunk)
        assert type(J) is sp.csr_array
        assert J.shape == pattern.shape
        assert J.nnz == pattern.nnz
        np.testing.assert_allclose(J.toarray(), dense(f, x), rtol=1e-13, atol=1e-14)


@pytest.mark.every(4, first=1)
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
@pytest.mark.parametrize(("f", "x", "given"), CASES)
def test_one_compiled_function(f, x, given, mode):
    pattern = pattern_of(f, x, given)
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=pattern, mode=mode))
    for at in (x, x + 0.5, x - 0.25):
        np.testing.assert_allclose(J(at).toarray(), dense(f, at), rtol=1e-13, atol=1e-14)
    assert fwdad.cache_info(J).traces == 1
    first, second = J(x), J(x)
    first.data[:] = 7
    with pytest.raises(ValueError, match="read-only"):  # all matrices share them
        first.indices[:] = 0
    first.copy().indices[:] = 0
    np.testing.assert_allclose(second.toarray(), dense(f, x), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(J(x).toarray(), dense(f, x), rtol=1e-13, atol=1e-14)


@pytest.mark.every(2, of="jit", first=1)
@pytest.mark.every(4, of="jit")
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["columns", "rows", "both"])
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
def test_formats_of_every_kind(form, kind, jit):
    f, x, pattern = CASES[3]
    colouring = colour(pattern, kind)
    J = jit(fwdad.jacobian(f, sparse=colouring, format=form))(x)
    assert J.format == form
    assert isinstance(J, sp.sparray)
    np.testing.assert_allclose(J.toarray(), dense(f, x), rtol=1e-13)


@pytest.mark.every(3, of="jit", first=1)
@pytest.mark.parametrize("kind", ["columns", "rows", "both"])
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
def test_dense_arrays_of_every_kind(kind, jit):
    f, x, pattern = CASES[3]
    J = jit(fwdad.jacobian(f, sparse=colour(pattern, kind), format="dense"))(x)
    assert type(J) is np.ndarray
    np.testing.assert_allclose(J, dense(f, x), rtol=1e-13)
    with pytest.raises(PatternError, match="misses the entry"):
        fwdad.jacobian(f, x, sparse=patterns.banded(9, 1), format="dense")


@pytest.mark.slow_cases("reverse")
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_calls_that_are_made_again(mode):
    """The next call of a function under jit takes a shortcut, which looks at the pattern."""
    x, narrow, wide = RNG.random(13), patterns.banded(13, 1), patterns.banded(13, 2)
    f = fwdad.jit(programs.burgers)
    of = fwdad.jacobian(f, sparse=narrow, mode=mode)
    for k in range(4):
        at = x + k
        wanted = dense(programs.burgers, at)
        for pattern in (narrow, wide, narrow):
            J = fwdad.jacobian(f, at, sparse=pattern, mode=mode)
            assert J.nnz == pattern.nnz
            np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-13, atol=1e-14)
            y, J = fwdad.value_and_jacobian(f, at, sparse=pattern, mode=mode, format="csc")
            np.testing.assert_allclose(y, programs.burgers(at))
            np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(of(at).toarray(), wanted, rtol=1e-13, atol=1e-14)
        np.testing.assert_allclose(fwdad.jacobian(f, at, mode=mode), wanted, rtol=1e-13, atol=1e-14)
    # at each of these shortcuts one tape is run
    assert fwdad.cache_info(f).traces <= 8


def test_hessians_that_are_asked_for_again():
    x, pattern = RNG.random(12), patterns.banded(12, 1)
    f = fwdad.jit(programs.rosenbrock)
    for k in range(4):
        H = fwdad.hessian(f, x + k, sparse=pattern, format="csc")
        wanted = fwdad.hessian(programs.rosenbrock, x + k)
        np.testing.assert_allclose(H.toarray(), wanted, rtol=1e-10, atol=1e-10)


def test_both_take_fewer_products():
    f, x, pattern = CASES[3]
    runs = []

    def counted(x):
        runs.append(None)
        return f(x)

    fwdad.jacobian(counted, x, sparse=pattern, check=False)
    assert len(runs) == 2  # one with directions, one backwards; columns alone take nine colours


@pytest.mark.every(2, of="jit", first=1)
@pytest.mark.every(5, of="jit", first=1)
@pytest.mark.parametrize(
    ("kind", "form"), every(3, product(["star", "acyclic", "columns", None], FORMATS))
)
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize(
    ("f", "pattern"),
    [(programs.rosenbrock, patterns.banded(12, 1)), (programs.with_arrow, patterns.arrow(12))],
)
def test_hessian(f, pattern, jit, kind, form):
    x = RNG.random(12)
    given = pattern if kind is None else colour(pattern, kind)
    wanted = fwdad.hessian(f, x)
    for chunk in (1, 2, None) if form == "csr" else ("auto",):
        for H in (
            fwdad.hessian(jit(f), x, sparse=given, format=form, chunk=chunk),
            jit(fwdad.hessian(f, sparse=given, format=form, chunk=chunk))(x),
        ):
            assert H.format == form
            np.testing.assert_allclose(H.toarray(), wanted, rtol=1e-10, atol=1e-10)


def test_hessian_in_a_traced_function():
    pattern, x = patterns.banded(12, 1), RNG.random(12)

    @fwdad.jit
    def scaled(x, s):
        return fwdad.hessian(lambda x: s * programs.rosenbrock(x), x, sparse=pattern)

    wanted = 3 * fwdad.hessian(programs.rosenbrock, x)
    for _ in range(2):
        np.testing.assert_allclose(scaled(x, 3.0).toarray(), wanted, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
def test_transformers(jit):
    f, x, pattern = CASES[0]
    for transform in (fwdad.jacfwd, fwdad.jacrev):
        J = jit(transform(f, sparse=pattern, format="csc"))
        np.testing.assert_allclose(J(x).toarray(), dense(f, x), rtol=1e-13)
    y, J = jit(fwdad.value_and_jacobian(f, sparse=pattern))(x)
    np.testing.assert_allclose(y, f(x))
    np.testing.assert_allclose(J.toarray(), dense(f, x), rtol=1e-13)


def scaled(t, x, s=1.0):
    return s * t * programs.burgers(x), t


@pytest.mark.every(2, of="jit")
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
def test_other_arguments_and_aux(mode, jit):
    x, pattern = RNG.random(13), patterns.banded(13, 1)
    options = {"sparse": pattern, "argnums": 1, "has_aux": True, "mode": mode}
    wanted = 6 * dense(programs.burgers, x)
    J, aux = fwdad.jacobian(jit(scaled), 2.0, args=(x,), kwargs={"s": 3.0}, **options)
    assert aux == 2.0
    np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-13)
    J, aux = jit(fwdad.jacobian(scaled, **options))(2.0, x, s=3.0)
    np.testing.assert_allclose(J.toarray(), wanted, rtol=1e-13)


@pytest.mark.every(2, of="jit")
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_float32(mode, jit):
    f, x, pattern = CASES[0]
    x = x.astype(np.float32)
    for J in (
        fwdad.jacobian(jit(f), x, sparse=pattern, mode=mode),
        jit(fwdad.jacobian(f, sparse=pattern, mode=mode))(x),
    ):
        assert J.dtype == np.float32
        np.testing.assert_allclose(J.toarray(), dense(f, x.astype(float)), rtol=1e-4, atol=1e-5)


def test_complex():
    pattern = patterns.banded(6, 1)
    z = RNG.random(6) + 1j * RNG.random(6)

    def f(z):
        return z**2 + np.concatenate([z[1:] * 1j, z[-1:] * z[-2]])

    with pytest.raises(fwdad.errors.NotHolomorphicError):
        fwdad.jacobian(f, z, sparse=pattern)
    for jit in (lambda f: f, fwdad.jit):
        J = fwdad.jacobian(jit(f), z, sparse=pattern, holomorphic=True, mode="forward")
        np.testing.assert_allclose(J.toarray(), fwdad.jacobian(f, z, holomorphic=True), rtol=1e-13)
    turned = lambda x: x * (1 + 2j) + x[::-1] * 0  # noqa: E731
    J = fwdad.jacobian(turned, z.real, sparse=np.eye(6) + np.eye(6)[::-1], mode="forward")
    np.testing.assert_allclose(J.toarray(), (1 + 2j) * np.eye(6))
    with pytest.raises(UnsupportedTypeError, match="by rows"):
        fwdad.jacobian(turned, z.real, sparse=np.eye(6) + np.eye(6)[::-1], mode="reverse")


def test_numbers_and_dense_patterns():
    x = RNG.random(4)
    J = fwdad.jacobian(lambda x: np.sum(x[:2] ** 2), x, sparse=[[True, True, False, False]])
    assert J.nnz == 2
    np.testing.assert_allclose(J.toarray(), [[2 * x[0], 2 * x[1], 0, 0]])
    J = fwdad.jacobian(lambda t: np.array([t, 0.0, t * t]), 3.0, sparse=np.array([[1], [0], [1]]))
    np.testing.assert_allclose(J.toarray(), [[1], [0], [6]])
    empty = fwdad.jacobian(lambda x: np.ones(3), x, sparse=sp.csr_array((3, 4)))
    assert empty.nnz == 0
    assert empty.shape == (3, 4)


@pytest.mark.every(6, first=5)
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_missed_entry(mode, jit):
    f, x, pattern = CASES[0]
    less = sp.lil_array(pattern)
    less[7, 6] = 0
    less = less.tocsr()
    with pytest.raises(PatternError, match=r"misses the entry \(7, 6\)"):
        fwdad.jacobian(jit(f), x, sparse=less, mode=mode)
    with pytest.raises(PatternError, match=r"misses the entry \(7, 6\)"):
        fwdad.jacobian(f, x, sparse=less, mode=mode)
    fwdad.jacobian(jit(f), x, sparse=less, mode=mode, check=False)
    J = fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=less, mode=mode))
    for _ in range(2):  # not only at the first call: that one has not passed
        with pytest.raises(PatternError, match=r"misses the entry \(7, 6\)"):
            J(x)
    of_inner = fwdad.jit(lambda x, s: fwdad.jacobian(lambda x: s * f(x), x, sparse=less, mode=mode))
    for _ in range(2):
        with pytest.raises(PatternError, match="misses an entry"):
            of_inner(x, 2.0)
    assert fwdad.jit(lambda x: fwdad.jacobian(f, x, sparse=less, check=False))(x).nnz == less.nnz


def test_missed_entry_of_a_hessian():
    less = patterns.banded(12, 1).tolil()
    less[3, 4] = less[4, 3] = 0
    for f in (programs.rosenbrock, fwdad.jit(programs.rosenbrock)):
        with pytest.raises(PatternError, match=r"misses the entry \((3, 4|4, 3)\)"):
            fwdad.hessian(f, RNG.random(12), sparse=less.tocsr())


def test_what_is_written_after_the_jacobian():
    f, x, pattern = CASES[0]

    @fwdad.jit
    def later(x):
        y = x.copy()
        J = fwdad.jacobian(f, y, sparse=pattern)
        y[:] = 0
        return J, y

    J, y = later(x)
    np.testing.assert_allclose(J.toarray(), dense(f, x), rtol=1e-13)
    assert not np.any(y)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_checked_until_one_has_passed(backend):
    f, x, pattern = CASES[0]
    runs = []

    def counted(x):
        fwdad.stop_gradient(x)
        return f(x)

    def noted(*given):
        runs.append(None)
        return check(*given)

    from fwdad.drivers.sparse import checks  # noqa: PLC0415

    check = checks.check_entries
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "check_entries", noted)
        J = fwdad.jit(lambda x: fwdad.jacobian(counted, x, sparse=pattern), backend=backend)
        for k in range(3):
            np.testing.assert_allclose(J(x + k).toarray(), dense(f, x + k), rtol=1e-13)
    assert len(runs) == 1


def test_what_is_checked_once():
    f, x, pattern = CASES[0]
    runs = []

    def counted(x):
        runs.append(None)
        return f(x)

    for _ in range(3):
        fwdad.jacobian(counted, x, sparse=pattern)
    assert len(runs) == 4
    other = patterns.banded(13, 2)
    fwdad.jacobian(counted, x, sparse=other)
    assert len(runs) == 6


@pytest.mark.slow_cases("jit")
@pytest.mark.parametrize("jit", [lambda f: f, fwdad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_other_shapes(mode, jit):
    f, x, _ = CASES[0]
    for shape, which in (((13, 12), "columns"), ((12, 13), "rows"), ((14, 13), "rows")):
        pattern = sp.csr_array(np.ones(shape))
        with pytest.raises(PatternError, match=f"number of {which}"):
            fwdad.jacobian(jit(f), x, sparse=pattern, mode=mode)
        with pytest.raises(PatternError, match=f"number of {which}"):
            jit(fwdad.jacobian(f, sparse=pattern, mode=mode))(x)


def test_bad_input():
    f, x, pattern = CASES[0]
    with pytest.raises(PatternError, match="a pattern is a sparse matrix"):
        fwdad.jacobian(f, x, sparse="banded")
    with pytest.raises(PatternError, match="two dimensions"):
        fwdad.jacobian(f, x, sparse=np.ones(13))
    with pytest.raises(ColouringError, match="format is one of"):
        fwdad.jacobian(f, x, sparse=pattern, format="lil")
    with pytest.raises(ColouringError, match='kind="rows"'):
        fwdad.jacrev(f, sparse=colour(pattern, "columns"))
    with pytest.raises(ColouringError, match="a Jacobian need not be"):
        fwdad.jacobian(f, x, sparse=colour(pattern, "star"))
    with pytest.raises(ColouringError, match="symmetric"):
        fwdad.hessian(programs.rosenbrock, x, sparse=np.triu(np.ones((13, 13))))
    none = Colouring(colour(pattern).pattern, "columns", np.zeros(13, int), None)
    with pytest.raises(ColouringError, match="no colouring"):
        fwdad.jacobian(f, x, sparse=none)
    with pytest.raises(UnsupportedTypeError, match="are of sparse Jacobians"):
        fwdad.jacobian(f, x, format="csc")
    with pytest.raises(UnsupportedTypeError, match="with respect to one argument"):
        fwdad.jacobian(lambda x, y: x, x, args=(x,), sparse=pattern, argnums=(0, 1))
    with pytest.raises(UnsupportedTypeError, match="the argument is"):
        fwdad.jacobian(lambda p: p[0], (x, x), sparse=pattern)
    with pytest.raises(UnsupportedTypeError, match="value is"):
        fwdad.jacobian(lambda x: (x, x), x, sparse=pattern)
    with pytest.raises(SeedError, match="chunk"):
        fwdad.jacobian(f, x, sparse=pattern, chunk=0)
    with pytest.raises(UnsupportedTypeError):
        fwdad.jacobian(f, np.arange(13), sparse=pattern)


def test_nested_derivatives():
    """A sparse Jacobian's entries are differentiated as any other values are."""
    f, x, pattern = CASES[0]

    def weighted(x):
        return np.sum(fwdad.jacobian(f, x, sparse=pattern, check=False).data ** 2)

    def weighted_densely(x):
        return np.sum(fwdad.jacobian(f, x) ** 2)

    wanted = fwdad.jacobian(weighted_densely, x, mode="forward")
    np.testing.assert_allclose(fwdad.jacobian(weighted, x, mode="forward"), wanted, rtol=1e-12)
    np.testing.assert_allclose(fwdad.jit(fwdad.grad(weighted))(x), wanted, rtol=1e-12)


def test_in_a_traced_function():
    f, x, pattern = CASES[0]

    @fwdad.jit
    def both(x):
        J = fwdad.jacobian(f, x, sparse=pattern)
        return J, np.sum(J.data), J.shape

    J, total, shape = both(x)
    assert shape == (13, 13)
    np.testing.assert_allclose(total, np.sum(J.data))

    @fwdad.jit
    def multiplied(x):
        return fwdad.jacobian(f, x, sparse=pattern).tocsc()

    with pytest.raises(fwdad.errors.UntraceableError, match="cannot be traced: return"):
        multiplied(x)


def test_functions_that_share_a_pattern_are_checked_each():
    pattern, x = patterns.banded(5, 0), RNG.random(5)
    fwdad.jacobian(np.sin, x, sparse=pattern)
    with pytest.raises(PatternError):
        fwdad.jacobian(np.cumsum, x, sparse=pattern)


def test_pickles():
    J = fwdad.jacfwd(programs.burgers, sparse=patterns.banded(13, 1))
    x = RNG.random(13)
    for other in (pickle.loads(pickle.dumps(J)), copy.deepcopy(J)):
        np.testing.assert_array_equal(other(x).toarray(), J(x).toarray())


def test_a_pattern_is_coloured_once(monkeypatch):
    from fwdad.drivers.sparse import plans  # noqa: PLC0415

    coloured = []

    def counted(pattern, kind):
        coloured.append(kind)
        return colour(pattern, kind)

    monkeypatch.setattr(plans, "colour", counted)
    pattern, x = patterns.banded(13, 1), RNG.random(13)
    for _ in range(3):
        fwdad.jacobian(programs.burgers, x, sparse=pattern)
    assert coloured == ["columns"]


class Pair:
    """Two functions of one object: what is checked of one says nothing of the other."""

    def square(self, x):
        return x * x

    def shifted(self, x):
        return x * np.roll(x, 1)


def test_each_method_is_checked():
    both, pattern, x = Pair(), sp.eye_array(5, format="csr"), np.linspace(0.3, 1.0, 5)
    J = fwdad.jacobian(both.square, x, sparse=pattern)
    np.testing.assert_allclose(J.toarray(), np.diag(2 * x))
    for make in (lambda f: f, fwdad.jit):
        with pytest.raises(PatternError, match="misses the entry"):
            fwdad.jacobian(make(both.shifted), x, sparse=pattern)


def test_each_argument_is_checked():
    pattern, x = sp.eye_array(5, format="csr"), np.linspace(0.3, 1.0, 5)

    def f(a, b):
        return a + np.roll(b, 1)

    for g in (f, fwdad.jit(f)):
        for _ in range(3):
            fwdad.jacobian(g, x, args=(x,), sparse=pattern)
        with pytest.raises(PatternError, match="misses the entry"):
            fwdad.jacobian(g, x, args=(x,), argnums=1, sparse=pattern)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("way", ["lists", "compiled", "arrays"])
def test_places_of_entries(form, way, monkeypatch):
    """Where entries stand in the matrix, by loops and by NumPy, beside a search one by one."""
    monkeypatch.setattr(plans, "have_numba", lambda: way == "compiled")
    monkeypatch.setattr(plans, "FEW_STEPS", 10**9 if way == "lists" else 0)
    monkeypatch.setattr(kernels, "FEW_STEPS", 0 if way == "compiled" else 10**9)
    dense = RNG.random((7, 9)) < 0.4
    dense[3] = False
    plan = plans.plan_for(sp.csr_array(dense), "forward", form)
    i, j = plan.coordinates
    places = {at: k for k, at in enumerate(zip(i.tolist(), j.tolist(), strict=True))}
    rows, columns = RNG.permutation(np.argwhere(dense)).T
    wanted = [places[at] for at in zip(rows.tolist(), columns.tolist(), strict=True)]
    np.testing.assert_array_equal(plan.positions(rows, columns), wanted)
    for row, column in ((3, 0), *np.argwhere(~dense)[[0, -1]]):
        lacking = np.append(rows, row), np.append(columns, column)
        assert plan.positions(*lacking) is None

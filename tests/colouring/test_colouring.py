"""Colourings of a list of patterns: verified by the definitions, and the way there and back."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from fwdad.colouring import ORDERS, Colouring, colour
from fwdad.colouring.colouring import KINDS
from fwdad.errors import ColouringError
from tests.colouring.patterns import (
    ALL,
    RECTANGULAR,
    SYMMETRIC,
    arrow,
    banded,
    laplacian,
    random_pattern,
    symmetric_part,
)
from tests.colouring.verifier import (
    is_acyclic_colouring,
    is_bidirectional,
    is_column_colouring,
    is_proper,
    is_star_colouring,
    is_symmetric_recovery,
)

CASES = [
    pytest.param(pattern, kind, id=f"{name}-{kind}")
    for kind in KINDS
    for name, pattern in (SYMMETRIC if kind in {"star", "acyclic"} else ALL).items()
]


def verify(c, dense):
    """What the definition of its kind says of a colouring."""
    columns, rows = c.column_colours, c.row_colours
    if c.kind == "columns":
        return is_column_colouring(dense, columns)
    if c.kind == "rows":
        return is_column_colouring(dense.T, rows)
    if c.kind == "both":
        return is_bidirectional(dense, columns, rows)
    if c.kind == "acyclic":
        return is_acyclic_colouring(dense, columns)
    if np.all(np.diag(dense)):
        return is_star_colouring(dense, columns)
    return is_symmetric_recovery(dense, columns)


def used(colours):
    """The colours that are there; -1 is none."""
    return set() if colours is None else set(colours.tolist()) - {-1}


def values(pattern, kind, rng, dtype=float):
    """A matrix of the pattern, in small ints: their sums are exact."""
    a = sp.csr_array(pattern, dtype=dtype)
    a.data[:] = rng.integers(1, 1000, a.nnz)
    return sp.csr_array(sp.triu(a) + sp.triu(a, 1).T) if kind in {"star", "acyclic"} else a


def round_trip(c, a):
    """The matrix that comes back from the products."""
    columns = a @ c.column_seeds(a.dtype) if c.column_colours is not None else None
    rows = c.row_seeds(a.dtype) @ a if c.row_colours is not None else None
    return c.matrix(columns, rows)


@pytest.mark.slow_cases("nine points-both", "27 points-acyclic", "periodic, two species-both")
@pytest.mark.parametrize(("pattern", "kind"), CASES)
def test_each_pattern(pattern, kind, rng):
    c = colour(pattern, kind)
    dense = pattern.toarray()
    assert verify(c, dense)
    assert used(c.column_colours) == set(range(c.column_count))
    assert used(c.row_colours) == set(range(c.row_count))
    a = values(pattern, kind, rng)
    found = round_trip(c, a)
    np.testing.assert_array_equal(found.toarray(), a.toarray())
    np.testing.assert_array_equal(found.indices, c.pattern.indices)
    c.verify()
    c.check_pattern(pattern)


@pytest.mark.every(3)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_each_order(order, kind):
    best = {}
    for name, pattern in SYMMETRIC.items():
        c = colour(pattern, kind, order)
        assert verify(c, pattern.toarray()), name
        best[name] = c.count
    for name in ("laplacian 2-D", "random", "mesh"):
        assert colour(SYMMETRIC[name], kind, [order, "natural"]).count <= best[name]
        assert colour(SYMMETRIC[name], kind).count <= best[name]


@given(st.data())
def test_random_patterns(data):
    m, n = data.draw(st.integers(0, 9)), data.draw(st.integers(0, 9))
    kind = data.draw(st.sampled_from(KINDS))
    symmetric = kind in {"star", "acyclic"}
    shape = (n, n) if symmetric else (m, n)
    bits = data.draw(st.lists(st.booleans(), min_size=shape[0] * n, max_size=shape[0] * n))
    dense = np.array(bits, bool).reshape(shape)
    if symmetric:
        dense |= dense.T
    order = data.draw(st.sampled_from([None, *ORDERS]))
    c = colour(dense, kind, order)
    assert verify(c, dense)
    a = values(sp.csr_array(dense.astype(float)), kind, np.random.default_rng(0))
    np.testing.assert_array_equal(round_trip(c, a).toarray(), a.toarray())


def test_floats_come_back(rng):
    """Directly to the last bit; by substitution up to rounding."""
    a = sp.csr_array(laplacian(12, 13))
    a.data[:] = rng.normal(size=a.nnz)
    a = sp.csr_array(a + a.T)
    for kind in KINDS:
        found = round_trip(colour(a, kind), a)
        np.testing.assert_allclose(
            found.data, a.data, rtol=0, atol=1e-13 if kind == "acyclic" else 0
        )


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int64, np.float64, object])
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_of_products(kind, dtype):
    a = values(laplacian(5, 4), kind, np.random.default_rng(0))
    c = colour(a, kind)
    columns = None if c.column_colours is None else np.asarray(a @ c.column_seeds(), dtype)
    rows = None if c.row_colours is None else np.asarray(c.row_seeds() @ a, dtype)
    data = c.decompress(columns, rows)
    assert data.dtype == dtype
    np.testing.assert_array_equal(data.astype(complex), a.data)


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_of_products(kind):
    a = values(laplacian(5, 4), kind, np.random.default_rng(0))
    c = colour(a, kind)
    for change in (np.ascontiguousarray, np.asfortranarray, lambda x: np.repeat(x, 2, 1)[:, ::2]):
        columns = None if c.column_colours is None else change(a @ c.column_seeds())
        rows = None if c.row_colours is None else change(c.row_seeds() @ a)
        np.testing.assert_array_equal(c.decompress(columns, rows), a.data)


def test_forms_of_patterns():
    """Duplicates, no order, explicit zeros, other classes and types: the entries count."""
    rows, columns = np.array([2, 0, 1, 0, 2, 1]), np.array([0, 1, 1, 1, 2, 0])
    expected = [[0, 1, 0], [1, 1, 0], [1, 0, 1]]
    for data in (np.zeros(6), np.ones(6, bool), np.array([1, 1, 1, -1, 1, 1]), np.ones(6) * 1j):
        entries = sp.coo_array((data, (rows, columns)), shape=(3, 3))
        for form in (entries, sp.coo_matrix(entries), entries.tocsc(), entries.tolil()):
            if form.format == "lil" and not np.all(data):
                continue  # it drops zeros itself
            c = colour(form)
            assert c.pattern.toarray().astype(int).tolist() == expected or form.format != "coo"
    unsorted = sp.csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    assert colour(unsorted).pattern.indices.tolist() == [0, 2, 1]
    assert colour(np.array(expected)).pattern.toarray().astype(int).tolist() == expected
    wide = unsorted.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    assert colour(wide).column_colours.tolist() == colour(unsorted).column_colours.tolist()


def test_the_pattern_is_its_own():
    a = banded(5, 1)
    c = colour(a)
    a.indices[:] = 0
    c.verify()
    found = c.matrix(np.zeros((5, 3)))
    found.eliminate_zeros()
    assert c.pattern.nnz == 13


def test_slices_of_seeds():
    c = colour(arrow(8), "both")
    whole = c.column_seeds()
    np.testing.assert_array_equal(c.column_seeds(colours=slice(1, None)), whole[:, 1:])
    np.testing.assert_array_equal(c.row_seeds(int, slice(0, 1)), c.row_seeds()[:1])
    assert c.column_seeds(np.float32).dtype == np.float32
    assert whole.flags.f_contiguous  # each seed lies in one piece


def test_it_shows_itself():
    assert (
        repr(colour(banded(5, 1)))
        == "<Colouring of 5 × 5 with 13 entries by columns: 3 colours, natural>"
    )


def test_planted_colourings_are_refused():
    """The verifiers of the library and of the tests find what is no colouring, and agree."""
    rng = np.random.default_rng(0)
    kinds = dict.fromkeys(KINDS, 0)
    for kind in KINDS:
        for trial in range(150):
            n = int(rng.integers(2, 7))
            dense = symmetric_part(random_pattern(n, n, 0.3, trial)).toarray() + np.eye(n)
            columns = rng.integers(0, n, n) if kind != "rows" else None
            rows = rng.integers(0, n, n) if kind in {"rows", "both"} else None
            c = Colouring(colour(dense).pattern, kind, columns, rows)
            if verify(c, dense):
                Colouring.from_colours(dense, kind, columns=columns, rows=rows)
                continue
            kinds[kind] += 1
            with pytest.raises(ColouringError, match="no colouring of kind"):
                Colouring.from_colours(dense, kind, columns=columns, rows=rows)
    assert all(10 < count < 150 for count in kinds.values()), kinds


def test_the_verifiers_of_the_tests_find_faults():
    path = banded(4, 1).toarray()
    assert is_star_colouring(path, [0, 1, 0, 2])
    assert not is_star_colouring(path, [0, 1, 0, 1])
    assert is_acyclic_colouring(path, [0, 1, 0, 1])
    assert not is_acyclic_colouring(path + np.eye(4)[::-1], [0, 1, 0, 1])
    assert not is_proper(path, [0, 0, 1, 2])
    assert not is_column_colouring(path, [0, 1, 0, 2])
    assert not is_bidirectional(path, [0, 1, 0, 2], [-1, -1, -1, 0])
    assert is_bidirectional(path, [0, 1, 0, 2], [-1, 0, -1, -1])


ERRORS = {
    "not square": (lambda: colour(RECTANGULAR["tall"], "star"), r"shape \(80, 30\)"),
    "not symmetric": (
        lambda: colour([[1, 1, 0], [0, 1, 0], [0, 1, 1]], "acyclic"),
        r"\(0, 1\) without \(1, 0\), as 2 entries",
    ),
    "no kind": (lambda: colour(banded(3, 1), "diagonal"), "kind is one of columns, rows"),
    "no order": (lambda: colour(banded(3, 1), order="last"), "'last' came"),
    "no orders": (lambda: colour(banded(3, 1), order=[]), "empty sequence"),
    "a vector": (lambda: colour(np.ones(3)), r"of shape \(3,\)"),
    "a sparse vector": (lambda: colour(sp.coo_array(np.ones(3))), "and this one 1"),
    "strings": (lambda: colour(np.array([["a"]])), "array of numbers or bools"),
    "no product": (lambda: colour(banded(3, 1)).decompress(), r"decompress\(columns=…\)"),
    "no product of rows": (lambda: colour(banded(3, 1), "rows").decompress(), r"rows=…\)"),
    "other product": (
        lambda: colour(banded(3, 1)).decompress(rows=np.ones((3, 3)), columns=np.ones((3, 3))),
        "takes no product with its seeds of rows",
    ),
    "shape": (
        lambda: colour(banded(3, 1)).decompress(np.ones((3, 2))),
        r"of shape \(3, 3\), and a float64 array of shape \(3, 2\)",
    ),
    "product of strings": (lambda: colour(banded(1, 0)).decompress([["a"]]), "array of numbers"),
    "no seeds": (lambda: colour(banded(3, 1)).row_seeds(), "no colours of rows"),
    "another shape": (lambda: colour(banded(3, 1)).check_pattern(np.eye(4)), r"\(4, 4\)"),
    "another pattern": (
        lambda: colour(banded(4, 1)).check_pattern(np.eye(4) + np.eye(4)[::-1]),
        "2 entries more and 4 fewer",
    ),
    "given kind": (lambda: Colouring.from_colours(np.eye(3), "all"), "'all' came"),
    "given too few": (
        lambda: Colouring.from_colours(np.eye(3), "columns", columns=[0, 1]),
        r"3 ints, and an int64 array of shape \(2,\)",
    ),
    "given floats": (
        lambda: Colouring.from_colours(np.eye(3), "columns", columns=[0.0, 1.0, 2.0]),
        "a float64 array",
    ),
    "given none": (
        lambda: Colouring.from_colours(np.eye(3), "both", rows=[0] * 3),
        "needs colours",
    ),
    "given others": (
        lambda: Colouring.from_colours(np.eye(3), "rows", rows=[0] * 3, columns=[0] * 3),
        "has no colours of columns",
    ),
    "given too large": (
        lambda: Colouring.from_colours(np.eye(3), "columns", columns=[0, 1, 7]),
        "from 0 to 7",
    ),
    "given wrong": (
        lambda: Colouring.from_colours(np.ones((2, 2)), "columns", columns=[0, 0]),
        r"the entry \(0, 0\) cannot be found, as 4 of 4",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors(case):
    call, message = ERRORS[case]
    with pytest.raises(ColouringError, match=message):
        call()


def test_colours_that_were_not_verified_are_refused_when_used():
    c = Colouring(colour(np.ones((2, 2))).pattern, "columns", np.zeros(2, int), None)
    with pytest.raises(ColouringError, match="no colouring"):
        c.decompress(np.ones((2, 1)))

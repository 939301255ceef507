"""Colourings by linear forms: which grids are found, and which colours."""

import numpy as np
import pytest
import scipy.sparse as sp

from fwdad.colouring import colour
from fwdad.colouring.graphs import canonical_pattern
from fwdad.colouring.lattice import column_lattice, grids, symmetric_lattice
from tests.colouring.patterns import (
    box_stencil,
    brusselator,
    grid,
    laplacian,
    random_pattern,
    triangulation,
)
from tests.colouring.verifier import (
    is_acyclic_colouring,
    is_column_colouring,
    is_star_colouring,
)


@pytest.mark.parametrize(
    ("a", "strides"),
    [
        (laplacian(60), [1]),
        (laplacian(9, 11), [1, 11]),
        (grid((9, 11), box_stencil(2)), [1, 11]),
        (laplacian(6, 7, 8), [1, 8, 56]),
    ],
)
def test_the_best_guess_is_the_grid(a, strides):
    found, stencil = next(grids(canonical_pattern(a)))
    assert found.tolist() == strides
    assert np.abs(stencil).max() <= 2


@pytest.mark.parametrize("a", [random_pattern(80, 80, 0.1, 0), triangulation(100, 0), np.eye(30)])
def test_no_guess(a):
    assert list(grids(canonical_pattern(a))) == []


@pytest.mark.parametrize(
    ("a", "number"),
    [(laplacian(12, 15), 5), (laplacian(6, 7, 8), 7), (grid((12, 9), box_stencil(2)), 9)],
)
def test_forms_of_columns(a, number):
    colours = column_lattice(canonical_pattern(a), number, 20)
    assert colours.max() + 1 == number
    assert is_column_colouring(a.toarray(), colours)
    assert column_lattice(canonical_pattern(a), 2, number - 1) is None


def test_forms_of_symmetric_patterns():
    a = laplacian(9, 10)
    star = symmetric_lattice(canonical_pattern(a), "star", 3, 9)
    assert is_star_colouring(a.toarray(), star)
    assert star.max() + 1 == 5
    acyclic = symmetric_lattice(canonical_pattern(a), "acyclic", 2, 9)
    assert is_acyclic_colouring(a.toarray(), acyclic)
    assert acyclic.max() + 1 == 3
    diagonals = sp.diags_array([1.0, 1.0], offsets=[0, 20], shape=(40, 40))
    assert symmetric_lattice(canonical_pattern(diagonals + diagonals.T), "star", 2, 4) is not None


def test_a_wrong_guess_is_seen():
    """One entry more, far from the stencil's, and the form does not hold for the pattern."""
    a = laplacian(20, 20).tolil()
    a[0, 5] = a[5, 0] = a[3, 350] = a[350, 3] = 1
    pattern = canonical_pattern(a.tocsr())
    found = column_lattice(pattern, 5, 9)
    assert found is None or is_column_colouring(pattern.toarray(), found)
    assert is_column_colouring(pattern.toarray(), colour(pattern).column_colours)


def test_periodic_grids():
    """The ends of a grid that is closed to a ring do not always fit."""
    for n in (10, 11, 13):
        a = brusselator(n)
        assert is_column_colouring(a.toarray(), colour(a).column_colours)

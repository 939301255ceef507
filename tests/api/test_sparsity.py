"""What patterns show, and ``spy``."""

import numpy as np
import scipy.sparse as sp

import fwdad
from fwdad.colouring import colour
from fwdad.colouring.pattern import SparsityPattern, drawn
from tests.colouring import patterns
from tests.drivers.sparse import programs


def test_a_pattern_is_a_sparse_array():
    pattern = fwdad.jacobian_sparsity(programs.bratu, np.ones((3, 4)))
    assert isinstance(pattern, sp.csr_array)
    assert pattern.dtype == bool
    assert pattern.has_canonical_format
    assert np.array_equal(pattern.toarray(), patterns.laplacian(3, 4).toarray() != 0)
    assert pattern.dense == ()
    assert (pattern.T @ pattern).shape == (12, 12)
    assert "sparse array" in repr(pattern.astype(float))
    assert colour(pattern).count <= 6


def test_what_a_prompt_shows():
    shown = repr(fwdad.jacobian_sparsity(programs.burgers, np.ones(8)))
    assert shown.splitlines() == [
        "┌────┐",
        "│⠳⣦⡀⠀│",
        "│⠀⠈⠻⢦│",
        "└────┘",
        "8 × 8, 20 entries (31.2 %), 3 colours of columns, 3 of rows",
    ]


def test_dots_stand_for_blocks():
    picture = drawn(SparsityPattern.of(sp.eye_array(1000)), width=10, height=5).splitlines()
    assert len(picture) <= 7
    assert all(len(line) <= 12 for line in picture)
    assert drawn(SparsityPattern.of(np.ones((1, 1)))) == "┌─┐\n│⠁│\n└─┘"
    assert drawn(SparsityPattern.of(np.zeros((4, 2)))) == "┌─┐\n│⠀│\n└─┘"


def test_spy():
    x = np.ones(8)
    assert repr(fwdad.spy(programs.burgers, x)) == "┌────┐\n│⠳⣦⡀⠀│\n│⠀⠈⠻⢦│\n└────┘"
    assert fwdad.spy(patterns.banded(8, 1)) == fwdad.spy(programs.rosenbrock, x, hessian=True)
    assert fwdad.spy(programs.burgers, x, kind="local", height=1).count("\n") == 2

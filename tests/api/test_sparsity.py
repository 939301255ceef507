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


def solved(x):
    return np.linalg.solve(np.diag(x), x) * x


def test_explain():
    x = np.arange(1.0, 13.0)
    told = fwdad.explain(fwdad.jacobian, programs.burgers, x, sparse=True)
    assert told.startswith("with 3 directions for 32 entries: burgers is run on duals")
    told = fwdad.explain(fwdad.jacobian, fwdad.jit(programs.burgers), x, sparse=True)
    assert told.startswith("with 3 directions for 32 entries: the tape of burgers, with tangents")
    told = fwdad.explain(fwdad.jacrev(programs.wide, sparse=True), x[:8])
    assert told.startswith("with 2 cotangents for 10 entries: the tape of wide, forwards")
    told = fwdad.explain(fwdad.jacobian, programs.arrow, x, sparse=True)
    assert told.startswith("with 2 directions and 1 cotangent for 34 entries: arrow is run")
    assert "; the tape of arrow, forwards and backwards" in told
    told = fwdad.explain(fwdad.hessian, programs.rosenbrock, x, sparse=True)
    assert told.startswith("with 3 directions for 34 entries: tangents are pushed through the grad")
    told = fwdad.explain(fwdad.jacobian, solved, x, sparse=True)
    assert "dense: numpy.linalg.solve" in told
    assert "test_sparsity.py" in told

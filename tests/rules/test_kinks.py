"""The tables of ``fwdad/rules/policies.md``, row by row, and the policy on exact zeros."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.special as sp
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO

POLICIES = Path(fwdad.__file__).parent / "rules" / "policies.md"
NAMES = {"np": np, "math": math, "sp": sp, "nan": math.nan, "inf": math.inf}
ROW = re.compile(r"\| `(?P<function>[\w.]+)` \| `(?P<at>[^`]+)` \| `(?P<derivatives>[^`]+)` \|")


def _value(text):
    return eval(text, NAMES)  # the table's own expressions


def _rows():
    lines = POLICIES.read_text(encoding="utf-8").splitlines()
    return [match.groups() for match in map(ROW.match, lines) if match]


def test_the_tables_are_read():
    tables = [
        line for line in POLICIES.read_text(encoding="utf-8").splitlines() if line[:3] == "| `"
    ]
    assert len(_rows()) == len(tables) > 60


def _lanes(tangent):
    return 0.0 if tangent is ZERO else tangent.lanes[0]


def _shaped_rows():
    """Each row for a number and for an array of them; math takes numbers only."""
    return [
        (*row, shape)
        for row in _rows()
        for shape in ((), (2,))
        if not (shape and "math." in row[0])
    ]


@pytest.mark.parametrize(("function", "at", "derivatives", "shape"), _shaped_rows())
def test_policy(function, at, derivatives, shape):
    f, args, wanted = _value(function), _value(f"({at},)"), _value(f"({derivatives},)")
    assert len(args) == len(wanted)
    if function == "sp.logsumexp":
        args = tuple(np.array([x]) for x in args)
    elif shape:
        args = tuple(np.full(shape, x) for x in args)
    for k, want in enumerate(wanted):
        x = np.asarray(args[k])
        lanes = np.ones((1, *x.shape), np.result_type(x, np.float64))
        tangents = [Chunk(lanes) if j == k else ZERO for j in range(len(args))]
        with np.errstate(all="ignore"):
            y, y_dot = call_rule(f, args, tangents)
            got = tuple(map(_lanes, y_dot)) if isinstance(y, tuple) else (_lanes(y_dot),)
        for mine, right in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
            shape = np.shape(mine)
            assert_allclose(mine, np.broadcast_to(right, shape), rtol=1e-15, atol=1e-16)


# functions with an infinite or undefined partial on finite numbers, at that place
SINGULAR = [
    *[(f, (0.0,)) for f in (np.log, np.log2, np.log10, np.sqrt, np.cbrt, np.reciprocal, sp.entr)],
    *[(f, (1.0,)) for f in (np.arcsin, np.arccos, np.arctanh, np.arccosh, sp.erfinv, sp.ndtri)],
    *[(f, (-1.0,)) for f in (np.log1p, np.arctanh)],
    *[(f, (0.0,)) for f in (sp.logit, sp.y0, sp.k0, sp.exp1, sp.expi, sp.psi)],
    *[(f, (0.0, 0.0)) for f in (np.divide, np.arctan2, np.power, np.float_power, sp.xlogy)],
    (np.power, (-2.0, 3.0)),
    (np.power, (0.0, 0.5)),
    (np.angle, (0j,)),
    (sp.jv, (0.5, 0.0)),
]


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize(("f", "x"), SINGULAR, ids=lambda v: getattr(v, "__name__", str(v)))
def test_an_exactly_zero_tangent_contributes_exactly_zero(f, x, n):
    """Beside a lane that does not vanish, and in an array beside an element that does not."""
    arrays = tuple(np.array([v, v]) for v in x)
    seeds = [np.zeros((n, 2), np.result_type(v, np.float64)) for v in x]
    tangents = [Chunk(s) for s in seeds]
    if f is sp.jv:
        tangents[0] = ZERO
    with np.errstate(all="ignore"):
        _, y_dot = call_rule(f, arrays, tangents)
        assert_array_equal(y_dot.lanes, np.zeros((n, 2)))
        seeds[-1][0, 1] = 1.0
        tangents[-1] = Chunk(seeds[-1])
        _, y_dot = call_rule(f, arrays, tangents)
        assert_array_equal(y_dot.lanes[:, 0], np.zeros(n))
        assert_array_equal(y_dot.lanes[1:], np.zeros((n - 1, 2)))
        # and the element that moves has the infinite, or undefined, slope
        if f not in (np.power, np.float_power, sp.xlogy):
            assert not np.isfinite(y_dot.lanes[0, 1])


@pytest.mark.parametrize("x", [np.float64(0.0), np.zeros(2)])
def test_minimum_of_one_and_an_infinite_quotient(x):
    """A mask would make 0 * inf of the side that is not taken."""
    with np.errstate(all="ignore"):
        _, slope = fwdad.jvp(lambda x: np.minimum(1, 1 / x), x, np.ones_like(x))
        assert_array_equal(slope, np.zeros_like(x))
        _, slope = fwdad.jvp(lambda x: np.clip(1 / x, 0.0, 1.0), x, np.ones_like(x))
        assert_array_equal(slope, np.zeros_like(x))
        # what is replaced by a constant
        _, slope = fwdad.jvp(lambda x: np.nan_to_num(np.log(x), neginf=-9.0), x, np.ones_like(x))
        assert_array_equal(slope, np.zeros_like(x))

"""Reductions that leave NaN out: as without it, and against NumPy's plain ones on what is left."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fwdad.rules.core.define import call_rule
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing import check_frule
from tests.rules.case import Case, Draw

draw = Draw(38)
BOTH = (draw.real, draw.complex)
mask = draw.rng.random((3, 4, 5)) > 0.4
mask[:, :2] = True
SUMS = (np.nansum, np.nanmean, np.nanprod)
VARIANCES = (np.nanvar, np.nanstd)
EXTREMES = (np.nanmax, np.nanmin)
OPTIONS = [{}, {"axis": 1}, {"axis": (0, -1), "keepdims": True}]

CASES = [
    *[
        Case(f, make(3, 4, 5), **options)
        for f in (*SUMS, *VARIANCES, *EXTREMES)
        for make in BOTH
        for options in OPTIONS
    ],
    *[Case(f, draw.real(3, 4, 5), axis=1, where=mask) for f in (*SUMS, *VARIANCES)],
    *[Case(f, draw.real(3, 4, 5), axis=1, where=mask, initial=0.1) for f in EXTREMES],
    *[Case(f, draw.real(4), ddof=1, mean=np.array([0.3])) for f in VARIANCES],
    Case(np.nanprod, draw.real(3, 2), axis=0, initial=2.5),
    Case(np.nansum, draw.real(3).astype("f")),
    *[
        Case(f, make(3, 4), **options)
        for f in (np.nancumsum, np.nancumprod)
        for make in BOTH
        for options in [{}, {"axis": 0}, {"axis": 1}]
    ],
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case, rng):
    check_frule(case.function, *case.args, rng=rng, **case.check, **case.options)


FEW = np.array([2.0, np.nan, -1.0, 3.0, np.nan])
KEPT = [0, 2, 3]
PLAIN = {
    np.nansum: np.sum,
    np.nanmean: np.mean,
    np.nanprod: np.prod,
    np.nanvar: np.var,
    np.nanstd: np.std,
    np.nanmax: np.max,
    np.nanmin: np.min,
}


@pytest.mark.parametrize("f", PLAIN, ids=lambda f: f.__name__)
def test_what_is_no_number_has_no_part(f):
    lanes = draw.real(3, 5)
    for beside_nan in (1.0, np.nan, np.inf):
        lanes[:, [1, 4]] = beside_nan
        _, y_dot = call_rule(f, (FEW,), (Chunk(lanes),))
        _, want = call_rule(PLAIN[f], (FEW[KEPT],), (Chunk(lanes[:, KEPT]),))
        assert_allclose(y_dot.lanes, want.lanes, rtol=1e-14)


@pytest.mark.parametrize(("f", "plain"), [(np.nancumsum, np.cumsum), (np.nancumprod, np.cumprod)])
def test_a_running_result_stands_still_at_nan(f, plain):
    lanes = draw.real(3, 5)
    _, y_dot = call_rule(f, (FEW,), (Chunk(lanes),))
    _, want = call_rule(plain, (FEW[KEPT],), (Chunk(lanes[:, KEPT]),))
    assert_allclose(y_dot.lanes, want.lanes[:, [0, 0, 1, 2, 2]], rtol=1e-14)


@pytest.mark.filterwarnings("ignore:All-NaN", "ignore:Mean of empty", "ignore:Degrees of freedom")
def test_nothing_but_nan_returns_as_numpy_does():
    x = np.array([[np.nan, np.nan], [1.0, 2.0]])
    x_dot = Chunk(np.eye(4).reshape(4, 2, 2))
    for f in PLAIN:
        y, y_dot = call_rule(f, (x,), (x_dot,), axis=1)
        assert_array_equal(y, f(x, axis=1))
        _, row = call_rule(f, (x[1],), (x_dot[1],))
        assert_array_equal(y_dot.lanes[:, 1], row.lanes)


def test_an_inactive_argument_gives_no_tangent():
    for f in (*PLAIN, np.nancumsum, np.nancumprod):
        count = 2 if f in VARIANCES else 1
        assert call_rule(f, (FEW,), (ZERO,) * count)[1] is ZERO

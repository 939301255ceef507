"""Indices out of range: what Python raises is raised; memory beside the arrays stays as it was."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import UntraceableError
from tests.codegen.random_indices import program

POINTS = [(1, 1), (0, 2), (3, 1), (-1, 4), (2, -3), (5, 0), (-4, -2)]
GUARD = 1e300


def within(values):
    """An array with other memory on all its sides, and that memory."""
    around = np.full([n + 6 for n in values.shape], GUARD)
    held = around[(slice(3, -3),) * values.ndim]
    held[...] = values
    return held, around


def outcome(f, a, m, i, j):
    (a, outside), (m, around) = within(a), within(m)
    try:
        with np.errstate(all="ignore"):
            found = [np.copy(y) for y in f(a, m, i, j)]
    except UntraceableError:
        pytest.skip("an element of what is known to be empty")
    except (IndexError, ValueError, OverflowError) as error:
        found = type(error)
    for held, whole in ((a, outside), (m, around)):
        whole[(slice(3, -3),) * held.ndim] = GUARD
        assert np.all(whole == GUARD)
    return found


def compare(seed, backend):
    f = program(seed)
    compiled = fwdad.jit(f, backend=backend)
    rng = np.random.default_rng(seed)
    a, m = rng.normal(size=4), rng.normal(size=(3, 2))
    for point in POINTS:
        wanted, found = outcome(f, a, m, *point), outcome(compiled, a, m, *point)
        if isinstance(wanted, type):
            assert isinstance(found, type), point
        else:
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12, err_msg=str(point))


def seeds(quick, all_of_them):
    return [k if k < quick else pytest.param(k, marks=pytest.mark.slow) for k in range(all_of_them)]


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("seed", seeds(20, 300))
def test_numpy_source(seed):
    compare(seed, "numpy")


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("seed", seeds(3, 100))
def test_numba_source(seed):
    pytest.importorskip("numba")
    compare(seed, "numba")

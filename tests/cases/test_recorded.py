"""Every program of tests/cases that jvp runs, in reverse: the same tables, the same references."""

import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.tangents.zero import ZERO
from tests.cases.aliasing import ALIASING
from tests.cases.check import call_on_copy, same_bits
from tests.cases.models import MODELS
from tests.cases.mutation import MUTATIONS
from tests.cases.numerics import NUMERICS
from tests.cases.objects import OBJECTS
from tests.cases.programs import PROGRAMS
from tests.eager_reverse.pulling import jacobian_of, record

ALL = MUTATIONS + ALIASING + PROGRAMS + OBJECTS + NUMERICS + MODELS


@pytest.mark.slow_cases("numpy_written_in_python")
@pytest.mark.parametrize("program", ALL, ids=str)
def test_jacobian(program, rng):
    x = copy.deepcopy(program.x)
    y = call_on_copy(program.function, x)
    outcome = record(program.function, x)
    same_bits(outcome.y, y)
    same_bits(x, program.x)
    _, forward = fwdad.value_and_jacobian(program.function, x)
    size = np.size(y)
    rtol = max(program.rtol, 1e-10)
    for width in {1, 2, 3, max(size - 1, 1), max(size, 1)}:
        jacobian = jacobian_of(outcome, x, width)
        assert_allclose(jacobian, forward, rtol=1e-10, atol=1e-10 * np.max(abs(forward), initial=0))
    assert_allclose(jacobian, program.reference(), rtol=rtol, atol=rtol)
    y_bar = rng.normal(size=np.shape(y))
    (x_bar,) = outcome.pull([y_bar])
    want = np.tensordot(y_bar, forward, np.ndim(y))
    if x_bar is ZERO:
        assert not np.any(want)
    else:
        assert type(x_bar) is type(x)
        assert_allclose(x_bar, want, rtol=1e-9, atol=1e-10 * np.max(abs(forward), initial=0))


def test_all_tables_are_here():
    assert len(ALL) >= 112

"""Derivatives through what an ``ExitStack`` does when it is left."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.frontend.exit_stacks import of_all


@pytest.mark.slow_cases("below-numba")
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("x", [[0.5, -1.25, 2.0], [1.5, 0.6, 0.35]], ids=["above", "below"])
def test_derivatives(backend, x):
    if backend == "numba":
        pytest.importorskip("numba")
    x = np.array(x)
    expected = central_differences(of_all, x)
    for n in (1, 2, 3):
        columns = fwdad.jit(fwdad.jacfwd(of_all, chunk=n), backend=backend)(x)
        assert_allclose(columns, expected, rtol=1e-7, atol=1e-8)
    assert_allclose(fwdad.jit(fwdad.grad(of_all), backend=backend)(x), expected, rtol=1e-7)

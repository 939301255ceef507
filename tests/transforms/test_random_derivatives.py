"""Derivatives of random programs, as one traced program and of the traced one, against eager."""

import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.frontend.test_random_tapes import RUNS, function

SEEDS = [*range(16), *(pytest.param(k, marks=pytest.mark.slow) for k in range(2000, 2200))]


def leaves(answer):
    y, blocks = answer
    return [np.asarray(part) for part in (y, *blocks)]


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_jacobians_of_a_random_program(seed):
    f, text = function(seed)

    def jacobian_of(g):
        return lambda a, b, x, n: fwdad.value_and_jacobian(g, a, argnums=(0, 1, 2), args=(b, x, n))

    eager = jacobian_of(f)
    as_one = fwdad.jit(eager, backend="numpy")
    beneath = jacobian_of(fwdad.jit(f, backend="numpy"))
    for args in RUNS[::3]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = leaves(eager(*copy.deepcopy(args)))
            for traced in (as_one, beneath):
                found = leaves(traced(*copy.deepcopy(args)))
                for p, q in zip(found, expected, strict=True):
                    assert p.shape == q.shape, text
                    assert_allclose(p, q, rtol=1e-9, atol=1e-11, err_msg=text)

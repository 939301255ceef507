"""Gradients of random programs with loops, branches, stores and arrays that change places."""

import collections
import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.ops import Loop, Store, Update
from fwdad.transforms.reverse.structure import NotReversibleError
from tests.frontend.test_random_tapes import RUNS, function

SEEDS = [*range(40), *(pytest.param(k, marks=pytest.mark.slow) for k in range(3000, 3400))]
# programs whose arrays change places in ways that a tape is not run backwards for
REFUSED = 0.15


def loss_of(f):
    def loss(a, b, x, n):
        y = f(a, b, x, n)
        parts = y if isinstance(y, tuple) else (y,)
        return sum(np.sum(np.sin(p + 0.3)) for p in parts)

    return loss


def check(seed):
    """Compare with forward mode; return whether the program could be run backwards."""
    f, text = function(seed)
    loss = loss_of(f)
    as_tape = fwdad.jit(fwdad.value_and_grad(loss, argnums=(0, 1, 2)), backend="numpy")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in RUNS[::3]:
            given = copy.deepcopy(args)
            y, parts = fwdad.value_and_jacobian(
                loss, given[0], argnums=(0, 1, 2), args=given[1:], mode="forward"
            )
            try:
                found, gradient = as_tape(*copy.deepcopy(args))
            except NotReversibleError:
                return False
            assert_allclose(found, y, rtol=1e-12, err_msg=text)
            for p, q in zip(gradient, parts, strict=True):
                assert np.shape(p) == np.shape(q), text
                assert_allclose(p, q, rtol=1e-9, atol=1e-11, err_msg=text)
    return True


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_a_random_program(seed):
    if not check(seed):
        pytest.skip("its arrays change places in a way that is not run backwards")


def test_few_are_refused_and_most_kinds_meet():
    """A test of the tests: what the programs above are made of."""
    counts = collections.Counter()
    for seed in range(40):
        f, _ = function(seed)
        program = fwdad.trace(f, *copy.deepcopy(RUNS[0])).program
        kinds = {type(op) for op in program.walk()}
        counts["both"] += Loop in kinds and bool({Store, Update} & kinds)
        try:
            fwdad.trace(fwdad.grad(loss_of(f)), *copy.deepcopy(RUNS[0]))
        except NotReversibleError:
            counts["refused"] += 1
    assert counts["both"] >= 10
    assert counts["refused"] <= REFUSED * 40

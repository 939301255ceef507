"""Values and derivatives of programs that are grown, in all ways, at lengths and counts apart."""

import collections
import copy
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.ops import Branch, Loop, Store, Update
from tests.differences import central_differences
from tests.transforms.reverse.random_growth import RUNS, grown

SEEDS = [*range(24), *(pytest.param(k, marks=pytest.mark.slow) for k in range(5000, 5300))]
WHERE = {"argnums": (0, 1)}


def differences(f, args):
    """The gradient by differences; None where a branch is within the step."""
    x, m, *rest = args
    at = np.concatenate([x, m.ravel()])

    def moved(z):
        own = m.copy(order="K")  # what a reshape is hangs on how it lies
        own[...] = z[x.size :].reshape(m.shape)
        return f(z[: x.size].copy(), own, *rest)

    try:
        return central_differences(moved, at)
    except ArithmeticError:
        return None


def flat(parts):
    return np.concatenate([np.ravel(p) for p in parts])


def tapes(f):
    return (
        fwdad.jit(fwdad.value_and_grad(f, **WHERE), backend="numpy"),
        fwdad.jit(lambda *args: (f(*args), fwdad.jacfwd(f, **WHERE)(*args)), backend="numpy"),
    )


@pytest.mark.every(8)
@pytest.mark.parametrize("seed", SEEDS)
def test_all_ways_agree(seed):
    f, text = grown(seed)
    traced, with_derivatives = fwdad.jit(f, backend="numpy"), [*tapes(f)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for args in RUNS:
            left, given = copy.deepcopy(args), copy.deepcopy(args)
            y = f(*left)
            try:
                found, J = fwdad.value_and_jacobian(
                    f, args[0], args=args[1:], mode="forward", **WHERE
                )
                gradient = flat(fwdad.grad(f, **WHERE)(*copy.deepcopy(args)))
            except (fwdad.errors.MissingRuleError, fwdad.errors.UnsupportedTypeError) as error:
                pytest.skip(error.msg)
            assert found == y, text
            J = flat(J)
            scale = 1 + np.abs(J).max()
            expected = differences(f, args)
            if expected is not None:
                assert_allclose(J, expected, rtol=0, atol=1e-4 * scale, err_msg=text)
            assert_allclose(gradient, J, rtol=0, atol=1e-9 * scale, err_msg=text)
            try:
                assert_allclose(traced(*given), y, rtol=1e-13, err_msg=text)
                for p, q in zip(given, left, strict=True):
                    assert_allclose(p, q, rtol=1e-13, atol=1e-15, err_msg=text)
            except fwdad.errors.UntraceableError:
                continue
            for tape in with_derivatives.copy():
                try:
                    found, parts = tape(*copy.deepcopy(args))
                except fwdad.errors.UntraceableError:
                    with_derivatives.remove(tape)
                    continue
                assert_allclose(found, y, rtol=1e-12, err_msg=text)
                assert_allclose(flat(parts), J, rtol=0, atol=1e-9 * scale, err_msg=text)


@pytest.mark.filterwarnings("ignore:.*this loop is unrolled")
def test_what_the_programs_are_made_of():
    counts = collections.Counter()
    for seed in range(24):
        try:
            program = fwdad.trace(grown(seed)[0], *copy.deepcopy(RUNS[0])).program
        except fwdad.errors.UntraceableError:
            continue
        kinds = {type(op) for op in program.walk()}
        counts["traced"] += 1
        counts["a loop or a branch, and a store"] += bool({Loop, Branch} & kinds) and bool(
            {Store, Update} & kinds
        )
    assert counts["traced"] >= 14
    assert counts["a loop or a branch, and a store"] >= 6

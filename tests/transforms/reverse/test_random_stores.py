"""Gradients of random programs that overwrite what they have read."""

import collections
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.ir.ops import Branch, Load, Loop, Store, Update
from fwdad.transforms.reverse.memory import Memory
from tests.transforms.reverse.random_stores import POINT, Moving, Sweeping, Wide, Writer, program

FIRST = 25  # seeds of the short tier
SEEDS = [*range(FIRST), *(pytest.param(k, marks=pytest.mark.slow) for k in range(10_000, 10_500))]


def check(seed, kind=Writer, backend="numpy"):
    """Compare with forward mode."""
    f, text = program(seed, kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = fwdad.jacobian(f, POINT, mode="forward")
        scale = np.max(np.abs(expected))
        if not scale < 1e6:
            return
        y, gradient = fwdad.jit(fwdad.value_and_grad(f), backend=backend)(POINT)
        rounding = 1e-13 + 1e-15 * scale  # of the arguments of f's functions, as y feels it
        assert_allclose(y, f(POINT), rtol=1e-13, atol=rounding, err_msg=text)
        assert_allclose(gradient, expected, rtol=1e-8, atol=1e-10 * (1 + scale), err_msg=text)


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradient(seed):
    check(seed)


@pytest.mark.every(4)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_wide_programs(seed):
    check(seed, Wide)


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_sweeping_programs(seed):
    check(seed, Sweeping)


@pytest.mark.parametrize(("start", "count"), [
    (0, 6), *(pytest.param(k, 20, marks=pytest.mark.slow) for k in range(20_000, 20_300, 20))
])  # fmt: skip
def test_gradient_of_programs_with_moving_names(start, count):
    """Right where it is not refused; without a tape always."""
    refused = 0
    for seed in range(start, start + count):
        try:
            check(seed, Moving)
        except fwdad.errors.UntraceableError:
            refused += 1
            f, text = program(seed, Moving)
            expected = fwdad.jacobian(f, POINT, mode="forward")
            scale = np.max(np.abs(expected))
            if scale < 1e6:
                found = fwdad.grad(f)(POINT)
                assert_allclose(found, expected, rtol=1e-8, atol=1e-10 * (1 + scale), err_msg=text)
    assert refused <= 0.6 * count  # arrays under two names, as nobody can tell before it runs


@pytest.mark.parametrize("seed", [2, *(pytest.param(k, marks=pytest.mark.slow)
                                       for k in (5, 11, *range(20, 60)))])  # fmt: skip
def test_compiled_gradient_of_wide_programs(seed):
    pytest.importorskip("numba")
    check(seed, Wide, "numba")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "least"), [(Writer, 40), (Wide, 35)])
def test_what_the_programs_are_made_of(kind, least):
    counts = collections.Counter()
    for seed in range(60):
        ops = list(fwdad.trace(program(seed, kind)[0], POINT).program.walk())
        stores = any(isinstance(op, (Store, Update)) for op in ops)
        views = any(isinstance(op, Load) and op.view for op in ops)
        loops = any(isinstance(op, Loop) for op in ops)
        counts["a store, a loop and a view"] += stores and views and loops
        counts["branches"] += any(isinstance(op, Branch) for op in ops)
    assert counts["a store, a loop and a view"] >= least
    assert counts["branches"] >= 20
    print(f"of 60 programs {counts['a store, a loop and a view']} have a store, a loop and a view")


@pytest.mark.slow
def test_a_planted_fault_is_found(monkeypatch):
    """Without restoring what was overwritten, the comparison above fails."""
    monkeypatch.setattr(Memory, "_restore", lambda *_: None)
    failed = 0
    for seed in range(30):
        try:
            check(seed, Wide if seed % 2 else Writer)
        except AssertionError:
            failed += 1
    assert failed >= 5

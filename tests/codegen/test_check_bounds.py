"""Compiled code with every index and every stack checked, and without."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.codegen.bounds_checked import lists, matrix, minors
from tests.random_recursion import arguments, recursive

pytest.importorskip("numba")

from fwdad.codegen import numba_compile
from fwdad.codegen.cache import disk_cache
from fwdad.codegen.loops.source import numba_source

SEEDS = [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 60))]


def test_nothing_leaves_its_memory():
    """A process that checks: sound programs run, and planted mistakes raise, with their line."""
    root = Path(__file__).parents[2]
    made = subprocess.run(
        [sys.executable, "-m", "tests.codegen.bounds_checked"],
        cwd=root,
        env={**os.environ, "FWDAD_CHECK_BOUNDS": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout == "all checked\n"


@pytest.mark.slow_cases("7")
@pytest.mark.parametrize("n", [1, 3, 7])
def test_a_call_in_a_loop_pushes_onto_the_loops_stack(n):
    """More room than a stack begins with is wanted from n = 7 on."""
    a = matrix(n)
    gradient = fwdad.jit(fwdad.grad(minors), backend="numba")
    for _ in range(3):
        assert_allclose(gradient(a), np.linalg.det(a) * np.linalg.inv(a).T, rtol=1e-9, atol=1e-9)


def test_a_loop_inside_pushes_onto_the_loops_stack():
    gradient = fwdad.jit(fwdad.grad(lists), backend="numba")
    for most in (0, 5, 61, 62, 63, 10_000):  # a stack begins with 64
        x, counts = np.linspace(0.3, 1.2, 4), np.array([most, 0, most, 2])
        wanted = 8.0 * x + 2.0 * counts * x + counts * (counts - 1.0)
        assert_allclose(gradient(x, counts), wanted, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::fwdad.TraceWarning")
@pytest.mark.parametrize("seed", SEEDS)
def test_programs_that_call_themselves(seed):
    f, text = recursive(seed)
    value = fwdad.jit(f, backend="numba")
    with_gradient = fwdad.jit(fwdad.value_and_grad(f), backend="numba")
    for args in arguments(seed):
        y = f(*args)
        found, gradient = with_gradient(*args)
        wanted = fwdad.jacobian(f, args[0], args=args[1:], mode="forward")
        assert_allclose([value(*args), found], y, rtol=1e-10, err_msg=text)
        assert_allclose(gradient, wanted, rtol=1e-8, atol=1e-10, err_msg=text)
    assert "run by Numba" in fwdad.explain(with_gradient, *next(arguments(seed)))


def test_code_that_checks_has_a_name_of_its_own_in_the_cache(monkeypatch):
    source, types = numba_source(fwdad.trace(minors, matrix(2)).program)
    digests = []
    for checks in (False, True):
        monkeypatch.setattr(disk_cache, "CHECK_BOUNDS", checks)
        digests.append(disk_cache.program_digest(source, types, numba_compile.OPTIONS))
    assert None not in digests
    assert digests[0] != digests[1]

"""``jit(parallel=True)``: long loops on two threads have the bits of the serial ones."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fwdad

pytest.importorskip("numba")


def run(name, layer):
    env = {**os.environ, "NUMBA_NUM_THREADS": "2", "NUMBA_THREADING_LAYER": layer}
    done = subprocess.run(
        [sys.executable, "-m", "tests.codegen.parallel_programs", name],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if "No threading layer could be loaded" in done.stderr:
        pytest.skip("there is neither OpenMP nor TBB")
    assert done.returncode == 0, done.stderr


def test_results_have_the_same_bits():
    run("same_bits", "threadsafe")


@pytest.mark.slow
def test_sums_do_not_depend_on_the_number_of_threads():
    run("sums", "threadsafe")


@pytest.mark.slow
def test_loops_and_columns_have_the_same_bits():
    run("loops", "threadsafe")


@pytest.mark.slow_cases("points")
@pytest.mark.parametrize("program", ["some_points", "points"])
def test_derivatives_at_many_points_have_the_same_bits(program):
    run(program, "threadsafe")


@pytest.mark.slow
def test_threads_may_nest():
    run("nested", "threadsafe")


def test_an_unsafe_layer_is_not_used():
    run("unsafe_layer", "workqueue")


def test_the_option_is_kept_by_copies_and_has_no_effect_under_numpy():
    f = fwdad.jit(np.sin, parallel=True, backend="numpy")
    assert pickle.loads(pickle.dumps(f))._parallel
    assert fwdad.show(f, np.ones(3)).splitlines()[1:] == ["    return (np.sin(a),)"]

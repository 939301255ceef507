"""Random indices: values, derivatives, and the IndexError of the plain program, in every mode.

The reference of derivatives is the plain program's own complex step.
"""

import os
import random
import subprocess
import sys
import traceback
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from fwdad.codegen.numba_support import CHECK_BOUNDS
from fwdad.frontend.syntax.loops import TraceWarning
from tests.differences import central_differences, complex_step
from tests.frontend.random_indices import PROLOGUE, Author
from tests.written_programs import compiled

X = np.array([0.731, -0.452, 1.213, 0.287, 0.954, -0.618])
V = np.array([[1.0, -0.5, 0.25, 2.0, -1.0, 0.5], [0.3, 0.7, -1.1, 0.2, 0.9, -0.4]])
EYE = np.eye(6)


def jvps(g, _f, x):
    return [fwdad.jvp(g, x, v)[1] for v in V]


AT_ONCE = {
    "jvp": jvps,
    "forward": lambda g, _f, x: fwdad.jacobian(g, x, mode="forward", chunk=2),
    "reverse": lambda g, _f, x: fwdad.jacobian(g, x, mode="reverse"),
    "grad": lambda _g, f, x: fwdad.grad(f)(x),
    "hessian": lambda _g, f, x: fwdad.hessian(f, x),
}
ON_TAPES = {
    "jit": lambda g, _f, x: fwdad.jit(g, backend="numpy")(x),
    "jit(grad)": lambda _g, f, x: fwdad.jit(fwdad.grad(f), backend="numpy")(x),
    "jit(jacfwd)": lambda g, _f, x: fwdad.jit(fwdad.jacfwd(g, chunk=2), backend="numpy")(x),
}
BY_NUMBA = {
    "jit by Numba": lambda g, _f, x: fwdad.jit(g)(x),
    "jit(grad) by Numba": lambda _g, f, x: fwdad.jit(fwdad.grad(f))(x),
}


def references(g, f):
    """What each mode is to return."""
    with np.errstate(over="ignore", invalid="ignore"):
        J, gradient = complex_step(g, X), complex_step(f, X)
    if not np.all(np.isfinite(gradient)):
        pytest.skip("the program's numbers grow beyond what complex steps can follow")
    hessian = central_differences(lambda x: complex_step(f, x), X)
    value = g(X)
    return {
        "jvp": V @ J.T, "forward": J, "reverse": J, "grad": gradient, "hessian": hessian, "jit": value,
        "jit(grad)": gradient, "jit(jacfwd)": J, "jit by Numba": value, "jit(grad) by Numba": gradient,
    }  # fmt: skip


def raised_or(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TraceWarning)
        try:
            return run()
        except Exception as error:
            return error


def check(source, folder, modes):
    """How many of the modes have run; the others were refused with a line of the program's."""
    code, names = compiled(source, folder), {}
    exec(code, names)
    f, g = names["f"], names["g"]
    own = raised_or(lambda: g(X.copy()))
    wanted = {} if isinstance(own, Exception) else references(g, f)
    text, ran = source.removeprefix(PROLOGUE), 0
    for name, mode in modes.items():
        x = X.copy()
        found = raised_or(lambda mode=mode, x=x: mode(g, f, x))
        said = "".join(traceback.format_exception(found)) if isinstance(found, Exception) else found
        if isinstance(found, fwdad.errors.UntraceableError) and name.startswith("jit"):
            assert found.filename == code.co_filename, f"{name}: {said}\n{text}"
            continue
        ran += 1
        assert np.array_equal(x, X)
        if isinstance(own, Exception):
            # what a traced derivative does not need is not run: `limits.md`
            unneeded = name.startswith("jit(") and isinstance(own, IndexError)
            same = type(found) is type(own) or (unneeded and not isinstance(found, Exception))
            assert same, f"{name}: {said} instead of {own!r}\n{text}"
            continue
        assert not isinstance(found, Exception), f"{name}: {said}\n{text}"
        tolerance = 1e-6 if name == "hessian" else 1e-10
        assert_allclose(
            found, wanted[name], rtol=tolerance, atol=tolerance, err_msg=f"{name}\n{text}"
        )
    return ran


def program(seed):
    draws = random.Random(seed)
    return Author(draws).program(draws.randint(1, 7))


SEEDS = [0, 1, 3, *(pytest.param(k, marks=pytest.mark.slow) for k in (2, *range(4, 250)))]
needs_numba = pytest.mark.skipif(find_spec("numba") is None, reason="needs Numba")


@pytest.mark.parametrize("seed", SEEDS)
def test_random_indices(seed, tmp_path):
    check(program(seed), tmp_path, AT_ONCE | ON_TAPES)


@needs_numba
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 250, 5))
def test_by_numba(seed, tmp_path):
    check(program(seed), tmp_path, BY_NUMBA)


@needs_numba
@pytest.mark.slow
@pytest.mark.skipif(CHECK_BOUNDS, reason="this is where they are checked")
def test_by_numba_where_bounds_are_checked():
    """In a process of its own: the variable is read once."""
    root = Path(__file__).parents[2]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-m", "slow", "-k", "test_by_numba", __file__],
        cwd=root,
        env={**os.environ, "FWDAD_CHECK_BOUNDS": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 60))]
)
def test_out_of_range(seed, tmp_path):
    source = Author(random.Random(seed), out_of_range=0.3).program(4)
    check(source, tmp_path, AT_ONCE | ON_TAPES)


def test_most_programs_are_traced(tmp_path):
    assert sum(check(program(k), tmp_path, {"jit": ON_TAPES["jit"]}) for k in range(12)) > 10


ONE, TWO, THREE = np.int64(1), np.array(2), 3


@pytest.mark.parametrize("mode", [*AT_ONCE, *ON_TAPES])
@pytest.mark.parametrize("view", [lambda x: x[TWO::-1], lambda x: np.outer(x, x)[1:TWO, ONE::TWO],
                                  lambda x: (x * x)[:TWO][::-ONE]])  # fmt: skip
def test_bounds_without_axes(view, mode):
    """Of slices; keys of tables were made of them."""

    def g(x):
        return np.ravel(view(x) * x[0])

    def f(x):
        return np.sum(np.sin(g(x)))

    wanted = references(g, f)[mode]
    tolerance = 1e-6 if mode == "hessian" else 1e-12
    assert_allclose((AT_ONCE | ON_TAPES)[mode](g, f, X), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("cut", [lambda m: m[[0, 1], ONE:TWO], lambda m: m[[0, -1], ONE:THREE:TWO],
                                 lambda m: m[ONE:TWO, [0, 1]], lambda m: m[[True, False], 1:5]])  # fmt: skip
def test_lengths_of_slices_beside_arrays_of_places(cut):
    """Of samples they were empty."""

    def f(x):
        m = np.outer(x[:2], x)
        return np.zeros(cut(m).shape) + x[0], cut(m) * x[1]

    for found, wanted in zip(fwdad.jit(f, backend="numpy")(X), f(X), strict=True):
        np.testing.assert_array_equal(found, wanted)
    J = fwdad.jit(fwdad.jacfwd(lambda x: f(x)[1], chunk=2), backend="numpy")(X)
    assert_allclose(J, complex_step(lambda x: f(x)[1], X), rtol=1e-12, atol=1e-12)

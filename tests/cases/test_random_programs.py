"""Random NumPy programs: their derivatives against differences, at every chunk size.

Small programs are written statement by statement: views, stores, overlaps, loops, branches,
closures, helpers, objects, nested derivatives. Each is written to a file, because the builder
wants source, and is run as a user would run it. The plain program is the only reference.
"""

import copy
import importlib.util
import itertools
import linecache
import random
import sys
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences
from tests.eager_reverse.pulling import jacobian_of, record
from tests.random_statements import Author


class Module:
    """A program written to a file and imported; its state is made anew before each call."""

    counter = itertools.count()

    def __init__(self, source, folder):
        name = f"random_program_{next(self.counter)}"
        path = folder / f"{name}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(name, path)
        self.module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        self.name, self.path = name, str(path)
        self.first = self.state()

    def close(self):
        del sys.modules[self.name]
        linecache.cache.pop(self.path, None)

    def state(self):
        module = self.module
        return copy.deepcopy((module.G, module.H, vars(module.box)))

    def reset(self):
        self.module.G, self.module.H, box = copy.deepcopy(self.first)
        vars(self.module.box).clear()
        vars(self.module.box).update(box)

    def plain(self, x, p):
        self.reset()
        return np.array(self.module.f(x.copy(), p.copy()))


def same_state(a, b):
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same_state, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same_state(a[k], b[k]) for k in a)
    return type(a) is type(b) and np.array_equal(a, b, equal_nan=True)


def check_program(source, x, p, folder):
    """Whether the program is smooth enough to tell; it fails if a derivative is wrong."""
    module = Module(source, folder)
    try:
        return _check(module, x, p)
    finally:
        module.close()


def _check(module, x, p):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            y = module.plain(x, p)
            left = module.state()
            reference = central_differences(lambda z: module.plain(z, p), x)
        except (ArithmeticError, ValueError, np.linalg.LinAlgError):
            return False  # it fails, or a branch is within the step
    scale = np.max(np.abs(reference), initial=1.0)
    if scale > 1e4:
        return False  # growth without bound
    f = module.module.f
    before_x, before_p = x.copy(), p.copy()
    for chunk in sorted({1, 2, 3, x.size}):
        module.reset()
        value, J = fwdad.value_and_jacobian(f, x, args=(p,), chunk=chunk)
        assert np.shape(value) == y.shape
        assert np.array_equal(value, y), f"value at chunk={chunk}"
        assert_allclose(J, reference, rtol=1e-6, atol=1e-6 * scale, err_msg=f"chunk={chunk}")
        assert same_state(module.state(), left), f"the outside world at chunk={chunk}"
        assert np.array_equal(x, before_x)
        assert np.array_equal(p, before_p)
    v = np.random.default_rng(0).normal(size=(3, x.size))
    module.reset()
    value, y_dot = fwdad.jvp(f, x, v, args=(p,))
    assert_allclose(
        y_dot, np.moveaxis(reference @ v.T, -1, 0), rtol=1e-6, atol=1e-6 * scale * x.size
    )
    assert np.array_equal(value, y)
    assert same_state(module.state(), left), "the outside world after jvp"
    module.reset()
    outcome = record(f, x, p)
    assert np.array_equal(outcome.y, y), "value in reverse"
    assert same_state(module.state(), left), "the outside world after a recorded run"
    for width in {1, 2, max(y.size, 1)}:
        rows = jacobian_of(outcome, x, width)
        assert_allclose(rows, reference, rtol=1e-6, atol=1e-6 * scale, err_msg="in reverse")
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(length=st.integers(1, 7), n=st.integers(2, 4), seed=st.integers(0, 2**32 - 1))
def test_random_program(folder, length, n, seed):
    """A seed is a program, so that a failure shrinks quickly: to the shortest of its beginnings."""
    draws = random.Random(seed)
    source = Author(lambda options: draws.choice(list(options)), n).program(length)
    note(source)
    x = np.array([0.731, -0.452, 1.213, 0.287])[:n]
    p = np.array([0.35, 0.81, -0.64, 0.93])[:n]
    assume(check_program(source, x, p, folder))

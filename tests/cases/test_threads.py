"""Fresh lambdas, many of them, and many threads."""

import builtins
import gc
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from tests.cases.aliasing import two_buffers_in_a_time_loop
from tests.cases.models import kalman_filter

X = np.array([0.7, -1.3, 2.1, 0.4, 1.6])


def solve_with_fresh_lambda(i):
    """As solvers do it: a new function object for each call, of one source line."""
    return fwdad.derivative(lambda x: x * x * i, 3.0)


def test_fresh_lambdas_are_lifted_once(monkeypatch):
    compiled = []
    plain_compile = builtins.compile

    def counting(source, *args, **kwargs):
        compiled.append(source)
        return plain_compile(source, *args, **kwargs)

    solve_with_fresh_lambda(0)
    monkeypatch.setattr(builtins, "compile", counting)
    for i in range(300):
        assert solve_with_fresh_lambda(i) == 6.0 * i
    assert len(compiled) == 0
    # and the count is able to fail: a function not seen before is compiled
    fwdad.derivative(lambda x: x * x * 17.0, 3.0)
    assert len(compiled) > 0


@pytest.mark.slow
def test_fresh_lambdas_keep_memory_flat():
    for i in range(500):
        solve_with_fresh_lambda(i)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for i in range(10_000):
            assert solve_with_fresh_lambda(i) == 6.0 * i
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 100_000  # 10 bytes a lambda; a function object alone has 160


def test_fresh_closures_have_their_own_cells():
    def make(scale):
        return lambda x: scale * x

    assert [fwdad.derivative(make(float(k)), 1.0) for k in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert [fwdad.derivative(lambda x, k=k: k * x, 1.0) for k in range(5)] == [0, 1, 2, 3, 4]


def test_captured_types_may_change():
    def make(captured):
        return lambda x: np.sum(x * captured)

    for captured in (2.0, 3, np.arange(5.0), X, np.float32(2), True, 1j):
        expected = captured * np.ones(5)
        assert_array_equal(fwdad.jacobian(make(captured), X), expected)


@pytest.mark.every(3, first=2)
@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_eight_threads_agree_with_a_serial_run(chunk, rng):
    points = [X + 0.1 * rng.normal(size=5) for _ in range(24)]
    together = threading.Barrier(8)

    def work(k):
        if k < 8:
            together.wait(timeout=30)
        x = points[k]
        kalman = fwdad.jacobian(kalman_filter, x[:3], chunk=chunk)
        fresh = fwdad.derivative(lambda t: fwdad.derivative(lambda s: s * s * t * k, x[0]), x[1])
        return fwdad.jacobian(two_buffers_in_a_time_loop, x, chunk=chunk), kalman, fresh

    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(work, range(24)))
    together = threading.Barrier(1)
    for threaded, serial in zip(parallel, map(work, range(24)), strict=True):
        for a, b in zip(threaded, serial, strict=True):
            assert_array_equal(a, b)


def test_threads_with_objects_of_their_own():
    """Each thread's writes are in its own object, as a plain call leaves them."""

    class Stepper:
        def __init__(self):
            self.u = np.zeros(5)
            self.history = []

        def __call__(self, x):
            for _ in range(3):
                self.u[:] = np.sin(x + self.u)
                self.history.append(self.u.sum())
            return self.u * self.history[-1]

    steppers = [Stepper() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        jacobians = list(pool.map(lambda s: fwdad.jacobian(s, X, chunk=2), steppers))
    for stepper, jacobian in zip(steppers, jacobians, strict=True):
        assert_array_equal(jacobian, jacobians[0])
        assert_array_equal(stepper.u, steppers[0].u)
        assert stepper.history == steppers[0].history
    plain = Stepper()
    plain(X)
    assert_array_equal(steppers[0].u, plain.u)
    assert steppers[0].history == plain.history


def test_first_use_from_many_threads_at_once():
    """Eight threads lift the same new function at the same moment."""
    together = threading.Barrier(8)

    def f(x):
        return np.sin(x) * np.cumsum(x * x)

    def work(_):
        together.wait(timeout=30)
        return fwdad.jacobian(f, X, chunk=3)

    with ThreadPoolExecutor(8) as pool:
        jacobians = list(pool.map(work, range(8)))
    for jacobian in jacobians:
        assert_array_equal(jacobian, jacobians[0])


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_program_that_starts_threads_itself(chunk):
    """The caller's derivative is not known to another thread: right, or refused with a reason."""

    def f(x):
        with ThreadPoolExecutor(2) as pool:
            return np.array(list(pool.map(lambda v: v * v, x)))

    try:
        jacobian = fwdad.jacobian(f, X, chunk=chunk)
    except fwdad.errors.FwdadError as error:
        assert error.filename == __file__  # noqa: PT017 - either way is right
    else:
        assert_array_equal(jacobian, np.diag(2 * X))

"""Jacobians by the workers of an executor: the bits of one machine; what is refused."""

import multiprocessing
import pickle
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import (
    ExecutorError,
    FwdadError,
    NondeterministicFunctionError,
    SharedWriteError,
    UnpicklableFunctionError,
    UnsupportedTypeError,
    UntraceableError,
)
from tests.drivers.parallel import programs

X = np.linspace(0.1, 2.0, 80)


class Inline(Executor):
    """An executor that nobody knows: what it is given is pickled, as if it went elsewhere."""

    def submit(self, f, /, *args):
        f, args = pickle.loads(pickle.dumps((f, args)))
        future = Future()
        future.set_result(pickle.loads(pickle.dumps(f(*args))))
        return future


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("spawned", "loky")]


@pytest.fixture(scope="module", params=["threads", "forked", "unknown", *SLOW])
def executor(request):
    if request.param == "threads":
        made = ThreadPoolExecutor(2)
    elif request.param == "loky":
        loky = pytest.importorskip("loky")
        made = loky.ProcessPoolExecutor(2)
    elif request.param == "unknown":
        made = Inline()
    else:
        context = multiprocessing.get_context(request.param.removesuffix("ed"))
        made = ProcessPoolExecutor(2, mp_context=context)
    with made:
        yield made


@pytest.fixture(scope="module")
def threads():
    with ThreadPoolExecutor(2) as made:
        yield made


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as made:
        yield made


def same(found, expected):
    """Equal bit for bit, in structure, type, and in memory."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            same(found[key], expected[key])
    elif isinstance(expected, (tuple, list)):
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.strides) == (expected.dtype, expected.strides)
        assert_array_equal(found, expected)
    else:
        assert found == expected


@pytest.mark.parametrize("chunk", [7, 64, "auto", None])
@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
@pytest.mark.parametrize("f", [programs.waves, programs.few, programs.matrix_product])
def test_bits_of_one_machine(executor, f, mode, chunk):
    asked = {"chunk": chunk, "mode": mode}
    same(fwdad.jacobian(f, X, **asked, executor=executor), fwdad.jacobian(f, X, **asked))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("stack", [False, True])
def test_composites(executor, mode, stack):
    p = {"u": np.arange(1.0, 6.0), "v": np.arange(3.0)}
    asked = {"chunk": 2, "mode": mode, "stack": stack}
    found = fwdad.value_and_jacobian(programs.tree, p, **asked, executor=executor)
    same(found, fwdad.value_and_jacobian(programs.tree, p, **asked))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_complex_values(executor, mode):
    asked = {"chunk": 3, "mode": mode}
    f = programs.complex_valued
    same(fwdad.jacobian(f, X[:8], **asked, executor=executor), fwdad.jacobian(f, X[:8], **asked))


def test_holomorphic(threads):
    z = X[:9] + 1j
    asked = {"chunk": 2, "holomorphic": True}
    same(fwdad.jacobian(np.exp, z, **asked, executor=threads), fwdad.jacobian(np.exp, z, **asked))


def test_aux_and_several_arguments(processes):
    found = fwdad.jacobian(programs.with_aux, X, has_aux=True, chunk=9, executor=processes)
    same(found, fwdad.jacobian(programs.with_aux, X, has_aux=True, chunk=9))
    asked = {"args": (X[::-1].copy(),), "argnums": (0, 1), "chunk": 50}
    same(
        fwdad.jacobian(np.multiply, X, **asked, executor=processes),
        fwdad.jacobian(np.multiply, X, **asked),
    )


def test_recorded_runs(executor):
    found = fwdad.jacobian(programs.branching, X, mode="reverse", chunk=9, executor=executor)
    assert_array_equal(found, fwdad.jacobian(programs.branching, X, mode="reverse"))


def test_local_functions_travel_with_their_source(executor):
    pytest.importorskip("cloudpickle")
    scale = X * 2

    def local(x):
        out = np.empty_like(x)
        for k in range(x.size):
            out[k] = x[k] * scale[k] + x[0]
        return out

    same(fwdad.jacobian(local, X, chunk=9, executor=executor), fwdad.jacobian(local, X, chunk=9))


@pytest.mark.slow_cases("unknown")
def test_compiled(executor):
    f = fwdad.jit(programs.waves)
    for mode in ("forward", "reverse"):
        asked = {"chunk": 9, "mode": mode}
        found = fwdad.jacobian(f, X, **asked, executor=executor)
        assert_allclose(found, fwdad.jacobian(f, X, **asked), rtol=1e-13)


def test_large_constants_are_read_from_one_file(processes):
    table = np.random.default_rng(0).random(100_000)
    f = lambda x: np.sin(x) * table[: x.size]  # noqa: E731
    pytest.importorskip("cloudpickle")
    same(fwdad.jacobian(f, X, chunk=9, executor=processes), fwdad.jacobian(f, X, chunk=9))


def test_transformers(processes):
    asked = {"chunk": 9}
    made = fwdad.hessian(programs.number, X, **asked, executor=processes)
    same(made, fwdad.hessian(programs.number, X, **asked))
    for transform in (fwdad.jacrev, fwdad.jacfwd, fwdad.hessian, fwdad.jacobian):
        f = programs.number if transform is fwdad.hessian else programs.waves
        same(transform(f, **asked, executor=processes)(X), transform(f, **asked)(X))
    y, J = fwdad.value_and_jacobian(programs.waves, **asked, executor=processes)(X)
    same((y, J), fwdad.value_and_jacobian(programs.waves, X, **asked))


def test_more_or_fewer_workers_have_the_same_bits():
    asked = {"chunk": 5, "mode": "forward"}
    expected = fwdad.jacobian(programs.matrix_product, X, **asked)
    for workers in (1, 3, 8):
        with ThreadPoolExecutor(workers) as made:
            found = fwdad.jacobian(programs.matrix_product, X, **asked, executor=made)
        same(found, expected)


def test_functions_that_draw_have_the_draws_of_one_machine(processes):
    state = np.random.get_state()
    expected = fwdad.jacobian(programs.draws, X, chunk=9)
    np.random.set_state(state)
    same(fwdad.jacobian(programs.draws, X, chunk=9, executor=processes), expected)


# -- f's own exceptions


def test_an_exception_has_its_class_and_its_line(executor):
    with pytest.raises(programs.Refused, match="is refused") as caught:
        fwdad.jacobian(programs.refuse, X, chunk=9, executor=executor)
    lines = "".join([*getattr(caught.value, "__notes__", ()), str(caught.traceback)])
    assert "programs.py" in lines


def test_an_error_of_the_library_has_its_line(executor):
    with pytest.raises(FwdadError) as caught:
        fwdad.jacobian(lambda x: np.array([int(x[0])]) * x, X, chunk=9, executor=executor)
    assert caught.value.filename == __file__


class _Odd(Exception):  # noqa: N818
    def __init__(self, a, b):
        super().__init__(a)
        self.b = b, lambda: None


def test_an_exception_that_cannot_be_pickled_is_told(processes):
    def f(x):
        raise _Odd("this one", 2)

    pytest.importorskip("cloudpickle")
    with pytest.raises(ExecutorError, match=r"f raised a _Odd, .*this one"):
        fwdad.jacobian(f, X, chunk=9, executor=processes)


# -- what is refused


WRITERS = [programs.writes_array, programs.appends, programs.counts, programs.draws]


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("f", [*WRITERS, programs.draws_own, fwdad.jit(programs.writes_array)])
def test_threads_refuse_what_would_be_written_by_all(threads, f, mode):
    before = programs.BUFFER.copy()
    with pytest.raises(SharedWriteError, match="ProcessPoolExecutor"):
        fwdad.jacobian(f, X, chunk=9, mode=mode, executor=threads)
    assert_array_equal(programs.BUFFER, before)
    assert programs.SEEN == []
    assert programs.COUNT == 0


@pytest.mark.parametrize("f", [programs.writes_array, programs.appends, programs.counts])
def test_processes_write_their_copies(processes, f):
    before = programs.BUFFER.copy()
    found = fwdad.jacobian(f, X, chunk=9, mode="forward", executor=processes)
    assert_array_equal(programs.BUFFER, before)
    assert_array_equal(found, np.diag(2 * X * (2 if f is programs.writes_array else 1)))


def test_memory_of_their_own_is_no_shared_write(threads):
    same(
        fwdad.jacobian(programs.scratch, X, chunk=9, executor=threads),
        fwdad.jacobian(programs.scratch, X, chunk=9),
    )


def test_a_value_that_differs_from_block_to_block(processes):
    def clock(x):
        return x * time.perf_counter_ns()

    pytest.importorskip("cloudpickle")
    with pytest.raises(NondeterministicFunctionError, match="two blocks"):
        fwdad.jacobian(clock, X, chunk=9, executor=processes)


@pytest.mark.parametrize("made", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_executor_that_is_shut_down(made, tmp_path):
    executor = made(1)
    executor.shutdown()
    folder = tmp_path / "blocks"
    with pytest.raises(ExecutorError, match="shut down"):
        fwdad.jacobian(programs.waves, X, executor=executor, checkpoint_to=folder)
    assert not folder.exists()


@pytest.mark.parametrize("what", [2, "threads", ThreadPoolExecutor])
def test_what_is_no_executor(what):
    with pytest.raises(ExecutorError, match=r"executor= is .*concurrent\.futures"):
        fwdad.jacobian(programs.waves, X, executor=what)


def test_a_function_that_cannot_be_pickled(processes):
    lock = threading.Lock()

    def locked(x):
        with lock:
            return x * x

    with pytest.raises(UnpicklableFunctionError, match=r"lock.*ThreadPoolExecutor"):
        fwdad.jacobian(locked, X, executor=processes)


def test_a_worker_that_is_killed_breaks_the_pool(tmp_path):
    f = programs.Slow(tmp_path / "runs", kill_at=3)
    context = multiprocessing.get_context("fork")
    with (
        ProcessPoolExecutor(2, mp_context=context) as made,
        pytest.raises(ExecutorError, match="lost a worker"),
    ):
        fwdad.jacobian(f, X, chunk=9, executor=made)


def test_other_options_that_do_not_go_together(threads):
    with pytest.raises(UnsupportedTypeError, match="sparse="):
        fwdad.jacobian(programs.waves, X, sparse=True, executor=threads)
    with pytest.raises(UntraceableError, match="executor= in a traced function"):
        fwdad.jit(fwdad.jacfwd(programs.waves, executor=threads))(X)
    with pytest.raises(UnsupportedTypeError, match="inside another derivative"):
        fwdad.jvp(lambda x: fwdad.jacobian(programs.scratch, x, executor=threads), X, X)


def test_the_point_of_another_derivative_is_not_sent(threads):
    def outer(x):
        return fwdad.jacobian(lambda s: x * s, X[:2], executor=threads)

    with pytest.raises(UnsupportedTypeError, match="outermost"):
        fwdad.jacobian(outer, X[:2])

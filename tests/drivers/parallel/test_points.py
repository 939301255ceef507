"""vmap by the workers of an executor: the values of calls one by one, bit for bit."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad
from fwdad.errors import ExecutorError, SharedWriteError
from tests.drivers.parallel import programs

X = np.random.default_rng(0).random((23, 4))


@pytest.fixture(scope="module", params=["threads", "processes"])
def executor(request):
    if request.param == "threads":
        with ThreadPoolExecutor(2) as made:
            yield made
    else:
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as made:
            yield made


@pytest.mark.parametrize("f", [programs.number, fwdad.grad(programs.number)])
@pytest.mark.parametrize("n", [1, 5, 23])
def test_values_at_points(executor, f, n):
    assert_array_equal(fwdad.vmap(f, executor=executor)(X[:n]), fwdad.vmap(f)(X[:n]))


def test_axes_keywords_and_structures(executor):
    def f(p, scale, *, shift):
        return {"a": p[0] * scale, "b": (p[1] + shift, p[0] @ p[1])}

    pytest.importorskip("cloudpickle")
    axes = {"in_axes": ((1, 0), None), "out_axes": -1}
    given = ((X.T.copy(), X + 1), 3.0)
    shift = {"shift": np.arange(23.0)}
    found = fwdad.vmap(f, **axes, executor=executor)(*given, **shift)
    expected = fwdad.vmap(f, **axes)(*given, **shift)
    assert_array_equal(found["a"], expected["a"])
    for a, b in zip(found["b"], expected["b"], strict=True):
        assert_array_equal(a, b)


def test_in_derivatives_and_traces_the_points_are_computed_there(executor):
    f = fwdad.vmap(programs.number, executor=executor)
    plain = fwdad.vmap(programs.number)
    assert_array_equal(fwdad.jacobian(f, X[:3]), fwdad.jacobian(plain, X[:3]))
    assert_array_equal(fwdad.jit(f)(X), fwdad.jit(plain)(X))


def test_what_is_refused(executor):
    with pytest.raises(programs.Refused, match="is refused"):
        fwdad.vmap(programs.refuse, executor=executor)(X)
    with pytest.raises(SharedWriteError, match="draws"):
        fwdad.vmap(programs.draws, executor=executor)(X)
    with pytest.raises(ExecutorError, match="executor= is an int"):
        fwdad.vmap(programs.number, executor=3)


def test_threads_that_would_write_one_array():
    with ThreadPoolExecutor(2) as made, pytest.raises(SharedWriteError, match="array from outside"):
        fwdad.vmap(programs.writes_array, executor=made)(X)

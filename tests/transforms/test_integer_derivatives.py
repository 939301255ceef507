"""Functions that would return whole numbers where a derivative is asked for."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import DualLeakError

WHOLE = {
    "sum": lambda x: np.sum(x, dtype=int) * x,
    "cumsum": lambda x: np.cumsum(x, dtype=np.int32) * x,
    "prod": lambda x: np.prod(x, dtype=int) * x,
    "concatenate": lambda x: np.concatenate([x, x], dtype=int, casting="unsafe") * x[0],
    "trace": lambda x: np.trace(np.outer(x, x), dtype=int) * x,
    "array": lambda x: np.array(x, dtype=int) * 2.0,
    "asarray": lambda x: np.asarray(x * 0.7, int) * 2.0,
    "ascontiguousarray": lambda x: np.ascontiguousarray(x, dtype=int) * 2.0,
    "array of numbers": lambda x: np.array([x[0], 2.0, x[1] * 0.7], int) * 2.0,
    "array of truth values": lambda x: np.array([x[0], 2.0, x[1] * 0.7], bool) * 2.0,
    "truth values": lambda x: np.array(x * 0.7, dtype=bool) * 2.0,
    "full": lambda x: np.full(3, x[0], int) * 2.0,
    "full of truth values": lambda x: np.full(3, float(x[0]), bool) * 2.0,
    "full_like": lambda x: np.full_like(np.zeros(3, int), x[0]) * 2.0,
    "arange": lambda x: np.arange(x[0], x[0] + 2.5, dtype=int)[:1] * 2.0,
    "geomspace": lambda x: np.geomspace(x[0], x[1], 3, dtype=int) * 2.0,
    "insert": lambda x: np.insert(np.zeros(2, int), 0, x[0]) * 2.0,
    "pad": lambda x: np.pad(np.zeros(1, int), 1, constant_values=(x[0], 1)) * 2.0,
    "a number's truth value": lambda x: np.bool_(x[0]) * np.ones(3),
}


def into(dtype, write):
    def f(x):
        v = np.zeros(3, dtype)
        write(v, x)
        return v * 2.0

    return f


def in_a_branch(v, x):
    if x[0] > 0:
        v[0] = x[1]


def in_a_loop(v, x):
    for i in range(3):
        v[i] = x[i] * 2


STORED = {
    "all": into(int, lambda v, x: v.__setitem__(slice(None), x)),
    "truth values": into(bool, lambda v, x: v.__setitem__(slice(None), x)),
    "one truth value": into(bool, lambda v, x: v.__setitem__(1, x[0])),
    "at a place that is counted": into(bool, lambda v, x: v.flat.__setitem__(1, x[0])),
    "copyto": into(int, lambda v, x: np.copyto(v, x, casting="unsafe")),
    "copyto of some": into(int, lambda v, x: np.copyto(v, x, casting="unsafe", where=v == 0)),
    "branch": into(int, in_a_branch),
    "loop": into(int, in_a_loop),
    "mask": into(int, lambda v, x: v.__setitem__(v == 0, x[0])),
}
ROUNDED = {
    "comparison": lambda x: np.less(x, 2.0, dtype=bool) * x,
    "zeros": lambda x: np.zeros_like(x, dtype=int) + x,
    "ones": lambda x: np.full_like(x, 2, dtype=int) * x,
}
RUNS = {
    "forward": fwdad.jacobian,
    "reverse": lambda f, x: fwdad.jacobian(f, x, mode="reverse"),
    "gradient": lambda f, x: fwdad.grad(lambda x: np.sum(f(x)))(x),
    "traced": lambda f, x: fwdad.jit(fwdad.jacfwd(f), backend="numpy")(x),
    "traced gradient": lambda f, x: fwdad.jit(fwdad.jacrev(f), backend="numpy")(x),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", WHOLE.values(), ids=WHOLE)
def test_a_derivative_is_not_lost_in_whole_numbers(f, run):
    with pytest.raises(DualLeakError, match="derivative"):
        run(f, np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", ROUNDED.values(), ids=ROUNDED)
def test_whole_numbers_that_depend_on_nothing_are_constants(f, run):
    x = np.array([1.0, 2.5, 3.0])
    assert np.all(np.isfinite(run(f, x)))


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", STORED.values(), ids=STORED)
def test_a_derivative_is_not_stored_into_whole_numbers(f, run):
    with pytest.raises((DualLeakError, fwdad.errors.UntraceableError), match="derivative"):
        run(f, np.array([1.0, 2.0, 3.0]))


def added_at(x):
    v = np.zeros(3, int)
    np.add.at(v, [0, 1], x[:2])
    return v * 2.0


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_a_derivative_is_not_added_to_whole_numbers(run):
    """NumPy 2 casts what ``ufunc.at`` adds; older ones refuse it."""
    with pytest.raises((DualLeakError, TypeError)):
        run(added_at, np.array([1.0, 2.0, 3.0]))


def truncated_where_it_is_small(x):
    v = np.zeros(3)
    for i in range(3):
        v[i] = fwdad.stop_gradient(x) * (i + 0.7)
    whole = np.ascontiguousarray(v, dtype=int)
    halves = np.ascontiguousarray(np.array([1, 2, 3]), dtype=float) / 2
    return whole.sum() * x + halves[0] + whole[1] / 2


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_ascontiguousarray_casts_small_arrays(mode):
    f = truncated_where_it_is_small
    assert fwdad.jit(f, backend="numpy")(1.3) == f(1.3)
    assert fwdad.jit(lambda x: fwdad.jacobian(f, x, mode=mode), backend="numpy")(1.3) == 5.0


def stopped_and_cast(x):
    v = x * 1.0
    v[0] = 2 * x[1]
    whole = np.ascontiguousarray(fwdad.stop_gradient(v), dtype=int)
    return np.sum(fwdad.stop_gradient(v)[1:].astype(int) * x[:2]) + np.sum(whole * x)


def stopped_before_it_is_written(x):
    v = x * 1.0
    s = fwdad.stop_gradient(v)[::-1]
    s[0] = 5 * x[1]
    v[1] = 0.0
    return np.sum(s * x) + np.sum(v * x)


STOPPED = {  # at 1.5, 2.5, 3.5: by hand
    stopped_and_cast: np.array([5.0 + 2, 2 + 3, 3]),
    # s is 5 b, 2.5, 1.5 and v is a, 0, c
    stopped_before_it_is_written: np.array([12.5 + 2 * 1.5, 2.5 + 5 * 1.5, 1.5 + 2 * 3.5]),
}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("f", STOPPED, ids=lambda f: f.__name__)
def test_what_is_stopped_is_a_copy_that_may_become_whole(f, run):
    assert np.array_equal(run(f, np.array([1.5, 2.5, 3.5])), STOPPED[f])

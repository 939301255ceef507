"""Copies that nobody needs, calls in line, products with one, layouts of reshaped results."""

import numpy as np
import pytest

import fwdad
from fwdad.ir.ops import Apply, Call
from fwdad.reversible import reversible
from fwdad.tangents.scaling import scale_lanes
from fwdad.transforms.passes import drop_copies, inline, optimise

X = np.array([0.5, -1.5, 2.0])


def count_copies(tape):
    return sum(
        isinstance(op, Apply) and op.function is np.ndarray.copy for op in tape.program.walk()
    )


def read_only(x):
    y = x.copy()
    return np.sum(y * x)


def written_copy(x):
    y = x.copy()
    y[0] = 7.0
    return np.sum(y * x)


def written_source(x):
    z = x * 2
    y = z.copy()
    z[0] = 7.0
    return np.sum(y * z)


def answered(x):
    return x.copy(), x


def of_a_new_array(x):
    y = (x * 2).copy()
    y[0] = 7.0
    return y


@pytest.mark.parametrize(
    ("f", "left"),
    [(read_only, 0), (written_copy, 1), (written_source, 1), (answered, 1), (of_a_new_array, 0)],
)
def test_copies(f, left):
    tape = fwdad.trace(f, X)
    drop_copies(tape.program)
    assert count_copies(tape) == left
    for made, expected in zip(np.atleast_1d(tape(X)), np.atleast_1d(f(X)), strict=True):
        assert np.array_equal(made, expected)
    if f is answered:
        first, second = tape(X)
        assert not np.shares_memory(first, second)


@reversible
def shift(x, c):
    for i in range(len(x)):
        x[i] += np.sin(c) * i


def test_calls_are_written_in_line():
    def f(x, c):
        total = 0.0
        for _ in range(3):
            x, c = shift(x, c)
            total += x[1]
        return total

    tape = fwdad.trace(f, X, 0.3)
    assert tape.count(Call) == 1
    assert inline(tape.program)
    optimise(tape.program)
    assert tape.count(Call) == 0
    assert tape(X, 0.3) == f(X, 0.3)


def test_a_recursive_program_stays_a_call():
    def power(x, n):
        return 1.0 if n == 0 else x * power(x, n - 1)

    tape = fwdad.trace(power, 2.0, 5)
    assert not inline(tape.program)
    assert tape(2.0, 5) == 32.0


def test_a_factor_of_one_goes():
    tape = fwdad.trace(lambda x: scale_lanes(np.cos(x), np.float64(1.0)), np.float64(3.0))
    assert tape.count(Apply) == 2
    optimise(tape.program)
    assert tape.count(Apply) == 1
    assert tape(np.float64(3.0)) == np.cos(3.0)


def test_a_jacobian_of_matrices_is_compiled_as_a_whole():
    pytest.importorskip("numba")

    def f(x):
        y = np.zeros(x.shape)
        for i in range(x.shape[0]):
            for k in range(x.shape[1]):
                y[i, k] += x[i, k] ** 2 * x[0, 0]
        return y

    x = np.arange(6.0).reshape(2, 3) + 0.5
    jitted = fwdad.jit(fwdad.jacfwd(f))
    np.testing.assert_allclose(jitted(x), fwdad.jacobian(f, x), rtol=1e-14)
    assert "NumPy" not in fwdad.explain(jitted)


def copied_thrice(x):
    first = x.copy()
    second = first[...].copy()
    third = second.copy()
    third[0] = 7.0
    return third + first[1]


def test_copies_of_copies_are_left_out_one_at_a_time():
    compiled, x = fwdad.jit(copied_thrice, backend="numpy"), np.array([1.0, 2.0, 3.0])
    assert np.array_equal(compiled(x), [9.0, 4.0, 5.0])
    assert np.array_equal(x, [1.0, 2.0, 3.0])

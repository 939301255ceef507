"""Arrays that compiled code returns: whose memory they have, and who else sees it."""

import sys

import numpy as np
import pytest

import fwdad

numba = pytest.importorskip("numba")

from fwdad.codegen.llvm.pipeline import ProgramCompiler  # noqa: E402


def run(f, *args):
    """What compiled code returns."""
    made = fwdad.jit(f, backend="numba")
    made(*args)
    return made(*args)


def test_a_small_new_array_has_memory_of_its_own():
    made = run(lambda x: 2 * x, np.arange(3.0))
    assert np.array_equal(made, [0, 2, 4])
    assert made.flags.owndata
    assert made.flags.writeable
    assert type(made) is np.ndarray


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.int8, np.bool_])
def test_every_kind_of_number(dtype):
    x = np.arange(5).astype(dtype).reshape(5, 1)
    made = run(lambda x: x | x if x.dtype.kind == "b" else x + x, x)
    assert made.dtype == dtype
    assert made.shape == (5, 1)
    assert np.array_equal(made, x | x if x.dtype.kind == "b" else x + x)


def test_lengths_of_zero_and_long_arrays():
    double = fwdad.jit(lambda x: 2 * x, backend="numba")
    for shape in ((2, 3), (0, 3), (100, 200), (1, 512), (1, 513)):
        x = np.arange(np.prod(shape), dtype=float).reshape(shape)
        assert np.array_equal(double(x), 2 * x)
        assert double(x).shape == shape


def test_two_results_with_one_memory_still_share_it():
    def f(x):
        y = 2 * x
        return y, y[1:]

    whole, part = run(f, np.arange(4.0))
    part[0] = 9.0
    assert whole[1] == 9.0


def test_a_view_on_an_argument_is_still_one():
    x = np.arange(4.0)
    run(lambda x: x[1:], x)[0] = 7.0
    assert x[1] == 7.0
    y = np.arange(6.0).reshape(2, 3)
    run(lambda y: y.T, y)[0, 1] = -1.0
    assert y[1, 0] == -1.0
    assert run(lambda x: x, x) is x


def test_views_on_new_memory():
    x = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(run(lambda x: (2 * x).T, x), 2 * x.T)
    assert np.array_equal(run(lambda x: (2 * x)[1:], x), 2 * x[1:])


def test_references_are_given_back():
    x = np.arange(3.0)
    double = fwdad.jit(lambda x: 2 * x, backend="numba")
    double(x)
    dtype = x.dtype
    before = sys.getrefcount(dtype), sys.getrefcount(np.ndarray)
    for _ in range(1000):
        double(x)
    after = sys.getrefcount(dtype), sys.getrefcount(np.ndarray)
    assert max(b - a for a, b in zip(before, after, strict=True)) < 100


def test_arguments_are_released():
    @fwdad.jit(backend="numba")
    def first(x, m, k):
        if k < 0:
            raise ValueError(k)
        return x[k] + m[0, k]

    x, m = np.arange(4.0), np.ones((2, 4))
    first(x, m, 1)
    before = [sys.getrefcount(a) for a in (x, m)]
    for k in range(100):
        if k % 4 == 3:
            with pytest.raises(ValueError, match="-1"):
                first(x, m, -1)
        else:
            assert first(x, m, k % 4) == k % 4 + 1
    assert [sys.getrefcount(a) for a in (x, m)] == before


def test_arguments_of_other_types_than_compiled_code_has():
    kernel = numba.njit(lambda x, y: x[0] + y[0], pipeline_class=ProgramCompiler)
    x = np.ones(3)
    assert kernel(x, x) == 2
    entry = next(iter(kernel.overloads.values())).entry_point
    before = sys.getrefcount(x)
    for other, message in ((3, "not an array"), (np.ones(3, np.float32), "another type")):
        with pytest.raises(TypeError, match=message):
            entry(x, other)
    assert sys.getrefcount(x) == before

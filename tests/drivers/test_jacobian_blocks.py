"""Blocks of a Jacobian, and compiled columns in chunks."""

import time
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad
from fwdad.errors import NondeterministicFunctionError, SeedError, UnsupportedTypeError
from tests.differences import central_differences

X = np.linspace(0.3, 1.1, 7)
CHUNKS = [1, 2, 3, 7, 50, None, "auto"]


def field(x):
    return np.sin(x[1:]) * x[:-1] + np.sum(x) ** 2


def number(x):
    return np.sum(x * x[::-1])


def matrix(x):
    return np.outer(x, x[:2]) ** 2


def writing(x):
    x[0] = 2 * x[1]
    return x * x


def assembled(blocks, shape, mode):
    """All blocks in one matrix, each of whose entries is written once."""
    J, count = np.full(shape, np.nan), np.zeros(shape, int)
    for at, block in blocks:
        place = (slice(None), at) if mode == "forward" else at
        assert block.shape == J[place].shape
        J[place] = block
        count[place] += 1
    assert_array_equal(count, 1)
    return J


@pytest.mark.every(9)
@pytest.mark.parametrize("chunk", CHUNKS)
@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("f", [field, number, matrix, writing])
def test_blocks(f, mode, chunk):
    """They are those of the matrix by differences, of f as it is and under jit."""
    wanted = central_differences(f, X).reshape(-1, X.size)
    for g in (f, fwdad.jit(f)):
        x = X.copy()
        found = assembled(fwdad.jacobian_blocks(g, x, chunk=chunk, mode=mode), wanted.shape, mode)
        assert_allclose(found, wanted, rtol=1e-7, atol=1e-8)
        assert_array_equal(x, X)


def test_stopping_early():
    """What f writes is undone until the last block is there."""
    runs = []

    def f(x):
        runs.append(1)
        return x * x

    for at, block in fwdad.jacobian_blocks(f, X, chunk=2):
        assert_allclose(block, np.diag(2 * X)[:, at])
        if at.start == 2:
            break
    assert runs == []
    assert len(list(fwdad.jacobian_blocks(f, X, chunk=2))) == 4
    assert runs == [1]  # as one run of f leaves it


def test_blocks_are_the_callers():
    """Writing into one changes no other, nor x."""
    for mode in ("forward", "reverse"):
        for f in (np.copy, fwdad.jit(np.copy)):
            x = X.copy()
            blocks = []
            for _, block in fwdad.jacobian_blocks(f, x, chunk=3, mode=mode):
                blocks.append(block.copy())
                block[...] = np.nan
            joined = np.concatenate(blocks, axis=1 if mode == "forward" else 0)
            assert_array_equal(joined, np.eye(7))
            assert_array_equal(x, X)


def test_other_arguments():
    def f(a, x, scale=1.0):
        return a * np.cumsum(x) * scale

    blocks = fwdad.jacobian_blocks(f, 3.0, args=(X,), argnums=1, kwargs={"scale": 2.0}, chunk=3)
    assert_allclose(assembled(blocks, (7, 7), "forward"), 6.0 * np.tri(7))


def test_numbers_and_complex_ones():
    ((at, block),) = fwdad.jacobian_blocks(lambda x: x**3, 2.0)
    assert at == slice(0, 1)
    assert_allclose(block, [[12.0]])
    z = X[:3] + 1j
    blocks = fwdad.jacobian_blocks(lambda z: z * z, z, chunk=2, holomorphic=True)
    assert_allclose(np.hstack([b for _, b in blocks]), np.diag(2 * z))


def test_nothing():
    f = fwdad.jit(lambda x: x * 2.0)
    for g in (f, f.__wrapped__):
        found = [b for _, b in fwdad.jacobian_blocks(g, np.zeros(0), mode="reverse")]
        assert sum(map(len, found)) == 0


def test_what_is_refused():
    with pytest.raises(UnsupportedTypeError, match="the argument is a list"):
        fwdad.jacobian_blocks(field, [X, X])
    with pytest.raises(UnsupportedTypeError, match="the value is a dict"):
        next(fwdad.jacobian_blocks(lambda x: {"y": x}, X))
    with pytest.raises(UnsupportedTypeError, match="the value is a dict"):
        next(fwdad.jacobian_blocks(lambda x: {"y": x}, X, mode="reverse"))
    with pytest.raises(UnsupportedTypeError, match='mode="forward" takes complex'):
        fwdad.jacobian_blocks(lambda z: z, X + 0j, mode="reverse", holomorphic=True)
    with pytest.raises(UnsupportedTypeError, match="argnums is an int"):
        fwdad.jacobian_blocks(lambda a, b: a * b, X, args=(X,), argnums=(0, 1))
    with pytest.raises(ValueError, match='"forward" or "reverse", not \'auto\''):
        fwdad.jacobian_blocks(field, X, mode="auto")
    with pytest.raises(SeedError, match="chunk"):
        fwdad.jacobian_blocks(field, X, chunk=0)


def test_a_value_that_differs():
    blocks = fwdad.jacobian_blocks(lambda x: x * time.perf_counter_ns(), X, chunk=3)
    next(blocks)
    with pytest.raises(NondeterministicFunctionError, match="differs between two chunks"):
        next(blocks)


# -- compiled columns in chunks: jacobian(jit(f), x, chunk=N)


@pytest.mark.every(7)
@pytest.mark.parametrize("chunk", [1, 2, 3])
@pytest.mark.parametrize("stack", [False, True])
@pytest.mark.parametrize("f", [field, number, matrix, writing])
def test_chunks_under_jit(f, stack, chunk):
    wanted = fwdad.jacobian(f, X.copy(), mode="forward", stack=stack)
    options = {"chunk": chunk, "mode": "forward", "stack": stack}
    x = X.copy()
    found = fwdad.jacobian(fwdad.jit(f), x, **options)
    assert_allclose(found, wanted, rtol=1e-13)
    assert type(found) is type(wanted)
    assert_array_equal(x, X)
    y, found = fwdad.value_and_jacobian(fwdad.jit(f), x, **options)
    assert_allclose(y, f(X.copy()), rtol=1e-14)
    assert_allclose(found, wanted, rtol=1e-13)


def test_composites_in_chunks():
    def f(x):
        return {"a": x * x, "n": 3, "t": (np.sum(x),)}, len(x)

    J, aux = fwdad.jacobian(fwdad.jit(f), X, chunk=2, has_aux=True, mode="forward")
    assert_allclose(J["a"], np.diag(2 * X))
    assert_allclose(J["t"][0], np.ones(7))
    assert aux == 7


def test_derivatives_of_chunks(rng):
    f = fwdad.jit(field)
    v = rng.standard_normal(7)

    def in_chunks(x):
        return fwdad.jacobian(f, x, chunk=3, mode="forward")

    def plain(x):
        return fwdad.jacobian(field, x)

    wanted = fwdad.jvp(plain, X, v)[1]
    assert_allclose(fwdad.jvp(in_chunks, X, v)[1], wanted, rtol=1e-12, atol=1e-14)
    found = fwdad.grad(lambda x: np.sum(in_chunks(x) ** 2))(X)
    assert_allclose(found, fwdad.grad(lambda x: np.sum(plain(x) ** 2))(X), rtol=1e-12)


def test_one_program_for_all_lengths():
    f = fwdad.jit(field)
    for n in (50, 51, 52, 53, 200):
        fwdad.jacobian(f, np.linspace(0.0, 1.0, n), chunk=8, mode="forward")
    assert sum(getattr(d, "traces", 0) for d in f.derivatives.values()) == 1


def test_memory_grows_with_the_chunk():
    """Beyond J itself it is that of N lanes."""

    def sums(x):
        return np.stack([np.sum(x), np.sum(x * x), np.sum(np.sin(x))])

    f, x = fwdad.jit(sums), np.linspace(0.0, 1.0, 4000)
    fwdad.jacobian(f, x, chunk=8, mode="forward")
    tracemalloc.start()
    try:
        J = fwdad.jacobian(f, x, chunk=8, mode="forward")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < J.nbytes + 8 * 8 * x.nbytes


def test_arrays_without_elements():
    """Of x, and of the value."""
    e = np.zeros((0, 2))
    for mode in ("forward", "reverse"):
        found = fwdad.jacobian(lambda x: [x * 2, np.sum(x)], e, stack=True, mode=mode)
        assert found.shape == (1, 0)
        found = fwdad.jacobian(lambda x: [x[:0], x], np.ones(3), stack=True, mode=mode)
        assert_array_equal(found, np.eye(3))
        for _, block in fwdad.jacobian_blocks(lambda x: x * 2, e, mode=mode):
            assert block.size == 0

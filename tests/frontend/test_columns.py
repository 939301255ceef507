"""Columns in chunks, which are iterations of a loop, beside all columns at once."""

import numpy as np
import pytest

import fwdad
from fwdad.frontend.arguments import Flattened
from fwdad.frontend.derivatives.columns import width_of_chunks
from fwdad.frontend.specialise import trace_optimised
from fwdad.ir.analysis.alias import memory_of
from fwdad.ir.analysis.dependence import is_independent
from fwdad.ir.ops import Loop
from fwdad.tangents.zero import NoTangent


def steps(x, n):
    y = x.copy()
    for _ in range(n):
        for i in range(1, x.shape[0]):
            y[i] += 0.1 * np.sin(y[i - 1])
        y = y * y[0]
    return y


def in_place(x, n):
    for _ in range(n):
        x[1:] = np.cos(x[:-1])
    return x, np.sum(x), n


def structured(p, n):
    s = p["a"]
    for k in range(n):
        s = s * np.sum(p["b"]) + k
    return {"s": s, "t": (p["b"] * s, 3)}


def run(f, *args, threads=2):
    flat = Flattened(args, {})
    tape = trace_optimised(f, flat, threads=threads)
    roots, block = memory_of(tape.program), tape.program.block
    loops = [op for op in block.ops if isinstance(op, Loop)]
    return tape(*args), sum(is_independent(op, roots, block.params) for op in loops)


def leaves(x):
    if isinstance(x, dict):
        return [leaf for key in x for leaf in leaves(x[key])]
    if isinstance(x, tuple):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def same(one, two):
    for a, b in zip(leaves(one), leaves(two), strict=True):
        assert type(a) is type(b)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("f", [steps, in_place])
@pytest.mark.parametrize(("n", "chunk"), [(2, 1), (3, 2), (5, 2), (6, 3), (17, "auto"), (3, 7)])
def test_chunks_have_the_bits_of_all_columns(f, n, chunk):
    x = np.linspace(0.5, 1.5, n)

    def both(x, k):
        return fwdad.value_and_jacobian(f, x, args=(k,), chunk=chunk)

    made, chunked = run(both, x, 3)
    assert chunked == (chunk == "auto" or chunk < n)
    expected, whole = run(both, x, 3, threads=1)
    assert whole == 0
    same(made, expected)
    exact = fwdad.value_and_jacobian(f, x, args=(3,))
    for a, b in zip(leaves(made), leaves(exact), strict=True):
        if a is not NoTangent:
            np.testing.assert_allclose(a, b, rtol=1e-13)


def test_structures_and_numbers():
    p = {"a": 1.5, "b": np.array([0.1, 0.2, 0.4])}

    def both(p, n):
        return fwdad.value_and_jacobian(structured, p, args=(n,), chunk=3)

    made, chunked = run(both, p, 2)
    assert chunked == 1
    same(made, run(both, p, 2, threads=1)[0])


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_given_directions(k):
    x, v = np.linspace(0.5, 1.5, 4), np.random.default_rng(0).normal(size=(k, 4))

    def both(x, v):
        return fwdad.jvp(steps, x, v, args=(3,), chunk=2)

    made, chunked = run(both, x, v)
    assert chunked == (k > 2)
    same(made, run(both, x, v, threads=1)[0])


def test_second_derivatives_are_chunked_once():
    x = np.linspace(0.5, 1.5, 5)

    def both(x):
        return fwdad.jacobian(fwdad.jacfwd(steps, chunk=2), x, chunk=2)

    def steps(x):
        y = x
        for _ in range(3):
            y = y * np.sin(y[0])
        return y

    def at_once(x):
        return fwdad.jacobian(fwdad.jacfwd(steps), x)

    made, chunked = run(both, x)
    assert chunked == 1
    same(made, run(at_once, x, threads=1)[0])
    np.testing.assert_allclose(run(both, x, threads=1)[0], made, rtol=1e-14)


def test_lengths_that_are_known_inside_only_are_not_chunked():
    def positive(x, n):
        y = x
        for _ in range(n):
            y = y * 1.5
        return y[y > 1.0]

    x = np.array([0.1, 0.5, 2.0])

    def both(x):
        return fwdad.jacobian(positive, x, args=(2,), chunk=1)

    made, chunked = run(both, x)
    assert chunked == 0
    np.testing.assert_allclose(made, [[0, 2.25, 0], [0, 0, 2.25]])


def test_widths():
    loop = fwdad.trace(steps, np.ones(3), 2).program.block
    plain = fwdad.trace(np.sin, np.ones(3)).program.block
    found = [width_of_chunks(loop, n, t, c) for n, t, c in
             [(15, 2, "auto"), (16, 2, "auto"), (64, 2, "auto"), (64, 16, "auto"), (500, 2, "auto"),
              (500, 2, None), (20, 2, 6)]]  # fmt: skip
    assert found == [15, 8, 32, 8, 64, 500, 6]
    with pytest.raises(fwdad.errors.SeedError):
        width_of_chunks(loop, 20, 2, 0)
    assert width_of_chunks(plain, 500, 2, "auto") == 500

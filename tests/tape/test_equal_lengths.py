"""Windows of one length have one ``Size``: found again after what was computed twice is one."""

import numpy as np
from numpy.testing import assert_allclose

import fwdad
from fwdad.tape.check import checked
from fwdad.tape.passes import cse, share_lengths
from fwdad.tracing.trace import trace


def triangle(a, b):
    c = np.zeros((a.shape[0], a.shape[0]))
    for i in range(a.shape[0]):
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[i, k] * a[: i + 1, k] + b[i] * a[: i + 1, k] ** 2
    return c


def lengths(program):
    """The lengths of windows and of what is computed of them."""
    return {
        d for op in program.walk() for v in op.outputs if v.type.ndim == 1 for d in v.type.shape
    }


def test_stops_that_were_computed_twice_give_one_length():
    program = trace(triangle, np.ones((4, 3)), np.ones(4)).program
    assert len(lengths(program)) > 1
    while checked(cse, program):
        pass
    assert checked(share_lengths, program)
    assert len(lengths(program)) == 1
    assert not share_lengths(program)


def test_a_gradient_keeps_no_lengths_that_it_knows():
    a, b = np.random.default_rng(0).normal(size=(4, 3)), np.ones(4)

    def loss(a, b):
        return np.sum(np.sin(triangle(a, b)))

    expected = fwdad.jacobian(lambda a: loss(a, b), a, mode="forward")
    g = fwdad.jit(fwdad.grad(loss), backend="numpy")
    assert_allclose(g(a, b), expected, rtol=1e-13)
    text = fwdad.show(g)
    assert "sum_to" not in text
    assert "push" not in text


def stops(a, n, m):
    """Windows of computed lengths that differ, one of which broadcasts."""
    total = 0.0
    for i in range(2):
        total = total + np.sum(a[: n + i] * a[: m + 1])
    return total


def test_other_stops_are_other_lengths():
    a = np.random.default_rng(1).normal(size=5)
    for n, m in [(2, 0), (1, 0)]:
        g = fwdad.grad(lambda a, n=n, m=m: stops(a, n, m))
        expected = fwdad.jacobian(lambda a, n=n, m=m: stops(a, n, m), a, mode="forward")
        assert_allclose(g(a), expected, rtol=1e-14)

"""What a program has written outside before it raises is written once, whatever runs it."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fwdad

COUNT = np.zeros(3)


def counting(x):
    COUNT[0] += 1.0
    COUNT[1:] *= 2.0
    if x[0] > 1.5:
        raise RuntimeError("too large")
    return np.sum(x * x)


def rising(x):
    for k in range(len(x)):
        COUNT[k] += 1.0
        if x[k] > 2.5:
            raise RuntimeError("too large")
    return np.sum(x * x)


def ways(f):
    direction = np.ones(3)
    yield from (fwdad.grad(f), fwdad.value_and_grad(f), fwdad.jacobian(f), fwdad.hessian(f))
    yield from (fwdad.jacrev(f), fwdad.jacfwd(f), lambda x: fwdad.vjp(f, x))
    yield lambda x: fwdad.jvp(f, x, direction)
    yield lambda x: fwdad.hvp(f, x, direction)
    yield lambda x: fwdad.linearize(f, x)


@pytest.mark.parametrize("program", [counting, rising])
@pytest.mark.parametrize("jitted", [False, True])
def test_derivatives(program, jitted):
    f = fwdad.jit(program, backend="numpy") if jitted else program
    for derivative in ways(f):
        for start in (0.5, 2.0, 0.5, 2.0, 2.0, 0.5):  # tapes are made, found, and found to raise
            x = start + 0.5 * np.arange(3.0)
            COUNT[:] = 1.0
            raises = start > 1.5
            if raises:
                with pytest.raises(RuntimeError, match="too large"):
                    program(x)
            else:
                program(x)
            wanted = COUNT.copy()
            COUNT[:] = 1.0
            if raises:
                with pytest.raises(RuntimeError, match="too large"):
                    derivative(x)
            else:
                derivative(x)
            assert_array_equal(COUNT, wanted)

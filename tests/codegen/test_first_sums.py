"""What is added to zeros first is stored there; the rest is zero, and every bit the same."""

import numpy as np
import pytest

import fwdad
from fwdad.codegen.passes.first_sums import with_first_sums_stored
from fwdad.ir.check import check_program
from fwdad.transforms.passes import optimise
from tests.ir.running import bits, run, traced

X = np.array([1.0, -0.0, 3.0, -2.5, 0.5, -0.0])
GRID = np.arange(20.0).reshape(4, 5) - 7.0


def zeros_left(f, *args):
    """How many arrays of zeros are left; what is returned has the same bits."""
    tape = traced(f, *args)
    before = run(tape, args)
    optimise(tape.program)
    program = with_first_sums_stored(tape.program)
    check_program(program)
    tape.program = program
    assert run(tape, args) == before
    return sum(getattr(op, "function", None) is np.zeros for op in program.walk())


def inner(x):
    y = np.zeros(x.size)
    y[:-1] += x[1:]
    y[1:] += x[:-1]
    return y


def middle(x):
    y = np.zeros(x.shape)
    y[1:-1, 1:-1] += x[1:-1, 2:] * x[:-2, 1:-1]
    y[:, 2:] -= x[:, :-2]
    return y


def columns(x):
    y = np.zeros(x.shape)
    y[:, 2:-1] += 1.5
    return y + x


def far(x):
    """Slices beyond both ends, and an empty one."""
    y, z, w = np.zeros(x.size), np.zeros(x.size), np.zeros(x.size)
    y[-9:3] += x[:3]
    z[4:2] += x[4:2]
    w[2:99] += x[2:]
    return y + z * w


def broadcast(x):
    y = np.zeros((3, x.size))
    y[1:] += x
    return y


@pytest.mark.parametrize("f", [inner, middle, columns, far, broadcast])
def test_slices(f):
    x = GRID if f in (middle, columns) else X
    assert zeros_left(f, x) == 0
    compiled = fwdad.jit(f)
    for part in (x, x[:3], x[:2], x[:1]) if f is not far else (x,):
        if len(part) > 1 or f not in (middle, columns):
            given = np.array(part)
            assert bits(compiled(given)) == bits(f(given))


@pytest.mark.every(2)
@pytest.mark.parametrize("f", [inner, middle, columns, far, broadcast])
def test_derivatives(f):
    x = GRID if f in (middle, columns) else X
    J = fwdad.jacobian(f, x, mode="forward")
    for n in (1, 2, 3, None):
        found = fwdad.jit(lambda x, n=n: fwdad.jacobian(f, x, chunk=n))(x)
        np.testing.assert_allclose(found, J, rtol=1e-14)
    np.testing.assert_allclose(fwdad.jit(fwdad.jacrev(f))(x), J, rtol=1e-14)
    np.testing.assert_allclose(fwdad.jacobian(f, x, mode="reverse"), J, rtol=1e-14)


def test_loops_and_lengths():
    def f(x):
        total = 0.0
        for k in range(1, x.size):
            y = np.zeros(x.size)
            y[k:] += x[k:] * x[:-k]
            y[: x.size - k] += x[k - 1]
            total += np.sum(y**2)
        return total

    for x in (X, X[:4], X[:2]):
        np.testing.assert_allclose(fwdad.jit(f)(x), f(x), rtol=1e-14)
        slope = fwdad.jit(fwdad.grad(f))(x)
        np.testing.assert_allclose(slope, fwdad.jacobian(f, x, mode="forward"), rtol=1e-13)
    assert zeros_left(f, X) == 0


@pytest.mark.parametrize(
    "use", ["chosen", "read", "view", "branch", "step", "whole", "places", "int", "kind"]
)
def test_zeros_that_are_needed(use):
    def f(x):
        y = np.zeros(x.size, np.float32 if use == "kind" else float)
        if use == "read":
            x = x + y
        z = y[2:4] if use == "view" else x
        if use == "chosen":
            z = y if x[0] > 0 else x
            x = x + z
        if use == "view":
            z[0] = 2.0
        if use == "branch" and x[0] > 0:
            y[0] = 1.0
        if use == "step":
            y[::2] += x[::2]
        elif use == "whole":
            y[...] += x
        elif use == "places":
            y[[0, 1]] += x[1:3]
        elif use == "int":
            y[0] += x[1]
        else:
            y[1:] += x[1:]
        return y * 2.0

    assert zeros_left(f, X) == 1


@pytest.mark.parametrize("use", ["view", "argument"])
def test_zeros_that_are_written_over(use):
    """A view from before the zeros sees them; those of an argument stay if the program raises."""

    def f(x, out):
        y = out if use == "argument" else x * 1.0
        added = y[:-1] if use == "view" else x[1:]
        y[...] = 0.0
        if x[0] > 5:
            raise ValueError
        y[1:] += added
        return y * x

    for x in (X, X[::-1].copy()):
        compiled, plain = np.ones(X.size), np.ones(X.size)
        assert bits(fwdad.jit(f)(x, compiled)) == bits(f(x, plain))
        assert bits(compiled) == bits(plain)
        J = fwdad.jacobian(lambda x: f(x, np.ones(x.size)), x, mode="forward")
        found = fwdad.jit(fwdad.jacfwd(lambda x: f(x, np.ones(x.size))))(x)
        np.testing.assert_allclose(found, J, rtol=1e-14)
    compiled = np.ones(X.size)
    with pytest.raises(ValueError):  # noqa: PT011
        fwdad.jit(f)(X + 6.0, compiled)
    assert bits(compiled) == bits(np.zeros(X.size) if use == "argument" else np.ones(X.size))

"""What f reads from outside, of every kind: changed between two calls, it is never read as it was."""

import numpy as np
import pytest

import fwdad
from fwdad.errors import FwdadError
from tests.frontend.captured_kinds import KINDS

X = np.array([0.5, 1.25, -0.75])
V = np.array([1.0, -2.0, 0.5])


def made(name):
    """A function of x that reads a number of an object, what changes the object, and the number."""
    read, change = KINDS[name]()

    def f(x):
        return np.sum(x * x * x) * read()

    return f, change, read


def vjp(f):
    def pulled(x):
        y, pull = fwdad.vjp(f, x)
        return pull(1.0)

    return pulled


CUBE = np.sum(X**3)
MODES = {  # the transform, and what its result is for the number that is read now
    "forward": (lambda f: lambda x: fwdad.jacobian(f, x, mode="forward"), lambda c: 3 * c * X**2),
    "jvp": (lambda f: lambda x: fwdad.jvp(f, x, V)[1], lambda c: 3 * c * (X**2 @ V)),
    "grad": (fwdad.grad, lambda c: 3 * c * X**2),
    "vjp": (vjp, lambda c: 3 * c * X**2),
    "linearize": (lambda f: lambda x: fwdad.linearize(f, x)[1] @ V, lambda c: 3 * c * (X**2 @ V)),
    "hvp": (lambda f: lambda x: fwdad.hvp(f, x, V), lambda c: 6 * c * X * V),
    "jit": (fwdad.jit, lambda c: c * CUBE),
    "jit_grad": (lambda f: fwdad.jit(fwdad.grad(f)), lambda c: 3 * c * X**2),
    "jit_on_numpy": (lambda f: fwdad.jit(fwdad.jacfwd(f), backend="numpy"),
                     lambda c: 3 * c * X**2),
}  # fmt: skip
_COMPILED = ("jit", "jit_grad")
FEW = ("array_1d", "deque", "object_Plain", "method_replaced", "chebyshev", "code_replaced",
       "array_0d", "global_count")  # fmt: skip


def refused(call):
    """What a call returns, or None where it is refused in clear words."""
    try:
        return call()
    except FwdadError as error:
        text = str(error)
    assert "please report" not in text
    return None


def check(name, mode):
    transform, wanted = MODES[mode]
    f, change, read = made(name)
    run = transform(f)
    for _ in range(2):  # the second call finds what the first has kept
        _compare(run, wanted, read)
    change()
    try:
        read()
    except Exception as error:  # whatever the plain program raises
        with pytest.raises((type(error), FwdadError)):
            run(X)
        return
    for _ in range(2):
        _compare(run, wanted, read)


def _compare(run, wanted, read):
    before = read()
    found = refused(lambda: run(X))
    assert read() == before
    if found is not None:
        np.testing.assert_allclose(np.ravel(found), np.ravel(wanted(before)), rtol=1e-6)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("mode", [m for m in MODES if m not in _COMPILED])
def test_never_stale(name, mode):
    check(name, mode)


@pytest.mark.parametrize("name", FEW)
@pytest.mark.parametrize("mode", _COMPILED)
def test_never_stale_compiled(name, mode):
    pytest.importorskip("numba")
    check(name, mode)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KINDS if name not in FEW])
@pytest.mark.parametrize("mode", _COMPILED)
def test_never_stale_compiled_all(name, mode):
    pytest.importorskip("numba")
    check(name, mode)


def test_enough_kinds():
    assert len(KINDS) > 100

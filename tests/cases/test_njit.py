"""Functions that are under Numba already: their Python source is differentiated."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import fwdad
from tests.differences import central_differences, complex_step

numba = pytest.importorskip("numba")

X = np.array([0.3, 1.2, -0.7])


@numba.njit
def inner(x):
    return np.sin(x) * x


@numba.njit
def total(x):
    s = 0.0
    for i in range(len(x)):
        s += inner(x[i])
    return s


@numba.njit(parallel=True)
def squares(x):
    y = np.zeros_like(x)
    for i in numba.prange(x.shape[0]):
        y[i] = inner(x[i]) ** 2
    return y


def test_a_constant_call_beside_memory_with_tangents():
    def f(x):
        y = np.zeros_like(x)
        y[:] = x * x
        return y * inner(0.5)

    want = 2 * 0.5 * np.sin(0.5)
    assert_allclose(fwdad.jacobian(f, np.ones(2)), want * np.eye(2), rtol=1e-13)
    assert_allclose(fwdad.jvp(f, np.ones(2), np.ones(2))[1], [want, want], rtol=1e-13)


def test_memory_with_tangents_that_compiled_code_has_frozen():
    held = np.zeros(2)
    reads = numba.njit(lambda k: held[k])
    calls = numba.njit(lambda k: reads(k) * 2.0)

    def f(x, read):
        held[:] = x
        return x * read(0)

    for read in (reads, calls):
        with pytest.raises(fwdad.errors.DualLeakError, match="carries derivatives"):
            fwdad.jacobian(f, np.ones(2), args=(read,))


@numba.vectorize
def bump(x):
    return x * x if x > 0 else 0.0


@numba.vectorize
def half(x):
    return x / 2


@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->(n)")
def reverse(x, y):
    for i in range(x.shape[0]):
        y[i] = x[-1 - i]


@numba.njit
def with_rule(x):
    return x + 1.0


fwdad.elementwise(half, lambda x, y: 0.5)
fwdad.elementwise(with_rule, lambda x, y: 3.0)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("f", [total, squares])
def test_every_evaluator_takes_the_python_source(f, n):
    x = X[:n]

    def plain(z):
        y = np.sin(z) * z
        return np.sum(y) if f is total else y**2

    expected = complex_step(plain, x)
    assert_allclose(fwdad.jacobian(f, x), expected, rtol=1e-13)
    assert_allclose(fwdad.jacobian(f, x, chunk=2), expected, rtol=1e-13)
    assert_allclose(fwdad.jvp(f, x, x)[1], expected @ x, rtol=1e-13)
    assert_allclose(fwdad.linearize(f, x)[1] @ x, expected @ x, rtol=1e-13)
    assert_allclose(fwdad.trace(f, x)(x), plain(x), rtol=1e-14)
    assert_allclose(fwdad.jit(f, backend="numpy")(x), plain(x), rtol=1e-14)
    J = fwdad.jit(fwdad.jacfwd(f), backend="numpy")
    assert_allclose(J(x), expected, rtol=1e-13)
    assert_allclose(fwdad.jacobian(fwdad.jit(f, backend="numpy"), x), expected, rtol=1e-13)


def test_a_compiled_function_that_calls_another_is_compiled_again():
    J = fwdad.jit(fwdad.jacfwd(total), backend="numba")
    assert_allclose(J(X), np.cos(X) * X + np.sin(X), rtol=1e-13)
    assert "run by Numba" in fwdad.explain(J)


def test_second_derivatives_and_callers_in_python():
    def f(x):
        return total(x) * x[0]

    H = fwdad.hessian(f, X)
    assert_allclose(H, central_differences(fwdad.grad(f), X), rtol=1e-7, atol=1e-8)


NO_RULE = r"no frule for (tests\.cases\.test_njit\.)?(bump|reverse)"


@pytest.mark.parametrize("f", [bump, reverse, lambda x: bump(x)])
def test_a_ufunc_of_numba_has_no_rule_of_its_own(f):
    with pytest.raises(fwdad.errors.MissingRuleError, match=NO_RULE):
        fwdad.jacobian(f, X)
    with pytest.raises(fwdad.errors.MissingRuleError, match=NO_RULE):
        fwdad.jit(fwdad.jacfwd(f), backend="numpy")(X)
    assert_allclose(fwdad.jit(f, backend="numpy")(X), f(X))  # its value needs none
    if f is not bump and f is not reverse:
        return
    assert not fwdad.supported(f)


def test_a_rule_for_a_function_of_numba_is_used():
    for f, slope in ((half, 0.5), (with_rule, 3.0)):
        assert_allclose(fwdad.jacobian(lambda x, f=f: f(x), X), slope * np.eye(3))
        J = fwdad.jit(fwdad.jacfwd(lambda x, f=f: f(x) * 2.0), backend="numpy")
        assert_allclose(J(X), 2 * slope * np.eye(3))


@numba.experimental.jitclass([("a", numba.float64)])
class Model:
    """A model."""

    def __init__(self, a):
        self.a = a

    def value(self, x):
        """Scale."""
        return self.a * x


def test_a_jitclass_is_refused_at_the_line_that_calls_it():
    model = Model(2.0)

    def f(x):
        return model.value(x)

    with pytest.raises(fwdad.errors.MissingRuleError, match=r"Model\.value") as raised:
        fwdad.jacobian(f, X)
    assert raised.value.filename == __file__
    with pytest.raises(fwdad.errors.UntraceableError, match=r"Model\.value") as raised:
        fwdad.jit(f)(X)
    assert raised.value.filename == __file__


def test_support_is_that_of_the_source():
    assert fwdad.supported(total)
    assert fwdad.supported(half)
    assert not fwdad.supported(numba.stencil(lambda a: a[-1] + a[1]))

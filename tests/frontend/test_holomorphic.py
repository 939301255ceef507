"""Complex arguments of derivatives inside traced programs: asked and checked as at once."""

import numpy as np
import pytest

import fwdad

Z = np.array([0.5 + 0.2j, 1.2 - 0.1j, 2.0j])


def smooth(z):
    y = np.zeros_like(z)
    for k in range(len(z)):
        y[k] = np.exp(0.5 * z[k]) * z[0] / (z[k] + 2.0)
    return y


def single(z):
    return 0.5 * z[0] * z + 1.0


def conjugate(z):
    return np.conj(z) * z


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_agrees_with_the_evaluator_that_runs_at_once(backend):
    v = np.array([[1.0, 2.0j, 0.3], [1j, 0.1, 0.0]])
    J = fwdad.jit(fwdad.jacfwd(smooth, holomorphic=True), backend=backend)
    push = fwdad.jit(lambda z, v: fwdad.jvp(smooth, z, v, holomorphic=True)[1], backend=backend)
    np.testing.assert_allclose(J(Z), fwdad.jacobian(smooth, Z, holomorphic=True), rtol=1e-13)
    for d in (v, v[0]):
        expected = fwdad.jvp(smooth, Z, d, holomorphic=True)[1]
        np.testing.assert_allclose(push(Z, d), expected, rtol=1e-13)


def test_single_precision_stays_single():
    z = Z.astype(np.complex64)
    found = fwdad.jit(fwdad.jacfwd(single, holomorphic=True))(z)
    expected = fwdad.jacobian(single, z, holomorphic=True)
    assert found.dtype == expected.dtype == np.complex64
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_what_is_not_holomorphic_raises_when_it_runs(backend):
    J = fwdad.jit(lambda z: fwdad.jacobian(conjugate, z, holomorphic=True), backend=backend)
    with pytest.raises(fwdad.errors.NotHolomorphicError, match="conjugate") as info:
        J(Z)
    line = test_what_is_not_holomorphic_raises_when_it_runs.__code__.co_firstlineno + 2
    assert (info.value.filename, info.value.lineno) == (__file__, line)
    assert "fwdad.jacobian(conjugate" in str(info.value)
    zero = fwdad.jit(lambda z: fwdad.jacobian(lambda z: 0 * np.conj(z), z, holomorphic=True))
    assert not zero(Z).any()


def test_must_be_asked_for():
    for trial in (fwdad.jacobian, fwdad.jvp):
        with pytest.raises(fwdad.errors.NotHolomorphicError, match="holomorphic=True"):
            fwdad.jit(lambda z, trial=trial: trial(smooth, z))(Z)
    with pytest.raises(fwdad.errors.NotHolomorphicError, match="every argument"):
        fwdad.jit(lambda z, x: fwdad.jacobian(lambda z, x: z * x, z, args=(x,), argnums=(0, 1), holomorphic=True))(Z, 2.0)  # fmt: skip

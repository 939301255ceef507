"""`vjp` inside and around other derivatives, closures and jitted functions."""

import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import fwdad

X = np.array([0.5, 1.5, 2.0])
W = np.array([1.0, -2.0, 3.0])
EYE = np.eye(3)


def march(x):
    u = x.copy()
    for _ in range(3):
        u[1:] += 0.1 * u[:-1] * u[1:]
    return u


def march_bar(x):
    return fwdad.vjp(march, x)[1](W)


def test_derivatives_of_pullbacks():
    """jvp, jacobian and grad of vjp; and of its pullback alone, which is linear."""
    H = fwdad.jacobian(lambda x: fwdad.jacobian(lambda z: march(z) @ W, x, mode="forward"), X)
    assert_allclose(fwdad.jacobian(march_bar, X), H, rtol=1e-12, atol=1e-14)
    assert_allclose(fwdad.jvp(march_bar, X, W)[1], H @ W, rtol=1e-12)
    expected = 2 * H.T @ march_bar(X)
    assert_allclose(fwdad.grad(lambda x: np.sum(march_bar(x) ** 2))(X), expected, rtol=1e-12)
    K = fwdad.jacobian(lambda x: np.sum(fwdad.vjp(march, x)[1](np.stack([W, 2 * W])), axis=0), X)
    assert_allclose(K, 3 * H, rtol=1e-12, atol=1e-14)

    J = fwdad.jacobian(march, X)
    _, pullback = fwdad.vjp(march, X)
    assert_allclose(fwdad.jacobian(pullback, W), J.T, rtol=1e-12, atol=1e-15)
    g = fwdad.grad(lambda b: np.sum(pullback(b) ** 2))(W)
    assert_allclose(g, 2 * J @ J.T @ W, rtol=1e-12)
    assert_allclose(fwdad.jit(march_bar, backend="numpy")(X), J.T @ W, rtol=1e-12, atol=1e-15)


def test_of_other_derivatives():
    def f(x):
        return fwdad.jvp(march, x, W)[1]

    def loss(x):
        return np.sum(march(x) ** 2)

    for g in (f, fwdad.grad(loss), fwdad.jit(march, backend="numpy")):
        expected = W @ fwdad.jacobian(g, X)
        assert_allclose(fwdad.vjp(g, X)[1](W), expected, rtol=1e-12)


def test_closures_over_active_values():
    def f(x):
        w = x[0]
        return fwdad.vjp(lambda z: z * w, x)[1](np.ones(3))

    J = np.zeros((3, 3))
    J[:, 0] = 1.0
    assert_array_equal(fwdad.jacobian(f, X), J)
    assert_array_equal(fwdad.grad(lambda x: np.sum(f(x)))(X), [3.0, 0.0, 0.0])


def captures_number(x):
    w = x[0]
    return lambda z: z * w


def captures_array(x):
    w = np.zeros(3)
    w[0] = x[1]
    return lambda z: z * w


@pytest.mark.parametrize("capturing", [captures_number, captures_array])
def test_traced_functions_that_capture_active_values(capturing):
    """What a tape reads from outside its arguments may carry a derivative, also in memory."""
    ways = {
        "jit": lambda f, x: fwdad.jit(f, backend="numpy")(x),
        "vjp": lambda f, x: fwdad.vjp(f, x)[1](x),
        "grad": lambda f, x: fwdad.grad(lambda z: np.sum(f(z) * z))(x) / 2,
    }
    for at in (lambda x: x, lambda x: X):  # with an active argument, and without
        expected = fwdad.jacobian(lambda x, at=at: capturing(x)(at(x)), X)
        for name, way in ways.items():

            def f(x, at=at, way=way):
                return way(capturing(x), at(x))

            assert_allclose(fwdad.jacobian(f, X), expected, err_msg=name)
            assert_allclose(fwdad.vjp(f, X)[1](EYE), expected, err_msg=name)


def test_a_record_goes_through_jitted_functions():
    fast = fwdad.jit(march, backend="numpy")

    def f(x):
        return fast(next(item for item in (x,)))

    assert_allclose(fwdad.vjp(f, X)[1](EYE), fwdad.jacobian(march, X), rtol=1e-14)


def test_threads():
    _, pullback = fwdad.vjp(march, X)
    J = fwdad.jacobian(march, X)
    wrong = []

    def work(k):
        for i in range(20):
            y_bar = W * (k + i)
            own = fwdad.vjp(march, X * 1.0)[1] if i % 5 == 0 else pullback
            if not np.allclose(own(y_bar), y_bar @ J, rtol=1e-12):
                wrong.append((k, i))
            if not np.allclose(own(EYE), J, rtol=1e-12):
                wrong.append((k, i))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong

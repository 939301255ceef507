"""A function of fwdad's in JAX: checked by JAX's own means, and by formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fwdad.compat import to_jax
from fwdad.errors import UnsupportedTypeError
from tests.compat.bridges.programs import (
    PLACES,
    B,
    U,
    W,
    burgers,
    burgers_jacobian,
    loss,
    loss_gradient,
    model,
    twice,
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def check(jax):
    return pytest.importorskip("jax.test_util").check_grads


def hessian_of_squares(u):
    step = 1e-5
    rows = [
        burgers_jacobian(u + h).T @ burgers(u + h) - burgers_jacobian(u - h).T @ burgers(u - h)
        for h in step * np.eye(len(u))
    ]
    return np.array(rows) / step


def test_jacobians(jax):
    f = to_jax(burgers)
    assert_allclose(f(U), burgers(U))
    assert_allclose(jax.jacfwd(f)(U), burgers_jacobian(U), atol=1e-15)
    assert_allclose(jax.jit(jax.jacrev(f))(U), burgers_jacobian(U), atol=1e-15)


@pytest.mark.parametrize("outer", ["jacfwd", "jacrev"])
@pytest.mark.parametrize("inner", ["jacfwd", "jacrev"])
def test_hessians(jax, outer, inner):
    f = to_jax(burgers)
    squares = lambda u: (f(u) ** 2).sum()  # noqa: E731
    found = getattr(jax, outer)(getattr(jax, inner)(squares))(U)
    assert_allclose(found, hessian_of_squares(U), atol=1e-8)


def test_compiled_hessian(jax):
    f = to_jax(burgers)
    found = jax.jit(jax.hessian(lambda u: (f(u) ** 2).sum()))(U)
    assert_allclose(found, hessian_of_squares(U), atol=1e-8)


def test_check_grads(check):
    check(to_jax(burgers), (U, 0.3), order=2, modes=["fwd", "rev"])


def test_structures(jax, check):
    def outputs(w, b):
        y = to_jax(model)({"w": w, "b": b}, 2, PLACES)
        assert y["sums"][1] == "text"
        assert y["at"].dtype == PLACES.dtype
        return y["wave"], y["sums"][0]

    check(outputs, (W, B), order=2, modes=["fwd", "rev"])


def test_compiled_gradient_of_a_structure(jax):
    found = jax.jit(jax.grad(lambda p, k: to_jax(loss)(p, 2, k)))({"w": W, "b": B}, PLACES)
    wanted = loss_gradient({"w": W, "b": B}, 2, PLACES)
    assert_allclose(found["w"], wanted["w"], rtol=1e-13)
    assert_allclose(found["b"], wanted["b"], rtol=1e-13)


def test_vmap(jax):
    f = to_jax(burgers)
    batch = np.stack([U, 2 * U, U**2])
    grads = jax.vmap(jax.grad(lambda u, r: f(u, r).sum()), (0, None))(batch, 0.3)
    wanted = [burgers_jacobian(u, 0.3).sum(axis=0) for u in batch]
    assert_allclose(grads, wanted, rtol=1e-13)
    total = jax.grad(lambda r: jax.vmap(f, (0, None))(batch, r).sum())(0.3)
    assert_allclose(total, sum(burgers(u, 1.0).sum() - u.sum() for u in batch), rtol=1e-12)


def test_scan(jax):
    f = to_jax(burgers)

    def run(r):
        return jax.lax.scan(lambda u, _: (f(u, r), None), U, None, length=3)[0].sum()

    def by_hand(r):
        return burgers(burgers(burgers(U, r), r), r).sum()

    difference = (by_hand(0.3 + 1e-5) - by_hand(0.3 - 1e-5)) / 2e-5
    assert_allclose(jax.grad(run)(0.3), difference, rtol=1e-8)


def halves(u):
    """It cannot be run with ones, and the length of its value depends on the numbers."""
    if np.all(u == 1.0):
        raise ArithmeticError("ones")
    return u[u > 0.5] / 2


def test_the_value_is_seen_by_a_call_with_ones(jax):
    with pytest.raises(ArithmeticError) as caught:
        jax.jit(to_jax(halves))(U)
    assert "result=" in str(caught.value.__notes__)


@pytest.mark.parametrize("way", ["structure", "function"])
def test_the_value_is_told(jax, way):
    like = jax.ShapeDtypeStruct((2,), np.float64)
    result = like if way == "structure" else lambda u: jax.ShapeDtypeStruct((2,), u.dtype)
    found = jax.jit(jax.jacrev(to_jax(halves, result=result)))(U)
    assert_allclose(found, np.eye(6)[4:] / 2)


def test_a_value_of_another_shape_raises(jax):
    wrong = to_jax(halves, result=jax.ShapeDtypeStruct((3,), np.float64))
    with pytest.raises(Exception, match=r"(?s)shapes \[\(2,\)\].*result="):
        np.asarray(jax.jit(wrong)(U))


def test_single_precision(jax):
    u = U.astype(np.float32)
    assert to_jax(burgers)(u).dtype == np.float32
    assert jax.jit(jax.grad(lambda u: to_jax(burgers)(u).sum()))(u).dtype == np.float32


def test_complex_numbers_are_refused(jax):
    with pytest.raises(UnsupportedTypeError, match="complex128"):
        to_jax(burgers)(U + 0j)


def test_an_array_at_two_places(jax):
    def total(u):
        first, (second,) = to_jax(twice)(u)
        return first.sum() + 10.0 * second.sum()

    assert_allclose(jax.grad(total)(U), 22.0 * U)
    assert_allclose(jax.jit(jax.grad(total))(U), 22.0 * U)
    f = to_jax(lambda a, b, c: a * b + c)
    assert_allclose(jax.grad(lambda x: f(x, U, U).sum())(U), U)

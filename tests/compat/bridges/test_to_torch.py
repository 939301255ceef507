"""A function of fwdad's in PyTorch: checked by PyTorch's own means, and by formulas."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fwdad.compat import to_torch
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
def torch():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KMP_WARNINGS", "0")
        return pytest.importorskip("torch")


def tensor(torch, x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def test_value_and_backward(torch):
    u = tensor(torch, U)
    y = to_torch(burgers)(u)
    assert_allclose(y.detach().numpy(), burgers(U))
    weights = np.arange(6.0)
    (y * torch.tensor(weights)).sum().backward()
    assert_allclose(u.grad.numpy(), burgers_jacobian(U).T @ weights, rtol=1e-14)


def test_backward_twice_and_what_was_changed_since(torch):
    u = tensor(torch, U)
    y = to_torch(burgers)(u).sum()
    y.backward(retain_graph=True)
    once = u.grad.clone()
    y.backward()
    assert_allclose(u.grad.numpy(), 2 * once.numpy())


@pytest.mark.parametrize("forward", [False, True])
def test_gradcheck(torch, forward):
    args = tensor(torch, U), tensor(torch, 0.3)
    assert torch.autograd.gradcheck(to_torch(burgers), args, check_forward_ad=forward)
    assert torch.autograd.gradgradcheck(to_torch(burgers), args)


def test_structures(torch):
    bridged = to_torch(model)
    places = torch.tensor(PLACES)

    def outputs(w, b):
        y = bridged({"w": w, "b": b}, 2, places)
        assert y["sums"][1] == "text"
        assert y["at"].dtype == torch.int64
        assert not y["at"].requires_grad
        assert y["at"].tolist() == [1, 3]
        return y["wave"], y["sums"][0]

    args = tensor(torch, W), tensor(torch, B)
    assert torch.autograd.gradcheck(outputs, args)
    assert torch.autograd.gradgradcheck(outputs, args)


def test_gradient_of_a_structure(torch):
    params = {"w": tensor(torch, W), "b": tensor(torch, B)}
    to_torch(loss)(params, 2, torch.tensor(PLACES)).backward()
    wanted = loss_gradient({"w": W, "b": B}, 2, PLACES)
    assert_allclose(params["w"].grad.numpy(), wanted["w"], rtol=1e-13)
    assert_allclose(params["b"].grad.numpy(), wanted["b"], rtol=1e-13)


def test_transformations(torch):
    f, u = to_torch(burgers), torch.tensor(U)
    J = burgers_jacobian(U)
    assert_allclose(torch.func.jacrev(f)(u).numpy(), J, atol=1e-15)
    assert_allclose(torch.func.jacfwd(f)(u).numpy(), J, atol=1e-15)
    H = torch.func.hessian(lambda v: (f(v) ** 2).sum())(u).numpy()
    step = 1e-5
    rows = [
        burgers_jacobian(U + h).T @ burgers(U + h) - burgers_jacobian(U - h).T @ burgers(U - h)
        for h in step * np.eye(6)
    ]
    assert_allclose(H, np.array(rows) / step, atol=1e-8)


def test_vmap(torch):
    f = to_torch(burgers)
    batch = tensor(torch, np.stack([U, 2 * U, U**2]))
    torch.func.vmap(f)(batch).sum().backward()
    wanted = [burgers_jacobian(u).sum(axis=0) for u in batch.detach().numpy()]
    assert_allclose(batch.grad.numpy(), wanted, rtol=1e-13)
    grads = torch.func.vmap(torch.func.grad(lambda u: f(u).sum()))(batch.detach())
    assert_allclose(grads.numpy(), wanted, rtol=1e-13)


def test_single_precision(torch):
    u = torch.tensor(U, dtype=torch.float32, requires_grad=True)
    y = to_torch(burgers)(u)
    y.sum().backward()
    assert y.dtype == u.grad.dtype == torch.float32


def test_no_gradient_is_asked_for(torch):
    u = torch.tensor(U)
    assert not to_torch(burgers)(u).requires_grad
    with torch.no_grad():
        assert not to_torch(burgers)(tensor(torch, U)).requires_grad


def test_complex_tensors_are_refused(torch):
    with pytest.raises(UnsupportedTypeError, match="complex128"):
        to_torch(burgers)(torch.ones(3, dtype=torch.complex128))


def test_an_array_at_two_places(torch):
    u = tensor(torch, U)
    first, (second,) = to_torch(twice)(u)
    (first.sum() + 10.0 * second.sum()).backward()
    assert_allclose(u.grad.numpy(), 22.0 * U)
    v = torch.tensor(U)
    f = to_torch(lambda a, b, c: a * b + c)
    total = torch.func.grad(lambda x: f(x, v, v).sum())(v)
    assert_allclose(total.numpy(), U)

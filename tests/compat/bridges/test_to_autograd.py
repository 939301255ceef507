"""A function of fwdad's in autograd: checked by autograd's own means, and by formulas."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fwdad.compat import to_autograd
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
def ag():
    return SimpleNamespace(
        ad=pytest.importorskip("autograd"),
        np=pytest.importorskip("autograd.numpy"),
        check=pytest.importorskip("autograd.test_util").check_grads,
    )


def test_jacobian(ag):
    assert_allclose(ag.ad.jacobian(to_autograd(burgers))(U), burgers_jacobian(U), atol=1e-15)
    assert_allclose(to_autograd(burgers)(U), burgers(U))


@pytest.mark.parametrize("modes", [["rev"], ["fwd"], ["fwd", "rev"]])
def test_check_grads(ag, modes):
    ag.check(to_autograd(burgers), (0, 1), modes=modes)(U, 0.3)


def test_third_order(ag):
    ag.check(to_autograd(burgers), modes=["rev"], order=3)(U)


def test_structures(ag):
    def outputs(w, b):
        y = to_autograd(model)({"w": w, "b": b}, 2, PLACES)
        assert y["sums"][1] == "text"
        assert list(y["at"]) == [1, 3]
        return ag.np.sum(y["wave"] ** 2) * y["sums"][0]

    ag.check(outputs, (0, 1))(W, B)


def test_gradient_of_a_structure(ag):
    params = {"w": W, "b": B}
    found = ag.ad.grad(to_autograd(loss))(params, 2, PLACES)
    wanted = loss_gradient(params, 2, PLACES)
    assert_allclose(found["w"], wanted["w"], rtol=1e-13)
    assert_allclose(found["b"], wanted["b"], rtol=1e-13)


def test_gradient_of_a_list(ag):
    found = ag.ad.grad(to_autograd(lambda p: p[0] * np.sum(p[1][0] ** 2)))([B, (W,)])
    assert_allclose(found[0], np.sum(W**2))
    assert_allclose(found[1][0], 2 * B * W)


def test_complex_numbers_are_refused(ag):
    with pytest.raises(UnsupportedTypeError, match="complex128"):
        ag.ad.grad(lambda z: ag.np.real(ag.np.sum(to_autograd(burgers)(z))))(U + 0j)


def test_an_array_at_two_places(ag):
    def total(u):
        first, (second,) = to_autograd(twice)(u)
        return ag.np.sum(first) + 10.0 * ag.np.sum(second)

    assert_allclose(ag.ad.grad(total)(U), 22.0 * U)
    f = to_autograd(lambda a, b, c: a * b + c)
    assert_allclose(ag.ad.grad(lambda x: ag.np.sum(f(x, U, U)))(U), U)

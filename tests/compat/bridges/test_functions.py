"""What the bridges have in common, without any peer."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fwdad.compat import to_autograd, to_jax, to_torch
from fwdad.compat.bridges.functions import Arguments, Layout, check_real, is_number, pulled, pushed
from fwdad.errors import UnsupportedTypeError
from fwdad.tangents.zero import NoTangent
from tests.compat.bridges.programs import (
    PLACES,
    B,
    U,
    W,
    burgers,
    burgers_jacobian,
    loss,
    loss_gradient,
)


def test_tangents_and_cotangents_as_functions():
    J = burgers_jacobian(U, 0.3)
    v = np.cos(U)
    assert_allclose(pushed(burgers, (0,))((v,), U, 0.3), J @ v, rtol=1e-14)
    assert_allclose(pulled(burgers, (0,))(v, U, 0.3)[0], J.T @ v, rtol=1e-14)
    found = pulled(loss, (0,))(1.0, {"w": W, "b": B}, 2, PLACES)[0]
    wanted = loss_gradient({"w": W, "b": B}, 2, PLACES)
    assert_allclose(found["w"], wanted["w"], rtol=1e-13)
    assert_allclose(found["b"], wanted["b"], rtol=1e-13)


def test_arguments():
    args = ({"w": W, "b": B}, 2, PLACES, "text", [B, PLACES])
    at = Arguments(args, is_number)
    assert at.argnums == (0, 4)
    assert at.real == [True, True, False, False, True, False]
    assert at(range(6)) == ({"w": 0, "b": 1}, 2, 3, "text", [4, 5])
    tangents = at.tangents(["w", "b", "c"])
    assert tangents == ({"w": "w", "b": "b"}, ["c", NoTangent])
    assert at.cotangents(tangents) == ["w", "b", "c"]
    assert at.only_real("abcdef") == ["a", "b", "e"]


def test_values():
    y = Layout({"a": W, "n": 3, "s": (1.0, None, True)}, is_number)
    assert y.real == [True, False, True, False]
    assert y.tangent(["a", "s"]) == {"a": "a", "n": NoTangent, "s": ("s", NoTangent, NoTangent)}
    assert y.parts({"a": 1, "n": 2, "s": (3, None, 4)}) == [1, 3]


def test_an_array_at_two_places_is_two():
    y = Layout((W, [W, W]), is_number)
    assert len(y.arrays) == 3
    assert y([1, 2, 3]) == (1, [2, 3])
    holds_itself = [W]
    holds_itself.append(holds_itself)
    with pytest.raises(UnsupportedTypeError, match="holds itself"):
        Layout(holds_itself, is_number)


def test_dtypes():
    assert check_real(np.dtype(np.float32))
    assert check_real("torch.float64")
    assert not check_real(np.dtype(np.int8))
    assert not check_real("torch.bool")
    for dtype in (np.complex128, np.float16, object):
        with pytest.raises(UnsupportedTypeError, match="float32 and float64"):
            check_real(np.dtype(dtype))


@pytest.mark.parametrize(
    ("bridge", "package"), [(to_jax, "jax"), (to_torch, "torch"), (to_autograd, "autograd")]
)
def test_a_peer_that_is_missing(bridge, package, monkeypatch):
    for module in (package, f"{package}.extend"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        bridge(burgers)
    with pytest.raises(UnsupportedTypeError, match="takes a function"):
        bridge(3)

"""``check_grads`` accepts what is right, and names what is wrong: mode, argument and entry."""

import numpy as np
import pytest

import fwdad
from fwdad import check_grads
from fwdad.errors import UnsupportedTypeError
from fwdad.rules.core.registry import RULES
from fwdad.tangents.chunk import Chunk
from tests.cases.plain_classes import CASES, NUMBERS


def pendulum(state, length):
    return np.array([state[1], -9.81 / length * np.sin(state[0])])


@pytest.mark.parametrize("order", [1, 2, 3])
def test_right_derivatives_pass(order):
    check_grads(pendulum, (np.array([0.5, 1.0]), 2.0), order)


@pytest.mark.parametrize("name", ["numbers and an array", "shared objects", "changed in place"])
def test_objects(name):
    make, _, f, count = CASES[name]
    check_grads(f, make(NUMBERS[:count]))


def test_options():
    check_grads(lambda x, n, scale=1.0: scale * x**n, (2.0, 3), kwargs={"scale": 5.0})
    check_grads(np.exp, np.float32(0.5))
    check_grads(np.exp, np.array([1.0 + 2.0j, 0.5]), holomorphic=True)
    check_grads(lambda z: z * np.conj(z), (1.0 + 2.0j,), modes="rev")
    x = np.array([1.0, 2.0])
    check_grads(_in_place, x)
    np.testing.assert_array_equal(x, [1.0, 2.0])


def _in_place(x):
    x[0] *= x[1]
    return x


def lost(p):
    """A derivative is lost on the way, of one entry."""
    return p["a"] ** 2 + fwdad.stop_gradient(p["b"][1]) * p["b"][0]


def test_the_report():
    p = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    with pytest.raises(AssertionError, match="lost are off") as caught:
        check_grads(lost, p)
    forward, reverse = str(caught.value).splitlines()[1:]
    assert forward.startswith("  fwd, result[0] by args[0]['b'][1]: got 0, differences give 3, off")
    assert reverse.startswith("  rev, a weighted sum of the result by args[0]['b'][1]: got 0, ")
    assert "exact to" in forward
    with pytest.raises(AssertionError) as caught:
        check_grads(lost, p, modes=("rev",))
    assert "fwd" not in str(caught.value)


@pytest.fixture
def cube():
    """x³, whose rule is right in first order and, written so, wrong in second."""

    def cube(x):
        return x**3

    @fwdad.frule(cube)
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return x**3, fwdad.stop_gradient(3 * x**2) * x_dot

    yield cube
    RULES.pop(cube)


def test_second_order(cube):
    check_grads(cube, 2.0, order=1)
    with pytest.raises(AssertionError) as caught:
        check_grads(cube, 2.0)
    modes = [line.split(",")[0].strip() for line in str(caught.value).splitlines()[1:]]
    assert {"fwd over fwd", "rev over fwd"} <= set(modes)


def test_a_kink_is_named():
    with pytest.raises(AssertionError, match="a kink, or noise"):
        check_grads(lambda x: np.abs(x) * x, 0.0, order=3)


def test_one_wrong_entry_of_a_wrong_rule():
    def scaled(x):
        return 2.0 * x

    @fwdad.frule(scaled)
    def rule(primals, tangents):
        lanes = 2.0 * tangents[0].lanes
        lanes[:, 2] += 1e-3 * lanes[:, 1]
        return 2.0 * primals[0], Chunk(lanes)

    try:
        with pytest.raises(AssertionError, match=r"result\[2\] by args\[0\]\[1\]: got 0.002"):
            check_grads(scaled, np.ones(4), modes="fwd")
        check_grads(scaled, np.ones(4), 1, "fwd", rtol=1e-2)
        check_grads(scaled, np.ones(4), 1, "fwd", atol=1e-2)
    finally:
        RULES.pop(scaled)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_grads(np.sin, 3), "write floats"),
        (lambda: check_grads(lambda x: "text", 3.0), "returned a str"),
        (lambda: check_grads(np.sin, 3.0, modes=("jit",)), '"fwd" and "rev"'),
        (lambda: check_grads(np.sin, 3.0, modes=()), '"fwd" and "rev"'),
        (lambda: check_grads(np.sin, 3.0, order=0), "positive"),
        (lambda: check_grads(3.0, np.sin), "function first"),
    ],
)
def test_wrong_calls(call, message):
    with pytest.raises(UnsupportedTypeError, match=message):
        call()

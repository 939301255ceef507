"""What the harness asks of its user."""

import numpy as np
import pytest

from fwdad.tangents.zero import ZERO, Zero
from fwdad.testing import CheckError, check_frule
from tests.testing.planted import M, X, sine, sine_body


def test_a_looser_tolerance_carries_its_reason(plant):
    plant(sine, sine_body)
    with pytest.raises(ValueError, match=r"rtol=0\.001 is looser than 1e-07: give the reason"):
        check_frule(sine, X, rtol=1e-3)
    check_frule(sine, X, rtol=1e-3, reason="to show it")
    check_frule(sine, X, rtol=1e-9)


def test_a_kink_is_no_place_for_differences(plant):
    def size(x):
        return np.abs(x)

    plant(size, lambda primals, tangents: (np.abs(primals[0]), np.sign(primals[0]) * tangents[0]))
    check_frule(size, X)
    with pytest.raises(CheckError, match="away from kinks") as failure:
        check_frule(size, np.array([1.0, 1e-9]))
    assert failure.value.check == "differences"


def test_arguments_without_a_tangent_space():
    with pytest.raises(ValueError, match="no argument has a tangent space"):
        check_frule(np.sin, 3)


def test_a_failing_rule_says_where_it_failed(plant):
    def body(primals, tangents):
        raise RuntimeError("planted")

    plant(sine, body)
    with pytest.raises(RuntimeError, match="planted"):
        check_frule(sine, X)


def test_containers(plant):
    def joined(parts, scale):
        return parts[0] * scale + parts[1].sum(), scale * 2

    def body(primals, tangents):
        (parts, scale), (parts_dot, scale_dot) = primals, tangents
        first, second = (ZERO, ZERO) if isinstance(parts_dot, Zero) else parts_dot
        total = parts[0] * scale + parts[1].sum()
        grown = first * scale + np.broadcast_to(parts[0] * scale_dot, total.shape)
        summed = np.broadcast_to(np.sum(second), total.shape)
        return (total, scale * 2), (grown + summed, scale_dot * 2)

    plant(joined, body)
    check_frule(joined, [X, M], 1.5)
    check_frule(joined, (X, M), 1.5)

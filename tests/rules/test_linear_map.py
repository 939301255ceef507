"""Linear maps that are given with their adjoints."""

import pytest

from fwdad.tangents.linear_map import mapped
from fwdad.testing import check_frule, check_transpose
from tests.rules.case import Case, Draw

draw = Draw(7)
A = draw.real(3, 4)


def forwards(x):
    return A @ x


def adjoint(y):
    return A.T @ y


CASES = [Case(mapped, draw.real(4), linear=(0,), apply=forwards, adjoint=adjoint)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_frule(case):
    check_frule(case.function, *case.args, **case.options)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_transpose(case):
    check_transpose(case.function, *case.args, **case.options)

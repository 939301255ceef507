"""Every rule in reverse: the cases of tests/rules, recorded, and pulled back.

The reference is the same rule pushed forward, which tests/rules compares with differences.
"""

import pytest

from tests.eager_reverse.recorded_rule import RecordedRule
from tests.transforms.forward.rule_cases import all_cases

CASES = [case for _, case in all_cases()]


def _first_ones():
    """The first case of each function: what is tested every time."""
    seen = set()
    for case in CASES:
        yield case.function not in seen
        seen.add(case.function)


ROWS = [
    pytest.param(case, id=str(case), marks=() if first else pytest.mark.slow)
    for case, first in zip(CASES, list(_first_ones()), strict=True)
]


@pytest.mark.parametrize("case", ROWS)
def test_pull_is_the_adjoint_of_push(case):
    recorded = RecordedRule(case)
    for pattern in recorded.patterns():
        recorded.check(pattern)

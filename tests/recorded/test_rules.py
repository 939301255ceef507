"""Every rule in reverse: the cases of tests/rules, recorded, and pulled back.

The reference is the same rule pushed forward, which tests/rules compares with differences.
"""

import pytest

from fwdad.errors import MissingTransposeError
from fwdad.rules.registry import function_name
from tests.recorded.rule_walk import RecordedCase
from tests.tape.rule_cases import all_cases

CASES = [case for _, case in all_cases()]

# Rules that look into their tangents, and that have no transpose.
OPAQUE = {"scipy.linalg.logm", "fwdad.tangents.sparse.sparse_solve"}


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
    recorded = RecordedCase(case)
    for pattern in recorded.patterns():
        if function_name(case.function) in OPAQUE:
            with pytest.raises(MissingTransposeError, match=r"looks into its\s+tangents"):
                recorded.check(pattern)
        else:
            recorded.check(pattern)


def test_what_is_opaque_has_cases():
    assert {function_name(case.function) for case in CASES} >= OPAQUE

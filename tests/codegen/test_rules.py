"""Every rule through Numba source: the cases of tests/rules, pushed forward, against the rule.

What has no compiled form runs under NumPy, between compiled pieces; its results are compared, too.
"""

import numpy as np
import pytest

from fwdad.codegen.call_entry import compile_program
from fwdad.transforms.passes import optimise
from tests.tiers import every
from tests.transforms.forward.rule_cases import OnTape
from tests.transforms.forward.test_rules import CASES, FIRST, is_refused

pytest.importorskip("numba")

ROWS = [row for row in zip(CASES, FIRST, strict=True) if not is_refused(row[0])]
ONE_OF_EACH = [pytest.param(case, id=str(case)) for case, first in ROWS if first]
OTHERS = [
    pytest.param(case, id=str(case), marks=pytest.mark.slow) for case, first in ROWS if not first
]
LANES = 2


def cancelled(case):
    """How large the terms are that a derivative is a difference of, in units of rounding."""
    if case.function is not np.linalg.det:
        return 0.0
    (a,) = case.args  # of a singular one the cofactors cancel
    return 1e-14 * np.max(np.linalg.norm(a, axis=(-2, -1))) ** (a.shape[-1] - 1)


@pytest.mark.every(7)
@pytest.mark.parametrize("case", [*every(7, ONE_OF_EACH), *OTHERS])
def test_compiled_rule_agrees_with_the_rule(case):
    held = OnTape(case, widths=(LANES,))
    pattern = held.trial.patterns()[-1]
    program, args = held.call(pattern, LANES)
    optimise(program)
    made = compile_program(program)
    with np.errstate(all="ignore"):
        found = made.call(*args)
    held.compare(found, pattern, LANES, atol=cancelled(case), single=1e-6)  # sums in other orders

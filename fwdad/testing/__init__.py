"""Checks of derivatives: of a function of yours, and of a rule, as fwdad's own are tested."""

from fwdad.testing.derivatives import check_derivatives
from fwdad.testing.frules import check_frule
from fwdad.testing.gradients import check_grads
from fwdad.testing.reverse_rules import check_rrule
from fwdad.testing.transposes import check_transpose
from fwdad.testing.trial import CheckError

__all__ = [
    "CheckError",
    "check_derivatives",
    "check_frule",
    "check_grads",
    "check_rrule",
    "check_transpose",
]

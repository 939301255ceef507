"""Checks for rule authors: your own rule is tested in two lines, as fwdad's own are."""

from fwdad.testing.derivatives import check_derivatives
from fwdad.testing.frules import check_frule
from fwdad.testing.reverse_rules import check_rrule
from fwdad.testing.transposes import check_transpose
from fwdad.testing.trial import CheckError

__all__ = [
    "CheckError",
    "check_derivatives",
    "check_frule",
    "check_rrule",
    "check_transpose",
]

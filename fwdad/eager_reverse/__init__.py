"""Reverse mode of whatever Python runs: tangents are written down as they arise, then run back."""

from fwdad.eager_reverse.run import Outcome, gradient, run_recorded

__all__ = ["Outcome", "gradient", "run_recorded"]

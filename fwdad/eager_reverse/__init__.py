"""Reverse mode for whatever Python runs: operations on tangents are recorded, then run backward."""

from fwdad.eager_reverse.run import Outcome, gradient, run_recorded, written_out, zeros_of

__all__ = ["Outcome", "gradient", "run_recorded", "written_out", "zeros_of"]

"""Scalar replacement of small arrays: one value for each element, which can live in a register."""

from fwdad.transforms.passes.small.elements import SMALL
from fwdad.transforms.passes.small.split import split_arrays
from fwdad.transforms.passes.small.unroll import unroll_short

__all__ = ["SMALL", "split_arrays", "unroll_short"]

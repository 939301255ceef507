"""Small arrays become numbers: a value for each element, which compilers keep in registers."""

from fwdad.transforms.passes.small.elements import SMALL
from fwdad.transforms.passes.small.split import split_arrays

__all__ = ["SMALL", "split_arrays"]

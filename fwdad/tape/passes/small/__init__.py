"""Small arrays become numbers: a value for each element, which compilers keep in registers."""

from fwdad.tape.passes.small.elements import SMALL
from fwdad.tape.passes.small.split import split_arrays

__all__ = ["SMALL", "split_arrays"]

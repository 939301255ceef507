"""Reversible programs: functions that run backwards without a stack.

In comes a function under ``@reversible``. Out comes a function whose inverse is ``~f``, and whose
gradient runs the inverse with cotangents, at once, on tapes, in recorded runs and on a GPU.
"""

from fwdad.reversible import tracing as tracing  # registers itself
from fwdad.reversible.bennett import bennett
from fwdad.reversible.containers.dictionary import Dict
from fwdad.reversible.containers.stack import Stack
from fwdad.reversible.cuda_kernel import CudaKernel, cuda_kernel
from fwdad.reversible.function import Reversible, reversible
from fwdad.reversible.insertion import delete, insert
from fwdad.reversible.language.instructions import register_instruction, rotate
from fwdad.reversible.language.keywords import (
    ancilla,
    compute,
    cond,
    contains,
    copy_out,
    free,
    pop,
    push,
    unchecked,
)
from fwdad.reversible.numbers.fixed import Fixed
from fwdad.reversible.numbers.logarithmic import Logarithmic
from fwdad.reversible.numerical_checks import check_gradient, check_inverse

__all__ = [
    "CudaKernel",
    "Dict",
    "Fixed",
    "Logarithmic",
    "Reversible",
    "Stack",
    "ancilla",
    "bennett",
    "check_gradient",
    "check_inverse",
    "compute",
    "cond",
    "contains",
    "copy_out",
    "cuda_kernel",
    "delete",
    "free",
    "insert",
    "pop",
    "push",
    "register_instruction",
    "reversible",
    "rotate",
    "unchecked",
]

"""Reversible programs: functions that run backwards without a stack."""

from fwdad.reversible import tracing as tracing  # registers itself
from fwdad.reversible.bennett import bennett
from fwdad.reversible.cuda import CudaKernel, cuda_kernel
from fwdad.reversible.dictionary import Dict, delete, insert
from fwdad.reversible.function import Reversible, reversible
from fwdad.reversible.instructions import register_instruction, rotate
from fwdad.reversible.measure import check_gradient, check_inverse
from fwdad.reversible.numbers import Fixed, Logarithmic
from fwdad.reversible.stack import Stack
from fwdad.reversible.words import (
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

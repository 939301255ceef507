"""A program as source of functions that ``numba.cuda`` compiles for one thread."""

from __future__ import annotations

from fwdad.codegen.device.element_loops import loop_over_elements
from fwdad.codegen.device.functions import device_function
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.numpy_backend.source import Source, source_of
from fwdad.codegen.passes import place_decompositions  # noqa: F401  (registered, too)
from fwdad.codegen.passes.decompositions import expanded
from fwdad.ir.ops import Apply, Call, Program, Value
from fwdad.ir.printer import Writer
from fwdad.transforms.passes import optimise, split_arrays


def device_source(program: Program) -> Source:
    """Write a program, in which all lengths of parameters are known, for one thread.

    The program is changed. Functions in the source's namespace are Python functions that must be
    compiled for the device, too.
    """
    if program.count(Call):
        message = f"{program.name} calls itself: a kernel cannot be recursive"
        raise CannotCompileError(message)
    if split_arrays(program):
        optimise(program)
    program = expanded(program)
    loop_over_elements(program)
    for op in program.walk():
        if isinstance(op, Apply) and not any(v.type.ndim for v in op.outputs):
            dtypes = [a.type.dtype for a in op.args if isinstance(a, Value)]
            op.function = device_function(op.function, dtypes)
    return source_of(program, Writer(program))

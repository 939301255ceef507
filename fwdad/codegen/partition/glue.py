"""The source of a program in pieces: a Python function that runs under NumPy and calls them."""

from __future__ import annotations

from fwdad.codegen.loops.source import numba_source
from fwdad.codegen.numba_support import CannotCompileError
from fwdad.codegen.numpy_backend.source import Source, source_of
from fwdad.codegen.partition.pieces import Cut, cut
from fwdad.ir.ops import Missing, Program
from fwdad.ir.printer import Style, Writer
from fwdad.ir.types import ArrayType, least_shape


def _unused(operand: Missing) -> str:
    """A value of the right type that is never used, but that compiled code may be given."""
    t = operand.type
    if isinstance(t, ArrayType):
        return f"np.empty({least_shape(t)}, np.{t.dtype})"
    return repr(t.dtype.type(0).item())


def glue_source(cut: Cut) -> Source:
    """Write what calls the pieces of a program; their functions must be added to its namespace."""
    names = {id(p): p.name for p in cut.pieces}
    style = Style(missing=_unused, fixed=names)
    return source_of(cut.program, Writer(cut.program, style), without=names)


def numba_text(program: Program) -> str:
    """The source that Numba compiles; for a program in pieces, their caller and each piece."""
    try:
        return numba_source(program)[0].text
    except CannotCompileError:
        partition = cut(program)
    pieces = [f"@njit\n{numba_source(piece)[0].text}" for piece in partition.pieces]
    return "\n\n".join([glue_source(partition).text, *pieces])

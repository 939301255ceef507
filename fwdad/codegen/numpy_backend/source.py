"""A program as Python source that runs under NumPy."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fwdad.codegen.numpy_backend.liveness import free_dead_arrays
from fwdad.codegen.passes.outer_products import without_outer_sums
from fwdad.codegen.source_comments import annotated
from fwdad.core.generated_source import define
from fwdad.core.recursion_limit import HigherLimit
from fwdad.errors import note_place
from fwdad.ir.notation import tuple_text
from fwdad.ir.ops import Program
from fwdad.ir.printer import Writer
from fwdad.ir.types import Type
from fwdad.tangents.quiet import quietly
from fwdad.tangents.scaling import scale_lanes, scaled


def _function(writer: Writer, program: Program, name: str) -> None:
    params = [writer.names.name(p) for p in program.block.params]
    writer.code.line(f"def {name}({', '.join(params)}):")
    with writer.code.indented():
        writer.body(program.block)
        writer.code.line(f"return {tuple_text([writer.text(r) for r in program.block.results])}")


@dataclass
class Callee:
    """A function that generated source defines beside its first.

    ``inner`` are indices that are inside every array that they index. The last ``stacked`` results
    are parts of stacks: C-contiguous arrays.
    """

    name: str
    results: list[Type]
    types: dict[str, Type]
    inner: list[str] = field(default_factory=list)
    stacked: int = 0


@dataclass
class Source:
    """Generated source that defines the function ``name``.

    ``places`` has the user's location of each line, and ``quiet`` suppresses floating-point
    warnings; ``deep`` says that its functions call each other. For Numba: ``called`` are its
    callees, ``inner`` indices that are inside every array that they index, ``outlined`` are
    functions whose variables have types of the first one's, each with its parameters that share
    memory with no other, and ``callbacks`` what it calls of Python's; ``parts`` are what the first
    function was cut into.
    """

    name: str
    code: str
    namespace: dict[str, Any]
    places: list[Any]
    quiet: bool = False
    deep: bool = False
    called: list[Callee] = field(default_factory=list)
    inner: list[str] = field(default_factory=list)
    outlined: dict[str, frozenset[str]] = field(default_factory=dict)
    callbacks: list[Any] = field(default_factory=list)
    arrays: frozenset[str] = frozenset()
    parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The source with the user's lines as comments."""
        return annotated(self.code, self.places)


def numpy_source(program: Program) -> Source:
    """Write a program as a function of its leaves that returns a tuple of its results.

    The program must be complete: no captured value without a parameter.
    """
    program = without_outer_sums(program)
    writer = Writer(program)
    written = source_of(program, writer)
    written.arrays = frozenset(writer.names.of_arrays())
    if program.quiet:  # it runs in the quiet context, which need not be entered for each product
        named = {name: scaled for name, f in written.namespace.items() if f is scale_lanes}
        written.namespace.update(named)
    return written


def source_of(program: Program, writer: Writer) -> Source:
    """Write a program, and its callees, with a fresh writer."""
    name = program.name if program.name.isidentifier() else "traced"
    writer.names.reserve([name])
    _function(writer, program, name)
    called = writer.globals.called
    done: set[int] = set()
    while len(done) < len(called):  # callees, which may call others
        for inner, inner_name in list(called.values()):
            if id(inner) not in done:
                done.add(id(inner))
                writer.code.line("")
                writer.code.line("")
                follower = writer.follow(inner)
                follower.names.reserve([name])
                _function(follower, inner, inner_name)
    namespace = {"np": np, "math": math, **writer.globals.objects}
    code = writer.code
    text = "\n".join(code.lines) + "\n"
    return Source(name, text, namespace, code.places, program.quiet, deep=bool(called))


def defined(source: Source) -> Callable[..., Any]:
    """The function that a source defines; tracebacks show its lines."""
    namespace = dict(source.namespace)
    return define(source.code, filename(source), namespace, source.name, source.places)


def compiled(source: Source) -> Callable[..., Any]:
    """The function of a source; an exception names the user's line in a note.

    The source of a derivative is changed to free arrays when they are no longer needed.
    """
    if source.quiet:
        code, places = free_dead_arrays(source.code, source.places, source.arrays)
        source = replace(source, code=code, places=places)
    function, name = defined(source), filename(source)

    def deep(*leaves: Any) -> Any:
        with HigherLimit() as raised, raised:
            return function(*leaves)

    run = deep if source.deep else function

    def loud(*leaves: Any) -> Any:
        try:
            return run(*leaves)
        except Exception as error:  # whatever the program raises gets its location
            note_places(error, source, name)
            raise

    def quiet(*leaves: Any) -> Any:
        return quietly(loud, *leaves)

    return quiet if source.quiet else loud


def filename(source: Source) -> str:
    """The name under which Python and Numba know a source."""
    return f"<fwdad {source.name} {zlib.crc32(source.code.encode()):x}>"  # the same in each process


def note_places(error: Exception, source: Source, name: str) -> None:
    """Note in an error the user's lines that lines of a source, in a file of a name, come from."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == name and trace.tb_lineno:
            note_place(error, source.places[trace.tb_lineno - 1])
        trace = trace.tb_next

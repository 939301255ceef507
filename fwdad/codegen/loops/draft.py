"""The source of one function as far as it is written for Numba: lines, names, what it refers to."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from fwdad.codegen.callbacks.callback import Callback
from fwdad.codegen.llvm import vector_functions
from fwdad.codegen.loops import parallel_elements
from fwdad.codegen.loops.terms.number_terms import Term
from fwdad.codegen.numba_support import HELPERS
from fwdad.codegen.passes.registers import width
from fwdad.codegen.runtime import libmvec
from fwdad.ir.inlining import Inlined, Usage
from fwdad.ir.lines import Lines
from fwdad.ir.literals import Globals, Literals
from fwdad.ir.names import Names
from fwdad.ir.notation import ATOM, words
from fwdad.ir.ops import Op, Program, Value
from fwdad.ir.types import Type


class Helpers:
    """The functions of ours that a source calls, which become globals of it.

    ``used`` are run-time helpers; ``lane_functions`` maps names to what the functions do, and the
    number of lanes.
    """

    def __init__(self) -> None:
        self.used: set[str] = set()
        self.vector_functions: set[str] = set()
        self.lane_functions: dict[str, tuple[str, int]] = {}

    def use(self, name: str) -> str:
        """The name of a run-time helper, for an expression that calls it."""
        self.used.add(name)
        return name

    def note(self, text: str) -> None:
        """Note the run-time helpers that an expression calls."""
        if "(" in text:
            self.used |= HELPERS.keys() & words(text)

    def note_vectors(self, text: str) -> None:
        """Note the vector functions that a line calls."""
        self.vector_functions.update(libmvec.called(text))


@dataclass
class Module:
    """What the functions of one source share.

    ``outlined`` are lines of functions that stand before the program; the types of those that are
    ``typed`` are checked, too, each with its parameters that share memory with no other.
    ``result_types`` are the types of what callees return, by their ids;
    ``callbacks`` what is called of Python's, by those of the programs.
    """

    code: Lines = field(default_factory=Lines)
    globals: Globals = field(default_factory=Globals)
    helpers: Helpers = field(default_factory=Helpers)
    outlined: list[str] = field(default_factory=list)
    typed: dict[str, frozenset[str]] = field(default_factory=dict)
    result_types: dict[int, list[Type]] = field(default_factory=dict)
    callbacks: dict[int, tuple[Callback, str]] = field(default_factory=dict)


class TypedNames:
    """Names, with the types that they must have in compiled code.

    Values in ``lanes`` are kept in registers: their names have ``widths`` instead.
    """

    def __init__(self, groups: dict[Value, list[Value]], lanes: AbstractSet[Value]) -> None:
        self.plain = Names(groups, self._note)
        self.types: dict[str, Type] = {}
        self.widths: dict[str, int] = {}
        self._lanes = lanes

    def name(self, value: Value) -> str:
        """A value's name."""
        return self.plain.name(value)

    def temporary(self, wanted: str, t: Type | None = None) -> str:
        """A new name."""
        name = self.plain.unique(wanted)
        if t is not None:
            self.types[name] = t
        return name

    def _note(self, value: Value, name: str) -> None:
        if value in self._lanes:
            self.widths[name] = width(value)
        else:
            self.types.setdefault(name, value.type)


class Draft:
    """One function while it is written: the parts that write its operations share it."""

    def __init__(self, program: Program, module: Module, lanes: AbstractSet[Value]) -> None:
        self.program = program
        self.module = module
        self.code = module.code
        self.helpers = module.helpers
        self.usage = Usage(program, coalesce=False)
        self.names = TypedNames(self.usage.groups, lanes)
        reserve = self.names.plain.reserve
        reserve([*HELPERS, *vector_functions.FUNCTIONS, *parallel_elements.namespace()])
        if program.parallel:
            reserve(parallel_elements.RESERVED)
        reserve(name for _, name in module.globals.called.values())
        reserve([*module.globals.objects, *module.helpers.lane_functions])
        self.inlined = Inlined(self.code)
        self.literals = Literals(self.names.plain, module.globals)

    def vector_line(self, text: str, op: Op | None = None) -> None:
        """Write one line, and note the vector functions that it calls."""
        self.helpers.note_vectors(text)
        self.code.line(text, op)

    def vector_atom(self, term: Term, wanted: str = "t") -> Term:
        """A term of vectors as a name, so that it may be written twice."""
        if term.text.isidentifier():
            return term
        name = self.names.temporary(wanted)
        self.vector_line(f"{name} = {term.text}")
        return term._replace(text=name, level=ATOM)

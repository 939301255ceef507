"""The parts that write the operations of one function for Numba, below control flow."""

from __future__ import annotations

from fwdad.codegen.loops.assignments import Assignments
from fwdad.codegen.loops.draft import Draft, Module
from fwdad.codegen.loops.elementwise import Elementwise
from fwdad.codegen.loops.facts import Facts
from fwdad.codegen.loops.lanes import Lanes
from fwdad.codegen.loops.loop_lines import LoopLines
from fwdad.codegen.loops.memory import Memory
from fwdad.codegen.loops.new_arrays import NewArrays
from fwdad.codegen.loops.numbers import Numbers
from fwdad.codegen.loops.registers import Registers
from fwdad.codegen.loops.stack_memory import Stacks
from fwdad.codegen.loops.stores import Stores
from fwdad.codegen.passes.registers import in_registers
from fwdad.ir.ops import Program
from fwdad.ir.primitives.undef import missing_on_some_way


class Parts:
    """What is given to the modules that write one kind of operation, as ``w``.

    A part uses those that are built before it.
    """

    def __init__(self, program: Program, module: Module) -> None:
        self.program = program
        self.memory = Memory(program, module.code)
        lanes = in_registers(program, self.memory.is_written)
        self.draft = draft = Draft(program, module, lanes)
        self.code = draft.code
        self.names = draft.names
        self.helpers = draft.helpers
        self.usage = draft.usage
        self.inlined = draft.inlined
        self.literals = draft.literals
        self.facts = Facts()
        self.missing = missing_on_some_way(program)
        self.stacks = Stacks(program, self.missing)
        self.registers = Registers(draft, lanes)
        self.loops = LoopLines(draft)
        self.arrays = NewArrays(draft, lanes, self.memory, self.loops)
        self.assignments = Assignments(draft)
        self.elements = Elementwise(
            draft,
            self.memory,
            self.facts,
            self.registers,
            self.loops,
            self.arrays,
            self.assignments,
        )
        self.operands = self.elements.operands
        self.numbers = Numbers(draft, self.registers, self.operands, self.assignments)
        self.lanes = Lanes(draft, self.registers, self.operands)
        self.stores = Stores(
            draft,
            self.memory,
            self.facts,
            self.loops,
            self.arrays,
            self.assignments,
            self.elements,
        )

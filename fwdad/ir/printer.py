"""The printer: a program as readable lines, which are Python source."""

from __future__ import annotations

from fwdad.ir.analysis.effects import risk
from fwdad.ir.control import Control, negation
from fwdad.ir.expressions import Expressions
from fwdad.ir.inlining import Inlined, Usage
from fwdad.ir.lines import Lines
from fwdad.ir.literals import Globals, Literals
from fwdad.ir.names import Names
from fwdad.ir.notation import ATOM, INFIX, LOWEST, tuple_text
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Store,
    Update,
    is_array,
    values_in,
)
from fwdad.ir.primitives.known_shapes import of_shape, told_by_samples
from fwdad.ir.types import Dimension, Size
from fwdad.ops import Risk

_LONGEST = 88  # characters of an expression inside another one


class Writer:
    """Writes a program as lines: definitions, stores, checks, branches and loops.

    A ``sketch`` is only for reading, so that what is unused is left out.
    """

    def __init__(
        self,
        program: Program,
        code: Lines | None = None,
        refers: Globals | None = None,
        *,
        sketch: bool = False,
    ) -> None:
        self.sketch = sketch
        self.code = code or Lines()
        self.globals = refers or Globals()
        self.usage = Usage(program, coalesce=True)
        self.names = Names(self.usage.groups)
        self.names.reserve(name for _, name in self.globals.called.values())
        self.names.reserve(self.globals.objects)
        self.inlined = Inlined(self.code)
        self.expressions = Expressions(
            self.names.name, self.inlined, Literals(self.names, self.globals)
        )
        self.control = Control(self.code, self.names, self.inlined, self.usage, self)

    def follow(self, program: Program) -> Writer:
        """A writer for a called program, whose lines come after this one's."""
        return Writer(program, self.code, self.globals, sketch=self.sketch)

    def text(self, operand: Operand, level: int = LOWEST) -> str:
        """An operand as source, in parentheses if it binds more weakly than ``level``."""
        return self.expressions.text(operand, level)

    def assigned(self, name: str, operand: Operand) -> str:
        """An operand as source that is assigned to a name; the name itself for nothing."""
        nothing = self.sketch and isinstance(operand, Missing)
        return name if nothing else self.text(operand)

    def body(self, block: Block) -> None:
        """Write the operations of a block."""
        for k, op in enumerate(block.ops):
            self.operation(op, block, k)

    def operation(self, op: Op, _block: Block, _k: int) -> None:
        """Write one operation."""
        if op.writes() or op.nests or isinstance(op, (Check, Call)):
            self.flush(op)
        if isinstance(op, (Apply, Load)) and op.outputs:
            self._definition(op)
        elif isinstance(op, Apply):
            self.code.line(self.expressions.operation(op)[0], op)
        elif isinstance(op, Store):
            self.code.line(f"{self.expressions.element(op)} = {self.text(op.value)}", op)
        elif isinstance(op, Update):
            symbol = INFIX[op.function][0]
            target = self.expressions.element(op)
            if op.index == (Ellipsis,) and target[:-5].isidentifier():
                target = target[:-5]  # the array itself, in place
            self.code.line(f"{target} {symbol}= {self.text(op.value)}", op)
        elif isinstance(op, Check):
            self._check(op)
        elif isinstance(op, Branch):
            self.control.branch(op)
        elif isinstance(op, Loop):
            self.control.loop(op)
        elif isinstance(op, Call):
            self._call(op)
        else:
            raise TypeError(type(op))

    def _definition(self, op: Apply | Load) -> None:
        used = [v for o in op.operands() for v in values_in(o)]
        reads = _reads_memory(op) or any(v in self.inlined.reading for v in used)
        text, level = self.expressions.operation(op)
        if isinstance(op, Apply) and not self.sketch and told_by_samples(op.function):
            text, level = self._of_known_shape(op, text, level)
        if len(op.outputs) == 1:
            (value,) = op.outputs
            if value in self.usage.single and len(text) <= _LONGEST:
                self.inlined.hold(value, text, level, op.location)
                if reads:
                    self.inlined.reading.add(value)
                if reads or risk(op) >= Risk.SHAPES:
                    self.inlined.pending.append(value)
                return
            if not self.usage.count[value] and op.pure and not isinstance(op, Apply):
                return
        names = ", ".join(self.names.name(v) for v in op.outputs)
        self.code.line(f"{names} = {text}", op)

    def _of_known_shape(self, op: Apply, text: str, level: int) -> tuple[str, int]:
        """A call whose result is compared with the lengths that its type says."""
        places = {
            d: f"{self.names.name(v)}.shape[{axis}]"
            for v in values_in(op.operands()) if v not in self.inlined.held
            for axis, d in enumerate(v.type.shape)
        }  # fmt: skip
        shapes = [[_length_text(d, places) for d in v.type.shape] for v in op.outputs]
        if all(n == "None" for shape in shapes for n in shape):
            return text, level
        function = self.expressions.literals.function(of_shape)
        return f"{function}({text}, {', '.join(map(tuple_text, shapes))})", ATOM

    def flush(self, upto: Op | None = None) -> None:
        """Write pending expressions out before memory that they may read is written."""
        inlined = self.inlined
        if not inlined.pending:
            return
        held = set() if upto is None else {v for o in upto.operands() for v in values_in(o)}
        keep = [v for v in inlined.pending if v in held]
        for value in inlined.pending:
            if value in inlined.held and value not in keep:
                text, _ = inlined.held.pop(value)
                self.code.line(f"{self.names.name(value)} = {text}")
        inlined.pending = keep

    def _check(self, op: Check) -> None:
        exception = self.text(op.exception)
        if isinstance(op.exception, type):
            exception += f"({', '.join(self.text(a) for a in op.arguments)})"
        always = op.condition is False
        if not always:
            self.code.line(f"if {negation(self.text(op.condition))}:", op)
        self.code.indent += not always
        self.code.line(f"raise {exception}", op)
        self.code.indent -= not always

    def begin_range(self, op: Loop) -> None:
        """Write the head of a loop over a range, and indent."""
        self.control.head(op)

    def _call(self, op: Call) -> None:
        called, key = self.globals.called, id(op.program)
        if key not in called:
            called[key] = (op.program, self.names.unique(op.program.name))
        name = called[key][1]
        args = ", ".join(self.text(a) for a in op.args)
        outputs = ", ".join(self.names.name(v) for v in op.outputs)
        comma = "," if len(op.outputs) == 1 else ""
        self.code.line(f"{outputs}{comma} = {name}({args})" if outputs else f"{name}({args})", op)


def _length_text(d: Dimension, places: dict[Dimension, str]) -> str:
    """A length as source; ``places`` are those of the operands. None if it is computed."""
    if not isinstance(d, Size):
        return str(d)
    of, k = d.shortened
    if d in places or of not in places:
        return places.get(d, "None")
    return f"max({places[of]} - {k}, 0)"


def _reads_memory(op: Op) -> bool:
    return isinstance(op, Load) or any(is_array(v) for o in op.operands() for v in values_in(o))


def sketched(program: Program) -> Writer:
    """The writer of a program as readable lines, with the types of its parameters."""
    writer = Writer(program, sketch=True)
    params = [f"{writer.names.name(p)}: {p.type}" for p in program.block.params]
    writer.code.line(f"tape {program.name}({', '.join(params)}):")
    with writer.code.indented():
        writer.body(program.block)
        writer.code.line(f"return {', '.join(writer.text(r) for r in program.block.results)}")
    return writer


def show_program(program: Program) -> str:
    """A program as readable lines, with the types of its parameters."""
    return "\n".join(sketched(program).code.lines)

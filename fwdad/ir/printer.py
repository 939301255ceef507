"""The printer: a program as readable lines, which are Python source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fwdad.ir.analysis.effects import risk
from fwdad.ir.expressions import Expressions
from fwdad.ir.notation import INFIX, words
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
    Value,
    is_array,
    values_in,
)
from fwdad.ir.rewrite import all_used
from fwdad.ops import Risk

_LONGEST = 88  # characters of an expression inside another one


class Writer(Expressions):
    """Writes a program as lines: definitions, stores, checks, branches and loops."""

    def body(self, block: Block) -> None:
        """Write the operations of a block."""
        for k, op in enumerate(block.ops):
            self._op(op, block, k)

    def _op(self, op: Op, block: Block, k: int) -> None:
        if op.writes() or op.nests or isinstance(op, (Check, Call)):
            self.flush(op)
        if isinstance(op, (Apply, Load)) and op.outputs:
            self._definition(op, block, k)
        elif isinstance(op, Apply):
            self.line(self._call(op)[0], op)
        elif isinstance(op, Store):
            self.line(f"{self._target(op)} = {self.text(op.value)}", op)
        elif isinstance(op, Update):
            symbol = INFIX[op.function][0]
            target = self._target(op)
            if op.index == (Ellipsis,) and target[:-5].isidentifier():
                target = target[:-5]  # the array itself, in place
            self.line(f"{target} {symbol}= {self.text(op.value)}", op)
        elif isinstance(op, Check):
            self._check(op)
        elif isinstance(op, Branch):
            self._branch(op)
        elif isinstance(op, Loop):
            self._loop(op)
        elif isinstance(op, Call):
            self._called(op)
        else:
            raise TypeError(type(op))

    def _definition(self, op: Apply | Load, block: Block, k: int) -> None:
        used = [v for o in op.operands() for v in values_in(o)]
        reads = _reads_memory(op) or any(v in self._reading for v in used)
        expression = self._load(op) if isinstance(op, Load) else self._call(op)
        if len(op.outputs) == 1:
            (value,) = op.outputs
            if self._may_inline(op, value, block, k) and len(expression[0]) <= _LONGEST:
                self._inlined[value] = expression
                self._places[value] = op.location
                if reads:
                    self._reading.add(value)
                if reads or risk(op) >= Risk.SHAPES:
                    self._pending.append(value)
                return
            if not self._uses[value] and op.pure and not isinstance(op, Apply):
                return
            self.line(f"{self.name(value)} = {expression[0]}", op)
            return
        names = ", ".join(self.name(v) for v in op.outputs)
        self.line(f"{names} = {expression[0]}", op)

    def _may_inline(self, _op: Op, value: Value, _block: Block, _k: int) -> bool:
        """Whether a value is written where it is used: once, later in the same block."""
        return value in self._single

    def flush(self, upto: Op | None = None) -> None:
        """Write pending expressions out before memory that they may read is written."""
        if not self._pending:
            return
        if upto is not None:
            held = {v for o in upto.operands() for v in values_in(o)}
            keep = [v for v in self._pending if v in held]
        else:
            keep = []
        for value in self._pending:
            if value in self._inlined and value not in keep:
                text, _ = self._inlined.pop(value)
                self.line(f"{self.name(value)} = {text}")
        self._pending = keep

    # -- control flow

    def _check(self, op: Check) -> None:
        exception = self.text(op.exception)
        if isinstance(op.exception, type):
            exception += f"({', '.join(self.text(a) for a in op.arguments)})"
        always = op.condition is False
        if not always:
            self.line(f"if {_negation(self.text(op.condition))}:", op)
        self._indent += not always
        self.line(f"raise {exception}", op)
        self._indent -= not always

    def _branch(self, op: Branch) -> None:
        start, condition = len(self.lines), self.text(op.condition)
        self.line(f"if {condition}:", op)
        if self._filled(op.then, op):
            middle = len(self.lines)
            self.line("else:")
            if self._filled(op.other, op):
                self._join_else(middle)
            else:
                self._drop(middle)
            return
        self._drop(start)
        self.line(f"if {_negation(condition)}:", op)
        if not self._filled(op.other, op):
            self._drop(start)

    def _drop(self, start: int) -> None:
        del self.lines[start:], self.places[start:]

    def _join_else(self, at: int) -> None:
        """Join an ``else`` that holds only an ``if`` to ``elif``."""
        indent = "    " * (self._indent + 1)
        first, *rest = self.lines[at + 1 :]
        inner = (indent + " ", indent + "else:", indent + "elif ")
        if first.startswith(f"{indent}if ") and all(text.startswith(inner) for text in rest):
            self.lines[at:] = [f"{indent[4:]}el{first.strip()}", *(text[4:] for text in rest)]
            del self.places[at]

    def _side(self, block: Block, op: Branch) -> None:
        if not self._filled(block, op):
            self.line("    pass")

    def _filled(self, block: Block, op: Branch) -> bool:
        """Write a side of a branch; return whether it is not empty."""
        self._indent += 1
        before = len(self.lines)
        self.body(block)
        self._answer(block, op)
        self._indent -= 1
        return len(self.lines) > before

    def _answer(self, block: Block, op: Branch) -> None:
        """Assign the results of a side to the outputs of a branch."""
        used = [(v, r) for v, r in zip(op.outputs, block.results, strict=True)
                if self._uses[v]]  # fmt: skip
        self._assign([self.name(v) for v, _ in used], [r for _, r in used])
        self.flush()

    def _assign(self, names: list[str], operands: list[Operand]) -> None:
        """Assign in parallel, without assignments of a name to itself."""
        held = [
            (n, self.text(x))
            for n, x in zip(names, operands, strict=True)
            if not (self.sketch and isinstance(x, Missing))
        ]
        pairs = [(n, t) for n, t in held if n != t]
        if not pairs:
            return
        clash = any(n in words(t) for k, (n, _) in enumerate(pairs) for _, t in pairs[k + 1 :])
        if clash:
            left, right = ", ".join(n for n, _ in pairs), ", ".join(t for _, t in pairs)
            self.line(f"{left} = {right}")
        else:
            for n, t in pairs:
                self.line(f"{n} = {t}")

    def _loop(self, op: Loop) -> None:
        carried = op.carried
        self._assign([self.name(p) for p in carried], op.initial)
        for p, v in zip(carried, op.outputs, strict=True):
            self.alias(v, p)
        counted = bool(self._uses[op.exec_count])
        if counted:
            self.line(f"{self.name(op.exec_count)} = 0")
        outer = self._indent
        if op.span is not None:
            self._name_counter(op.body.params[0])
            self._for(op)
        else:
            assert op.test is not None
            self._while(op)
        if counted:
            self.line(f"{self.name(op.exec_count)} += 1")
        before = len(self.lines)
        if self._ends_in_break(op):
            self._break(op)
        else:
            self.body(op.body)
            results = op.body.results[: len(carried)]
            leave = self._leave(op)
            self._assign([self.name(p) for p in carried], results)
            if leave is not None:
                self.line(f"if {leave}:")
                self.line("    break")
            self.flush()
        if len(self.lines) == before and not counted:
            self.line("pass")
        self._indent = outer

    def _for(self, op: Loop) -> None:
        """Begin a loop over a range."""
        assert op.span is not None
        self.line(f"for {self.name(op.body.params[0])} in {self._range(op.span)}:", op)
        self._indent += 1

    def _name_counter(self, counter: Value) -> None:
        if counter not in self._groups and not self._uses[counter] and self.coalesce:
            self._names[counter] = "_"
        elif counter not in self._names and counter.name is None and counter not in self._groups:
            self._names[counter] = self._unique("k")

    def _ends_in_break(self, op: Loop) -> bool:
        """Whether a body ends in a branch on its leave condition, and its results are in place."""
        if not (self.coalesce and op.leaves and op.body.ops):
            return False
        last = op.body.ops[-1]
        if not isinstance(last, Branch) or last.condition is not op.body.results[-1]:
            return False
        needed = set(self._named(all_used(last)))

        def is_placed(p: Value, r: Operand) -> bool:
            group = self._groups.get(p, [p])
            return not needed.intersection(group) if r in self._single else r in group

        pairs = zip(op.carried, op.body.results, strict=False)
        return all(isinstance(r, Value) and is_placed(p, r) for p, r in pairs)

    def _named(self, values: Iterable[Value]) -> Iterator[Value]:
        """Values, with inlined ones replaced by what they are made of."""
        for v in values:
            if v in self._single:
                yield from self._named(values_in(self._single[v].operands()))
            else:
                yield v

    def _break(self, op: Loop) -> None:
        """Write a body whose last branch breaks on one side and continues on the other."""
        last = op.body.ops[-1]
        assert isinstance(last, Branch)
        for k, inner in enumerate(op.body.ops[:-1]):
            self._op(inner, op.body, k)
        self.flush(last)
        late = [(p, r) for p, r in zip(op.carried, op.body.results, strict=False)
                if r in self._single]  # fmt: skip
        self._assign([self.name(p) for p, _ in late], [r for _, r in late])
        self.line(f"if {self.text(last.condition)}:", last)
        self._filled(last.then, last)
        self.line("    break")
        self.body(last.other)
        self._answer(last.other, last)

    def _leave(self, op: Loop) -> str | None:
        """The leave condition, evaluated before the carried values change."""
        if not op.leaves:
            return None
        last = op.body.results[-1]
        text = self.text(last)
        if isinstance(last, Value) and last in self._inlined:
            name = self._unique("leave")
            self.line(f"{name} = {text}")
            return name
        return text

    def _while(self, op: Loop) -> None:
        assert op.test is not None
        before, place = len(self.lines), len(self.places)
        self._indent += 1
        for k, inner in enumerate(op.test.ops):
            self._op(inner, op.test, k)
        condition = self.text(op.test.results[0])
        if len(self.lines) == before:
            self._indent -= 1
            self.line(f"while {condition}:", op)
            self._indent += 1
            return
        head = "    " * (self._indent - 1) + "while True:"
        self.lines.insert(before, head)
        self.places.insert(place, op.location)
        self.line(f"if {_negation(condition)}:")
        self.line("    break")

    def _range(self, span: tuple[Operand, ...]) -> str:
        start, stop, step = span
        parts = [start, stop, step] if step != 1 or isinstance(step, Value) else [start, stop]
        if len(parts) == 2 and not isinstance(start, Value) and start == 0:
            parts = [stop]
        return f"range({', '.join(self.text(p) for p in parts)})"

    def _called(self, op: Call) -> None:
        if id(op.program) not in self.called:
            self.called[id(op.program)] = (op.program, self._unique(op.program.name))
        name = self.called[id(op.program)][1]
        args = ", ".join(self.text(a) for a in op.args)
        outputs = ", ".join(self.name(v) for v in op.outputs)
        comma = "," if len(op.outputs) == 1 else ""
        self.line(f"{outputs}{comma} = {name}({args})" if outputs else f"{name}({args})", op)

    def _like(self, program: Program) -> Writer:
        """A writer for another program with the same settings."""
        if type(self) is Writer:
            return Writer(program, coalesce=self.coalesce, sketch=self.sketch)
        return type(self)(program)

    def follow(self, program: Program) -> Writer:
        """A writer for a called program, whose lines come after this one's."""
        made = self._like(program)
        made.lines, made.places, made.globals = self.lines, self.places, self.globals
        made.called, made._functions = self.called, self._functions
        made._used.update(name for _, name in self.called.values())
        made._used.update(list(self.globals))
        return made


def _negation(text: str) -> str:
    """The negation of a condition; nothing in it binds more weakly than ``not``."""
    return text[4:] if text.startswith("not ") else f"not {text}"


def _reads_memory(op: Op) -> bool:
    return isinstance(op, Load) or any(is_array(v) for o in op.operands() for v in values_in(o))


def show_program(program: Program) -> str:
    """A program as readable lines, with the types of its parameters."""
    writer = Writer(program, coalesce=True, sketch=True)
    params = [f"{writer.name(p)}: {p.type}" for p in program.block.params]
    writer.line(f"tape {program.name}({', '.join(params)}):")
    with writer.indented():
        writer.body(program.block)
        writer.line(f"return {', '.join(writer.text(r) for r in program.block.results)}")
    return "\n".join(writer.lines)

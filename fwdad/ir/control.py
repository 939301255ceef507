"""Branches and loops as Python's statements, whoever writes the operations inside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from fwdad.ir.expressions import range_text
from fwdad.ir.inlining import Inlined, Usage
from fwdad.ir.lines import Lines
from fwdad.ir.names import Names
from fwdad.ir.notation import words
from fwdad.ir.ops import Block, Branch, Loop, Op, Operand, Value, values_in
from fwdad.ir.rewrite import all_used


class Statements(Protocol):
    """The writer of the operations in a block."""

    def body(self, block: Block) -> None:
        """Write the operations of a block."""

    def operation(self, op: Op, block: Block, k: int) -> None:
        """Write one operation, the k-th of a block."""

    def flush(self, upto: Op | None = None) -> None:
        """Write out the expressions that wait to be used, unless ``upto`` uses them."""

    def begin_range(self, op: Loop) -> None:
        """Write the head of a loop over a range, and indent; see :meth:`Control.head`."""

    def text(self, operand: Operand) -> str:
        """An operand as source."""

    def assigned(self, name: str, operand: Operand) -> str:
        """An operand as source that is assigned to a name; the name itself for nothing."""


class Control:
    """Writes branches and loops; values are assigned to what a branch or a loop returns."""

    def __init__(
        self, code: Lines, names: Names, inlined: Inlined, usage: Usage, statements: Statements
    ) -> None:
        self.code = code
        self.names = names
        self.inlined = inlined
        self.usage = usage
        self.statements = statements

    # -- branches

    def branch(self, op: Branch) -> None:
        """Write a branch, without sides that are empty."""
        code, start = self.code, len(self.code.lines)
        condition = self.statements.text(op.condition)
        code.line(f"if {condition}:", op)
        if self._filled(op.then, op):
            middle = len(code.lines)
            code.line("else:")
            if self._filled(op.other, op):
                self._join_else(middle)
            else:
                code.drop(middle)
            return
        code.drop(start)
        code.line(f"if {negation(condition)}:", op)
        if not self._filled(op.other, op):
            code.drop(start)

    def _join_else(self, at: int) -> None:
        """Join an ``else`` that holds only an ``if`` to ``elif``."""
        code, indent = self.code, "    " * (self.code.indent + 1)
        first, *rest = code.lines[at + 1 :]
        inner = (indent + " ", indent + "else:", indent + "elif ")
        if first.startswith(f"{indent}if ") and all(text.startswith(inner) for text in rest):
            code.lines[at:] = [f"{indent[4:]}el{first.strip()}", *(text[4:] for text in rest)]
            del code.places[at]

    def side(self, block: Block, op: Branch) -> None:
        """Write one side of a branch, which may be empty."""
        if not self._filled(block, op):
            self.code.line("    pass")

    def _filled(self, block: Block, op: Branch) -> bool:
        """Write a side of a branch; return whether it is not empty."""
        before = len(self.code.lines)
        with self.code.indented():
            self.statements.body(block)
            self._assign_results(block, op)
        return len(self.code.lines) > before

    def _assign_results(self, block: Block, op: Branch) -> None:
        """Assign the results of a side to the outputs of a branch."""
        used = [(v, r) for v, r in zip(op.outputs, block.results, strict=True)
                if self.usage.count[v]]  # fmt: skip
        self._assign([v for v, _ in used], [r for _, r in used])
        self.statements.flush()

    def assignments(
        self, values: Sequence[Value], operands: Sequence[Operand]
    ) -> list[tuple[list[int], str]]:
        """The lines that assign in parallel, each with the positions of the values it assigns.

        There is none for what has its name already.
        """
        names = [self.names.name(v) for v in values]
        texts = [self.statements.assigned(n, x) for n, x in zip(names, operands, strict=True)]
        left = [k for k, (n, t) in enumerate(zip(names, texts, strict=True)) if n != t]
        if any(names[k] in words(texts[j]) for k in left for j in left if j > k):
            both = (", ".join(each[k] for k in left) for each in (names, texts))
            return [(left, " = ".join(both))]
        return [([k], f"{names[k]} = {texts[k]}") for k in left]

    def _assign(self, values: Sequence[Value], operands: Sequence[Operand]) -> None:
        """Assign in parallel, without assignments of a name to itself."""
        for _, line in self.assignments(values, operands):
            self.code.line(line)

    # -- loops

    def loop(self, op: Loop) -> None:
        """Write a loop."""
        code, carried = self.code, op.carried
        self.enter(op)
        counted = bool(self.usage.count[op.exec_count])
        if counted:
            code.line(f"{self.names.name(op.exec_count)} = 0")
        outer = code.indent
        if op.span is not None:
            self.name_counter(op.body.params[0])
            self.statements.begin_range(op)
        else:
            self._begin_while(op)
        if counted:
            code.line(f"{self.names.name(op.exec_count)} += 1")
        before = len(code.lines)
        if self._ends_in_break(op):
            self._break(op)
        else:
            self.statements.body(op.body)
            results = op.body.results[: len(carried)]
            leave = self._leave(op)
            self._assign(carried, results)
            if leave is not None:
                code.line(f"if {leave}:")
                code.line("    break")
            self.statements.flush()
        if len(code.lines) == before and not counted:
            code.line("pass")
        code.indent = outer

    def enter(self, op: Loop) -> None:
        """Assign what a loop begins with; what it returns has the names of what it carries."""
        self._assign(op.carried, op.initial)
        for p, v in zip(op.carried, op.outputs, strict=True):
            self.names.alias(v, p)

    def head(self, op: Loop) -> None:
        """Begin a loop over a range."""
        assert op.span is not None
        counter = self.names.name(op.body.params[0])
        self.code.line(f"for {counter} in {range_text(op.span, self.statements.text)}:", op)
        self.code.indent += 1

    def name_counter(self, counter: Value) -> None:
        """Give a loop's counter a name: ``_`` if nothing uses it."""
        names, usage = self.names, self.usage
        if counter in usage.groups:
            return
        if not usage.count[counter] and usage.coalesce:
            names.give(counter, "_")
        elif counter not in names.of and counter.name is None:
            names.give(counter, names.unique("k"))

    def _ends_in_break(self, op: Loop) -> bool:
        """Whether a body ends in a branch on its leave condition, and its results are in place."""
        usage = self.usage
        if not (usage.coalesce and op.leaves and op.body.ops):
            return False
        last = op.body.ops[-1]
        if not isinstance(last, Branch) or last.condition is not op.body.results[-1]:
            return False
        needed = set(self._named(all_used(last)))

        def is_placed(p: Value, r: Operand) -> bool:
            group = usage.groups.get(p, [p])
            return not needed.intersection(group) if r in usage.single else r in group

        pairs = zip(op.carried, op.body.results, strict=False)
        return all(isinstance(r, Value) and is_placed(p, r) for p, r in pairs)

    def _named(self, values: Iterable[Value]) -> Iterator[Value]:
        """Values, with inlined ones replaced by what they are made of."""
        for v in values:
            if v in self.usage.single:
                yield from self._named(values_in(self.usage.single[v].operands()))
            else:
                yield v

    def _break(self, op: Loop) -> None:
        """Write a body whose last branch breaks on one side and continues on the other."""
        last = op.body.ops[-1]
        assert isinstance(last, Branch)
        for k, inner in enumerate(op.body.ops[:-1]):
            self.statements.operation(inner, op.body, k)
        self.statements.flush(last)
        late = [(p, r) for p, r in zip(op.carried, op.body.results, strict=False)
                if r in self.usage.single]  # fmt: skip
        self._assign([p for p, _ in late], [r for _, r in late])
        self.code.line(f"if {self.statements.text(last.condition)}:", last)
        self._filled(last.then, last)
        self.code.line("    break")
        self.statements.body(last.other)
        self._assign_results(last.other, last)

    def _leave(self, op: Loop) -> str | None:
        """The leave condition, evaluated before the carried values change."""
        if not op.leaves:
            return None
        last = op.body.results[-1]
        text = self.statements.text(last)
        if isinstance(last, Value) and last in self.inlined.held:
            name = self.names.unique("leave")
            self.code.line(f"{name} = {text}")
            return name
        return text

    def _begin_while(self, op: Loop) -> None:
        assert op.test is not None
        code, before = self.code, len(self.code.lines)
        code.indent += 1
        for k, inner in enumerate(op.test.ops):
            self.statements.operation(inner, op.test, k)
        condition = self.statements.text(op.test.results[0])
        if len(code.lines) == before:
            code.indent -= 1
            code.line(f"while {condition}:", op)
            code.indent += 1
            return
        code.insert(before, ["    " * (code.indent - 1) + "while True:"], op.location)
        code.line(f"if {negation(condition)}:")
        code.line("    break")


def negation(text: str) -> str:
    """The negation of a condition; nothing in it binds more weakly than ``not``."""
    return text[4:] if text.startswith("not ") else f"not {text}"

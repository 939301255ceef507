"""Simplification of carried values: constants, duplicates, and flags.

A flag that is False before a loop and True after every iteration says whether the loop ran; the
leave condition is False wherever an iteration begins.
"""

from __future__ import annotations

import operator

from fwdad.ir.analysis.def_use import count_uses
from fwdad.ir.ops import (
    Apply,
    Loop,
    Missing,
    Op,
    Operand,
    Program,
    Value,
    may_be,
    type_of_operand,
)
from fwdad.ir.rewrite import (
    Mapping,
    definitions,
    give_name,
    key_of,
    replace_ops,
    substitute,
)
from fwdad.ir.types import BOOL, INT


def simplify_carried(program: Program) -> bool:
    """Simplify what the loops of a program carry; return whether anything changed."""
    simplifier = _Simplifier(program)
    replace_ops(program.block, simplifier.instead)
    substitute(program.block, simplifier.mapping)
    give_name({a: b for a, b in simplifier.mapping.items() if a not in simplifier.params})
    return bool(simplifier.mapping)


def surely_runs(op: Loop) -> bool:
    """Whether a loop's body runs at least once, whatever the values."""
    if op.test is not None:
        return op.test.results[0] is True
    constant = op.span is not None and all(type(x) is int for x in op.span) and op.span[2] != 0
    return constant and len(range(*op.span)) > 0  # type: ignore[misc]


def _test_holds(op: Loop) -> bool:
    """Whether a loop has a test that is always true."""
    return op.test is not None and surely_runs(op)


def runs(op: Loop) -> tuple[Apply, Value]:
    """An operation that returns whether a loop's body runs at all, and its result.

    Over a range of Python integers it compares the bounds, and may precede the loop; otherwise it
    reads ``exec_count``, and must follow it.
    """
    value = Value(BOOL)
    if op.test is None and bounded(op):
        assert op.span is not None
        start, stop, step = op.span
        function = operator.lt if step > 0 else operator.gt
        call = Apply(function, (start, stop), outputs=(value,))
    else:
        call = Apply(operator.gt, (op.exec_count, 0), outputs=(value,))
    call.location = op.location
    return call, value


def bounded(op: Loop) -> bool:
    """Whether a loop is over a range of Python integers with a known step."""
    if op.span is None or type(op.span[2]) is not int or op.span[2] == 0:
        return False
    return all(type_of_operand(x) == INT for x in op.span)


class _Simplifier:
    def __init__(self, program: Program) -> None:
        self.mapping: Mapping = {}
        self.params: set[Value] = set()
        self._definitions = definitions(program)
        self._uses = count_uses(program.block)

    def instead(self, op: Op) -> list[Op] | None:
        """A loop, simplified, and what must follow it; None for other operations."""
        return [op, *self._loop(op)] if isinstance(op, Loop) else None

    def _loop(self, op: Loop) -> list[Op]:
        """Simplify one loop; return the operations that must follow it."""
        late: list[Op] = []
        flags = self._leave_flags(op)
        seen: dict[object, int] = {}
        executed: Value | None = None
        for k, (p, output) in enumerate(zip(op.carried, op.outputs, strict=True)):
            initial, result = op.initial[k], op.body.results[k]
            key = (p.type, key_of(initial), key_of(result))
            if _is_constant(p, initial, result):
                self._replace(p, output, initial)
            elif key in seen:
                j = seen[key]
                self._replace(p, output, op.carried[j], op.outputs[j])
            else:
                seen[key] = k
                flag = initial is False and self._is_flag(result, flags)
                if flag:
                    self._param(p, operand=False)
                last = op.body.results[-1] if op.leaves else None
                if flag and self._is_flag(result, {last}) and _test_holds(op):
                    self._put(output, operand=True)
                elif isinstance(result, (Value, Missing)) or not may_be(output, result):
                    continue
                elif surely_runs(op):
                    self._put(output, result)
                elif p.type == BOOL and result is True and self._uses[output]:
                    if executed is None:
                        test, executed = runs(op)
                        late.append(test)
                    late.extend(self._flag(output, initial, executed))
        return late

    def _flag(self, output: Value, initial: Operand, executed: Value) -> list[Op]:
        if initial is False or isinstance(initial, Missing):
            self._put(output, executed)
            return []
        value = Value(BOOL, output.name)
        self._put(output, value)
        return [Apply(operator.or_, (initial, executed), outputs=(value,))]

    def _replace(self, p: Value, output: Value, operand: Operand, after: Operand = None) -> None:
        self._param(p, operand)
        self._put(output, operand if after is None else after)

    def _param(self, p: Value, operand: Operand) -> None:
        if self._uses[p]:
            self.mapping[p] = operand
            self.params.add(p)

    def _put(self, output: Value, operand: Operand) -> None:
        if self._uses[output]:
            self.mapping[output] = operand

    def _leave_flags(self, op: Loop) -> set[Value]:
        """The values that are False wherever an iteration begins, if False before the loop."""
        values: set[Value] = set()
        work = [op.body.results[-1]] if op.leaves else []
        while work:
            v = work.pop()
            if not isinstance(v, Value):
                continue
            values.add(v)
            definition = self._definitions.get(v)
            if (
                isinstance(definition, Apply)
                and definition.function is operator.or_
                and v.type == BOOL
            ):
                work.extend(definition.args)
        return values

    def _is_flag(self, result: Operand, flags: set[Operand]) -> bool:
        """Whether a value is one of some flags, or ``bool`` of one."""
        if not isinstance(result, Value) or result in flags:
            return isinstance(result, Value)
        definition = self._definitions.get(result)
        return (
            isinstance(definition, Apply)
            and definition.function is bool
            and definition.args[0] in flags
        )


def _is_constant(p: Value, initial: Operand, result: Operand) -> bool:
    """Whether a carried value is the same before and after every iteration."""
    if isinstance(initial, Missing):
        return False
    return (result is p or key_of(result) == key_of(initial)) and may_be(p, initial)

"""Runs a program on nodes in place of numbers: moves move them, stores store them.

Values that do not depend on the inputs' values are computed, too: lengths, counters, indices. With
known inputs all are, and the pattern is that of this run. Else both sides of a branch are taken,
and a loop without a known count is run once, in a cycle of the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.errors import Location
from fwdad.ir.analysis.alias import aliased_arguments, memory_of
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Effect,
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
    map_values,
    values_in,
    walk,
)
from fwdad.ops import Memory, record_of
from fwdad.rules.core.registry import find_rule, function_name
from fwdad.transforms.forward.rule_table import ruled_function
from fwdad.transforms.sparsity import products  # noqa: F401  (it enters its structures)
from fwdad.transforms.sparsity.cells import (
    UNKNOWN,
    Cell,
    UnstructuredError,
    as_cell,
    is_float,
    root,
    shape_of,
    shape_of_result,
)
from fwdad.transforms.sparsity.graph import Graph, sorted_once
from fwdad.transforms.sparsity.structures import LINEAR, nodes_of_call
from fwdad.transforms.sparsity.structures import Call as CallOf

_MOST_STEPS = 2_000_000
"""Operations in loops that are unrolled; loops that begin later run once."""
_DEEPEST = 200


class Interpreter:
    """Runs programs on cells.

    ``dense`` notes where something was taken to depend on all that it is given, and what that was.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.dense: list[tuple[Location | None, str]] = []
        self.steps = 0
        self._spoilt: dict[int, Any] = {}
        self._depth = 0

    def spoil(self, value: Any) -> None:
        """Note that an array's contents are no longer known."""
        if value is not UNKNOWN:
            owner = root(value)
            self._spoilt[id(owner)] = owner

    def is_spoilt(self, value: Any) -> bool:
        """Whether an array's contents are no longer known."""
        return bool(self._spoilt) and id(root(value)) in self._spoilt

    def run(self, program: Program, given: Sequence[Cell]) -> list[Cell]:
        """The cells of a program's results for those of its parameters."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise UnstructuredError(f"{program.name} calls itself without a known end")
        try:
            frame = _Frame(self, program)
            frame.cells.update(zip(program.block.params, given, strict=True))
            frame.block(program.block)
            return [frame.of(r) for r in program.block.results]
        finally:
            self._depth -= 1


class _Frame:
    """One run of a program."""

    def __init__(self, outer: Interpreter, program: Program) -> None:
        self.outer = outer
        self.graph = outer.graph
        self.cells: dict[Value, Cell] = {}
        self._roots = memory_of(program)
        self._written = self._written_in(program.block)

    # -- operands

    def cell(self, v: Value) -> Cell:
        """The cell of a value, with what is known of it now."""
        held = self.cells[v]
        if isinstance(held.value, np.ndarray) and self.outer.is_spoilt(held.value):
            held.value = UNKNOWN
        return held

    def of(self, operand: Operand) -> Cell:
        """The cell of an operand."""
        if type(operand) is Value:
            return self.cell(operand)
        if isinstance(operand, Missing):
            return Cell(0)
        nodes = np.zeros(operand.shape, np.int64) if isinstance(operand, np.ndarray) else 0
        return Cell(nodes, operand)

    def known(self, operand: Operand) -> Any:
        """Operands as they are; UNKNOWN if one is not known."""
        if type(operand) is Value:
            return self.cell(operand).value
        if any(self.cell(v).value is UNKNOWN for v in values_in(operand)):
            return UNKNOWN
        return map_values(lambda v: self.cells[v].value, operand)

    # -- operations

    def block(self, block: Block) -> None:
        """Run the operations of a block."""
        for op in block.ops:
            self.outer.steps += 1
            self._run(op)

    def _run(self, op: Op) -> None:
        if isinstance(op, Apply):
            self._apply(op)
        elif isinstance(op, Load):
            self._load(op)
        elif isinstance(op, (Store, Update)):
            self._store(op)
        elif isinstance(op, Branch):
            self._branch(op)
        elif isinstance(op, Loop):
            self._loop(op)
        elif isinstance(op, Call):
            given = [self.of(a) for a in op.args]
            found = self.outer.run(op.program, given)
            self.cells.update(zip(op.outputs, found, strict=True))
        elif not isinstance(op, Check):
            raise UnstructuredError(f"it has {type(op).__name__.lower()}s")

    def _apply(self, op: Apply) -> None:
        if isinstance(op, Effect):
            self.cells.update((v, as_cell(v, 0)) for v in op.outputs)
            return
        if op.mutated:
            self._mutate(op)
            return
        values = self._computed(op)
        several = len(op.outputs) != 1
        for k, v in enumerate(op.outputs):
            value = values[k] if several and values is not UNKNOWN else values
            if not is_float(v):
                self.cells[v] = as_cell(v, 0, value)
            elif not (several or is_array(v) or self.graph.pairs or self._arrays_in(op)):
                self.cells[v] = Cell(self._of_numbers(op), value)
            else:
                nodes = self._nodes(op, v, k, shape_of_result(op, k, value, self.cell))
                if value is not UNKNOWN and not record_of(op.function).may_be_view:
                    nodes = _laid_out_as(value, nodes)
                self.cells[v] = as_cell(v, nodes, value)

    def _nodes(self, op: Apply, v: Value, k: int, shape: tuple[int, ...]) -> Any:
        """The nodes of a result, in memory that is a view if the program's is."""
        record = record_of(op.function)
        nodes, told = nodes_of_call(CallOf(self.graph, op, self.cell, shape), k)
        if record.may_be_view and is_array(v):
            exact = told and record.memory is not Memory.MAYBE
            if not (exact or any(np.may_share_memory(nodes, x) for x in self._memory(op))):
                self._alone(aliased_arguments(op))
        if _is_constant(op):
            return np.zeros_like(nodes)
        if not told and np.any(nodes):
            self.outer.dense.append((op.location, function_name(op.function)))
        return nodes

    def _memory(self, op: Apply) -> list[Any]:
        """The nodes of the arrays that a call is given."""
        return [self.cells[v].nodes for v in values_in(op.operands()) if is_array(v)]

    def _of_numbers(self, op: Apply) -> int:
        """A number depends on what all those that it is made of depend on."""
        node = 0
        for v in values_in(op.operands_read()) if not _is_constant(op) else ():
            node = self.graph.either(node, self.cells[v].nodes)
        return node

    @staticmethod
    def _arrays_in(op: Apply) -> bool:
        return any(map(is_array, values_in(op.operands_read())))

    def _computed(self, op: Apply) -> Any:
        """What a call returns, if all that it reads is known."""
        unread = record_of(op.function).shape_only
        args = []
        for k, a in enumerate(op.args):
            value = self.known(a)
            if value is UNKNOWN and k in unread and type(a) is Value:
                value = np.zeros(np.shape(self.cell(a).nodes), a.type.dtype)
            args.append(value)
        kwargs = {name: self.known(a) for name, a in op.kwargs.items()}
        if any(x is UNKNOWN for x in (*args, *kwargs.values())):
            return UNKNOWN
        with np.errstate(all="ignore"):
            return op.function(*args, **kwargs)

    def _load(self, op: Load) -> None:
        (v,) = op.outputs
        held, index = self.cell(op.array), self.known(op.index)
        if index is UNKNOWN:
            nodes = self._somewhere(held.nodes, op.index)
            self.cells[v] = as_cell(v, np.broadcast_to(nodes, shape_of(v)).copy())
            return
        value = UNKNOWN if held.value is UNKNOWN else held.value[index]
        nodes = held.nodes[index]
        self.cells[v] = Cell(int(nodes) if not is_array(v) else nodes, value)

    def _somewhere(self, nodes: Any, index: Operand) -> Any:
        """The union of all places that an index may mean."""
        parts, rest = [], nodes.ndim
        if isinstance(index, tuple) and Ellipsis not in [p for p in index if type(p) is not Value]:
            for part in index:
                if part is None or rest == 0:
                    break
                known = self.known(part)
                parts.append(known if isinstance(known, (int, np.integer)) else slice(None))
                rest -= 1
        found = nodes[tuple(parts)]
        return self.graph.over(np.asarray(found), tuple(range(np.ndim(found)))).reshape(())

    def _store(self, op: Store | Update) -> None:
        target, given = self.cell(op.array), self.of(op.value)
        nodes: Any = given.nodes if is_float(op.array) else 0
        index = self.known(op.index)
        if index is UNKNOWN:
            self._store_somewhere(op, target.nodes, np.asarray(nodes))
        elif isinstance(op, Update):
            old = Value(op.array.type)
            self.cells[old] = Cell(np.asarray(target.nodes[index]))
            call = Apply(op.function, (old, op.value), outputs=(old,), location=op.location)
            shape = np.broadcast_shapes(self.cells[old].nodes.shape, np.shape(nodes))
            asked = CallOf(self.graph, call, self.cell, shape)
            target.nodes[index] = nodes_of_call(asked)[0]
        elif self._is_part(op.array):
            before = np.asarray(target.nodes[index])
            shape = np.broadcast_shapes(before.shape, np.shape(nodes))
            target.nodes[index] = self.graph.union([before, np.asarray(nodes)], shape)
        else:
            target.nodes[index] = nodes
        if target.value is UNKNOWN:
            return
        if index is UNKNOWN or given.value is UNKNOWN:
            self.outer.spoil(target.value)
            return
        with np.errstate(all="ignore"):
            if isinstance(op, Update):
                target.value[index] = op.function(target.value[index], given.value)
            else:
                target.value[index] = given.value

    def _is_part(self, v: Value) -> bool:
        """Whether an array of reals may be a part of complex numbers."""
        owners = self._roots.get(v, {v})
        return v.type.dtype.kind == "f" and any(w.type.dtype.kind == "c" for w in owners)

    def _store_somewhere(self, op: Store | Update, held: Any, nodes: Any) -> None:
        """A store, or an update, at any place."""
        linear = not isinstance(op, Update) or record_of(ruled_function(op)).algebra in LINEAR
        given = [np.ravel(nodes)] if linear else [np.ravel(nodes), np.ravel(held)]
        anything = self.graph.over(np.concatenate(given), (0,), new=not linear)
        if not linear:
            self.graph.join(anything, anything, anything)
        held[...] = self.graph.union([held, anything[0]], held.shape)

    def _mutate(self, op: Apply) -> None:
        """A function that writes into arguments."""
        written = [v for k in op.mutated for v in values_in(op.args[k])]
        values = self._computed(op)
        owner = getattr(op.function, "__self__", None)
        adds = isinstance(owner, np.ufunc) and getattr(op.function, "__name__", "") == "at"
        index: Any = self.known(op.args[1]) if adds else UNKNOWN
        if adds and index is not UNKNOWN:
            nodes = self.cell(written[0]).nodes
            places = np.arange(nodes.size).reshape(nodes.shape)[index]
            value = np.asarray(self.of(op.args[2]).nodes) if len(op.args) > 2 else np.zeros((), int)
            flat = np.array(nodes).ravel()
            self.graph.scattered(places, np.broadcast_to(value, np.shape(places)), flat)
            if owner not in (np.add, np.subtract):
                touched = sorted_once(places)
                self.graph.join(flat[touched], flat[touched], flat[touched])
            nodes[...] = flat.reshape(nodes.shape)
        elif any(self.cell(v).active for o in op.operands() for v in values_in(o)):
            given = [np.ravel(self.cell(v).nodes) for o in op.operands() for v in values_in(o)]
            made = self.graph.over(np.concatenate(given), (0,), new=self.graph.pairs)
            self.graph.join(made, made, made)
            for v in written if any(map(is_float, written)) else ():
                self.cell(v).nodes[...] = made[0]
            self.outer.dense.append((op.location, function_name(op.function)))
        if values is UNKNOWN:
            for v in written:
                self.outer.spoil(self.cell(v).value)
        for k, v in enumerate(op.outputs):
            value = values if values is UNKNOWN or len(op.outputs) == 1 else values[k]
            if is_float(v) and any(self.cell(w).active for w in written):
                raise UnstructuredError(f"{function_name(op.function)} writes and returns")
            self.cells[v] = as_cell(v, 0 if not is_array(v) else np.zeros(shape_of(v, value), int),
                                    value)  # fmt: skip

    # -- memory that control flow writes

    def _written_in(self, *blocks: Block) -> set[Value]:
        """The parameters and allocations that are written in some blocks."""
        written = {v for block in blocks for op in walk(block) for v in op.writes()}
        return {owner for v in written for owner in self._roots.get(v, {v})}

    def _buffers(self, owners: set[Value]) -> list[Cell]:
        """The cells of those of some owners of memory that exist."""
        return [self.cells[v] for v in owners if v in self.cells and is_array(v)]

    def _alone(self, operand: Operand) -> None:
        """Raise if an array that two paths may mean is memory that is written."""
        for v in filter(is_array, values_in(operand)):
            if self._roots.get(v, {v}) & self._written:
                raise UnstructuredError("an array that is written may be one of several")

    # -- control

    def _branch(self, op: Branch) -> None:
        condition = self.known(op.condition)
        if condition is not UNKNOWN:
            side = op.then if condition else op.other
            self.block(side)
            found = [self.of(r) for r in side.results]
            self.cells.update(zip(op.outputs, found, strict=True))
            return
        buffers = self._buffers(self._written_in(op.then, op.other))
        for held in buffers:
            self.outer.spoil(held.value)
        before = [held.nodes.copy() for held in buffers]
        first = self._side(op.then)
        after = [held.nodes.copy() for held in buffers]
        for held, nodes in zip(buffers, before, strict=True):
            held.nodes[...] = nodes
        second = self._side(op.other)
        for held, nodes in zip(buffers, after, strict=True):
            held.nodes[...] = self.graph.union([held.nodes, nodes], held.nodes.shape)
        sides = zip(op.outputs, first, second, op.then.results, op.other.results, strict=True)
        for v, a, b, x, y in sides:
            if a.nodes is b.nodes and is_array(v):
                self.cells[v] = a
                continue
            for operand in (x, y):
                self._alone(operand)
            shape = np.broadcast_shapes(np.shape(a.nodes), np.shape(b.nodes))
            if is_array(v) and np.shape(a.nodes) != np.shape(b.nodes):
                raise UnstructuredError("an array has another shape on another path")
            nodes = self.graph.union([np.asarray(a.nodes), np.asarray(b.nodes)], shape)
            same = a.value is not UNKNOWN and not is_array(v) and a.value is b.value
            self.cells[v] = as_cell(v, nodes, a.value if same else UNKNOWN)

    def _side(self, block: Block) -> list[Cell]:
        """The results of one way of a branch, which might not be taken."""
        try:
            self.block(block)
        except (IndexError, ValueError) as error:
            raise UnstructuredError(f"one way of a branch would raise {error!r}") from error
        return [self.of(r) for r in block.results]

    def _loop(self, op: Loop) -> None:
        carried = [self.of(x) for x in op.initial]
        span = None if op.span is None else self.known(op.span)
        count = 0
        if span is UNKNOWN or self.outer.steps > _MOST_STEPS:
            self._cycle(op, carried)
            return
        counters = iter(range(*span)) if span is not None else None
        while True:
            self.cells.update(zip(op.carried, carried, strict=True))
            if counters is not None:
                k = next(counters, None)
                if k is None:
                    break
                self.cells[op.body.params[0]] = Cell(0, k)
            elif op.test is not None:
                self.block(op.test)
                goes_on = self.known(op.test.results[0])
                if goes_on is UNKNOWN:
                    self._cycle(op, carried)
                    return
                if not goes_on:
                    break
            if self.outer.steps > _MOST_STEPS:
                self._cycle(op, carried)
                return
            self.block(op.body)
            results = op.body.results[: len(carried)]
            carried = [self.of(r) for r in results]
            count += 1
            leaves = self.known(op.body.results[-1]) if op.leaves else False
            if leaves is UNKNOWN:
                self._cycle(op, carried)
                return
            if leaves:
                break
        self.cells.update(zip(op.outputs, carried, strict=True))
        self.cells[op.exec_count] = Cell(0, count)

    def _cycle(self, op: Loop, carried: list[Cell]) -> None:
        """Run a loop's body once, for any number of iterations, from a state on."""
        blocks = [op.body] if op.test is None else [op.test, op.body]
        buffers = self._buffers(self._written_in(*blocks))
        for operand in (*op.initial, *op.body.results[: len(carried)]):
            self._alone(operand)
        states = []
        for held in buffers:
            self.outer.spoil(held.value)
            made = self._any_time(held.nodes)
            held.nodes[...] = made
            states.append(made)
        cells = []
        for v, held in zip(op.carried, carried, strict=True):
            cells.append(as_cell(v, self._any_time(np.asarray(held.nodes))))
        self.cells.update(zip(op.carried, cells, strict=True))
        if op.span is not None:
            self.cells[op.body.params[0]] = Cell(0)
        for block in blocks:
            self.block(block)
        for v, held, result in zip(op.carried, cells, op.body.results, strict=False):
            found = self.of(result).nodes
            if np.shape(found) != np.shape(held.nodes):
                raise UnstructuredError("an array has another shape in each iteration")
            if is_float(v):
                self._return(np.asarray(held.nodes), np.asarray(found))
        for held, made in zip(buffers, states, strict=True):
            self._return(made, held.nodes)
            held.nodes[...] = made
        self.cells.update(zip(op.outputs, cells, strict=True))
        self.cells[op.exec_count] = Cell(0)

    def _any_time(self, nodes: Any) -> Any:
        """New nodes for what elements depend on before any iteration."""
        made = self.graph.new(nodes.size).reshape(nodes.shape)
        held = nodes > 0
        self.graph.depend(made[held], nodes[held])
        return made

    def _return(self, made: Any, nodes: Any) -> None:
        """Let the elements before an iteration depend on those after one."""
        held = nodes > 0
        self.graph.depend_on_any(made[held], nodes[held])


def _is_constant(op: Apply) -> bool:
    """Whether a call's result has no derivative."""
    if record_of(op.function).constant:
        return True
    rule = find_rule(ruled_function(op))
    return rule is not None and rule.kind == "constant"


def _laid_out_as(value: Any, nodes: Any) -> Any:
    """Nodes in memory as an array is."""
    if np.ndim(value) < 2 or not isinstance(nodes, np.ndarray) or nodes.shape != value.shape:
        return nodes
    made = np.empty_like(value, np.int64)
    made[...] = nodes
    return made

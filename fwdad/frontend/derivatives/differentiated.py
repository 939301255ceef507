"""A function's value and lanes at a point, written into the program that is traced."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from fwdad.eager.arguments import check_numbers
from fwdad.eager.forward import numbers
from fwdad.errors import (
    Location,
    NoOutputError,
    UnsupportedTypeError,
    UntraceableError,
    returned_nothing,
    type_in_words,
    with_article,
)
from fwdad.evaluation.arguments import check_chunk, positions_of
from fwdad.frontend.appended import check_items
from fwdad.frontend.calls.recursion import calls_unfinished
from fwdad.frontend.derivatives.assumed_contents import AssumedContents
from fwdad.frontend.derivatives.columns import push_in_chunks, width_of_chunks
from fwdad.frontend.derivatives.copied_arguments import check_orders
from fwdad.frontend.derivatives.kept_memory import read_before_written
from fwdad.frontend.nesting import refuse_deep
from fwdad.frontend.syntax.raising import AlwaysRaises
from fwdad.frontend.syntax.symbols import Optional
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import Tree, flatten, made_in
from fwdad.ir.analysis.alias import memory, memory_of, written_parameters
from fwdad.ir.ops import (
    Apply,
    Block,
    Effect,
    Missing,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
    walk,
)
from fwdad.ir.primitives.identity import identity
from fwdad.ir.rewrite import all_inside, all_used, give_types, written_outside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number
from fwdad.rules.core.registry import function_name
from fwdad.rules.core.reverse_rules import RRULES
from fwdad.tangents.back_references import READ_AS_CONSTANT
from fwdad.tangents.composite import why_no_constant
from fwdad.transforms.forward import push_block
from fwdad.transforms.passes import inline, optimise, split_arrays, unroll_short
from fwdad.transforms.passes.dead import dead, drop_unread
from fwdad.transforms.reverse.pull import pull_block


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of a symbol, an array or a number."""
    if type(x) is Symbol:
        return x.dtype
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else np.dtype(type(x))


_FEW = 8  # directions that cost little more than one
_RATIO = 4


class RowsNeededError(UntraceableError):
    """The columns of a Jacobian may differ from its rows, which were asked for."""


class RowsPayError(RowsNeededError):
    """The rows of a Jacobian are so few that they cost less than its columns."""


class Differentiated:
    """A function's value and derivatives at a point, written in line.

    ``outputs`` is what counts as the value, as in :func:`fwdad.jvp`; with ``has_aux`` it is ``(y,
    aux)``, of which y is differentiated.
    """

    def __init__(
        self,
        tracer: Tracer,
        f: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        argnums: Any,
        outputs: str = "returned",
        *,
        has_aux: bool = False,
    ) -> None:
        self.tracer = tracer
        self.has_aux = has_aux
        self.f = f
        self.args = args
        self.kwargs = kwargs
        self.argnums = positions_of(argnums, len(args))
        self.single = not isinstance(argnums, (tuple, list))
        self.outputs = outputs
        self.leaves: list[Any] = []
        self.trees: list[tuple[Tree, slice]] = []
        position = tracer.position
        place = position.location() if position.depth else None
        for k in self.argnums:
            found, tree = flatten(args[k], records=True, once=True, place=place)
            for x in tree.constants:
                reason = why_no_constant(x)
                if reason is not None:
                    raise UnsupportedTypeError(f"argument {k} is, or holds, {reason}")
            if any(tracer.recorder.refers_back(x) for x in tree.constants):
                message = f"argument {k}: {READ_AS_CONSTANT}"
                raise UnsupportedTypeError(message)
            self.trees.append((tree, slice(len(self.leaves), len(self.leaves) + len(found))))
            self.leaves.extend(found)
        if not any(dtype_of(x).kind in "fc" for x in self.leaves):
            raise UnsupportedTypeError("; ".join(_no_tangent(k, args[k]) for k in self.argnums))

    def check_numbers(self) -> None:
        """Raise for ints among the floats of a list that is differentiated."""
        for k in self.argnums:
            check_numbers(k, self.args[k])

    def sizes(self) -> list[int]:
        """The number of elements of each leaf, which must be known."""
        recorder = self.tracer.recorder
        found = []
        for x in self.leaves:
            symbol = recorder.as_symbol(x) if not isinstance(x, (int, float, complex)) else None
            if symbol is None or not symbol.is_array:
                found.append(1)
                continue
            shape = symbol.type.shape
            found.append(
                math.prod(recorder.lengths.known_length(symbol, a) for a in range(len(shape)))
            )
        return found

    def shape(self, k: int) -> tuple[int, ...]:
        """The shape of a leaf, which must be known."""
        x = self.leaves[k]
        if type(x) is not Symbol and not isinstance(x, np.ndarray):
            return ()
        symbol = self.tracer.recorder.as_symbol(x)
        return tuple(
            self.tracer.recorder.lengths.known_length(symbol, axis)
            for axis in range(symbol.type.ndim)
        )

    def run(
        self,
        n: int,
        tangents: list[Any],
        chunk: Any = None,
        *,
        rows: bool = False,
        cheaper: bool = False,
    ) -> tuple[list[Any], list[Any], Tree]:
        """Values and lanes of the leaves of f's value, and its structure.

        ``rows`` means that reverse mode was asked for; raises if columns may not give its result,
        and if the ``cheaper`` way is asked for, and that is rows.
        """
        if type(chunk) is not Symbol:
            check_chunk(chunk)
        recorder = self.tracer.recorder
        threads, width = recorder.threads, n
        block, own, tree = self._to_push()
        if rows:
            check_columns(block)
        if cheaper and self._rows_pay(block, n, self.differentiated(tree, len(block.results))):
            raise RowsPayError(f"{n} columns cost more than the rows", None)
        if threads > 1:
            width = width_of_chunks(block, n, threads, self.tracer.values.force(chunk))
        apart = not (written_outside(block) or any(isinstance(op, Effect) for op in walk(block)))
        if width < n and apart and not any(dtype_of(x).kind == "c" for x in self.leaves):
            made = push_in_chunks(recorder, block, own, tangents, n, width)
            if made is not None:
                return *made, tree
        given = list(zip(own, tangents, strict=True))
        primals, lanes = push_block(recorder, block, n, given, stays=self.stays)
        return primals, lanes, tree

    def _rows_pay(self, block: Block, columns: int, chosen: set[int]) -> bool:
        """Whether reverse passes through a block cost less than so many directions."""
        if any(isinstance(op, Effect) for op in walk(block)) or written_outside(block):
            return False
        if any(dtype_of(x).kind == "c" for x in self.leaves):
            return False
        rows = 0
        for y in (block.results[k] for k in chosen):
            if not isinstance(y, Value) or y.type.dtype.kind not in "fc":
                continue
            t = self.tracer.recorder.lengths.resolved(y.type)
            lengths = [d for d in t.shape if isinstance(d, int)]
            if t.dtype.kind == "c" or len(lengths) < t.ndim:
                return False
            rows += math.prod(lengths)
        return columns > _FEW and 0 < rows * _RATIO <= columns

    def run_placed(
        self, n: int, seeds: list[Any], contents: AssumedContents
    ) -> tuple[list[Any], list[Any], Tree]:
        """As :meth:`run`, with chunks in place of lanes; raises if lanes must be written out.

        Lengths of what is read from outside are assumed, and ``contents`` of indices.
        """
        block, own, tree = self._to_push()
        dead(Program("", block, own=True))  # the value of a gradient's function is a sum
        given = list(zip(own, seeds, strict=True))
        recorder = self.tracer.recorder
        guards = len(recorder.lengths.length_guards)
        for v in (v for op in walk(block) for o in op.operands() for v in values_in(o)):
            if contents.enabled:
                recorder.lengths.assume(v)
        contents.lengths = tuple(recorder.lengths.length_guards[guards:])
        give_types(block, recorder.lengths.resolved)
        unroll_short(Program("", block))
        made = push_block(recorder, block, n, given, stays=self.stays, contents=contents)
        return *made, tree

    def _to_push(self) -> tuple[Block, list[Symbol], Tree]:
        """The function as a block that can be pushed forward, as :meth:`traced` returns it."""
        recorder = self.tracer.recorder
        threads, recorder.threads = recorder.threads, 1  # outer columns are spread, not inner ones
        try:
            block, own, tree = self.traced()
        finally:
            recorder.threads = threads
        inline(Program("", block))
        drop_unread(Program("", block))  # a tangent that is merged counts as used
        self.differentiated(tree, len(block.results))  # raises if there is no aux
        if not block.results and tree([]) is None:
            raise NoOutputError(returned_nothing(function_name(self.f)))
        return block, own, tree

    def pull(self, seeds: Any, *, lends: bool = False) -> tuple[list[Any], list[Any], Tree]:
        """Values of the leaves of f's value, cotangents of the arguments' leaves, a structure.

        ``seeds`` is called with the leaves of f's value and its structure, and returns their
        cotangents. If it ``lends``, values may be memory that f is given or reads, which the caller
        must handle.
        """
        self.check_numbers()
        recorder = self.tracer.recorder
        outer, recorder.pulled_at = recorder.pulled_at, self.tracer.position.depth
        try:
            block, own, tree = self.traced(lends=lends)
        finally:
            recorder.pulled_at = outer
        inline(Program("", block), adjoints=False)
        optimise(Program("", block, own=True))  # what is computed twice would be kept twice
        block.results = [_number(r) for r in block.results]
        own, lent = self.apart(block, own), [] if lends else self.lent(block)
        active = [dtype_of(x).kind in "fc" for x in self.leaves]
        primals, bars = pull_block(
            self.tracer.recorder,
            block,
            own,
            active,
            lambda leaves: seeds(leaves, tree),
            stays=self.stays,
        )
        return self.in_own_memory(primals, lent), bars, tree

    def _called(self, args: list[Any]) -> Any:
        """What the function returns, which is checked not to be None."""
        y = self.tracer.call(self.f, tuple(args), self.kwargs)
        if isinstance(y, Optional):
            message = returned_nothing(function_name(self.f))
            self.tracer.recorder.check(y.flag, NoOutputError, (message,), self._place())
            y = y.value
        return self._as_floats(y) if self.outputs == "returned" else y

    def _place(self) -> Location | None:
        """Where the function returns, or is differentiated."""
        position = self.tracer.position
        return position.location() if position.depth else position.returned

    def traced(self, *, lends: bool = False) -> tuple[Block, list[Symbol], Tree]:
        """The function as a block, its arguments, and its value's structure.

        It runs on copies of the arguments that it writes or, unless it ``lends``, returns.
        """
        recorder = self.tracer.recorder
        block = Block()
        outer = [recorder.as_symbol(x) for x in self.leaves]
        inner = []
        for symbol in outer:
            param = Value(recorder.lengths.resolved(symbol.type), symbol.value.name)
            block.params.append(param)
            recorder.given[param] = symbol.value
            inner.append(Symbol(param, recorder))
        args = self._with(inner)
        mark = recorder.lengths.mark()
        derives, recorder.derives = recorder.derives, False
        differentiates, recorder.differentiates = recorder.differentiates, True
        raised, y = None, None
        with recorder.region(block) as region, recorder.alone_inside():
            for k in self.argnums:  # f may change them: they are copies
                made_in(recorder, args[k])
            try:
                y = self._called(args)
            except AlwaysRaises as error:
                raised = error
            if raised is None and region.changes():
                message = (
                    "a function that is differentiated inside a traced one changes a list, dict "
                    "or object from outside: return the new values"
                )
                raise UntraceableError(message, self.tracer.position.location())
        check_items(block, recorder.lists)
        refuse_deep(block)
        self._check_finished(block)
        recorder.differentiates = differentiates
        if raised is not None:
            recorder.derives |= derives
            self._raise_behind(raised, block, outer)
        recorder.lengths.forget(mark)  # what was traced is rewritten with its tangents
        written = written_parameters(Program("", block))
        if self.outputs != "returned":
            if written_outside(block):
                message = (
                    "arguments that are written and not differentiated would be outputs, too: "
                    "differentiate with respect to them, or write into copies"
                )
                raise UntraceableError(message, self.tracer.position.location())
            y = self._with_mutated(y, inner, written)
        leaves, tree = flatten(y, records=True, place=self._place())
        block.results = [recorder.operand(leaf) for leaf in leaves]
        if not recorder.derives:  # lanes of an inner derivative stay as they are
            recorder.split += split_arrays(Program("", block)).in_loops
        recorder.derives |= derives
        written_values = [x.value for x, w in zip(outer, written, strict=True) if w]
        outside = written_outside(block)
        changed = [*written_values, *outside]
        self._check_apart(changed)
        self._check_one_name(written_values, outside, block)
        check_orders(recorder, self.f, block, changed)
        self._check_kept(block, outside)
        recorder.alone.update(changed)
        return block, self._own(outer, block, written, lends=lends), tree

    def _with(self, leaves: list[Any]) -> list[Any]:
        """The arguments, with other leaves in those that are differentiated."""
        args = list(self.args)
        for k, (tree, part) in zip(self.argnums, self.trees, strict=True):
            args[k] = tree(leaves[part])
        return args

    def _own(
        self, given: list[Symbol], block: Block, written: list[bool], *, lends: bool
    ) -> list[Symbol]:
        """The arguments, with copies of those that f writes or returns."""
        returned = set() if lends else memory(block.results, memory_of(Program("", block)))
        return [
            self.tracer.recorder.apply(np.ndarray.copy, (x, "K"), {}) if w or p in returned else x
            for x, p, w in zip(given, block.params, written, strict=True)
        ]

    def lent(self, block: Block) -> list[int]:
        """The results of a block that are memory from outside."""
        roots, own = memory_of(Program("", block)), {*block.params, *all_inside(block)}
        return [k for k, r in enumerate(block.results) if memory(r, roots) - own]

    def in_own_memory(self, primals: list[Any], lent: list[int]) -> list[Any]:
        """The results, with copies of those that are lent, as outside of a trace."""
        recorder = self.tracer.recorder
        return [
            recorder.apply(np.ndarray.copy, (recorder.as_symbol(p),), {}) if k in lent else p
            for k, p in enumerate(primals)
        ]

    def _raise_behind(self, raised: AlwaysRaises, block: Block, given: list[Symbol]) -> NoReturn:
        """Write what an always raising function does before, on copies of its arguments; raise."""
        recorder = self.tracer.recorder
        for param, x in zip(block.params, given, strict=True):
            function = np.ndarray.copy if x.is_array else identity
            recorder.emit(Apply(function, (x.value,), outputs=(param,)))
        recorder.adopt(block.ops)
        raise raised

    def apart(self, block: Block, own: list[Symbol]) -> list[Symbol]:
        """The arguments, distinct from each other and from what f reads from outside.

        Otherwise these other uses would be differentiated, too.
        """
        recorder, taken, found = self.tracer.recorder, _from_outside(block), []
        for x in own:
            if x.value in taken and x.is_array:  # which may be written later
                x = recorder.load(x, Ellipsis)
            elif x.value in taken:
                x = recorder.apply_typed(identity, (x,), x.value.type)
            taken.add(x.value)
            found.append(x)
        return found

    def differentiated(self, tree: Tree, count: int) -> set[int]:
        """The leaves of f's value that belong to y, not to aux."""
        if not self.has_aux:
            return set(range(count))
        places = tree(list(range(count)))
        if not isinstance(places, tuple) or len(places) != 2:
            what = "number or array" if isinstance(places, int) else type(places).__name__
            raise NoOutputError(
                f"has_aux=True: {function_name(self.f)} must return (y, aux); it returned a {what}"
            )
        return set(flatten(places[0], records=True)[0])

    def result(self, tree: Tree, primals: list[Any], derivative: Any) -> Any:
        """The value, its derivative, and aux if there is one."""
        y = tree(primals)
        found = (y[0], derivative, y[1]) if self.has_aux else (y, derivative)
        return made_in(self.tracer.recorder, found)

    def tangent(self, tree: Tree, leaves: list[Any]) -> Any:
        """Tangents of leaves, in the structure of y."""
        chunks = tree.tangent(leaves)
        return chunks[0] if self.has_aux else chunks

    def stays(self, v: Value) -> bool:
        """Whether an array from outside keeps f's writes: it must not be memory of an argument."""
        owners = self.tracer.recorder.definitions.owners(v)
        return all(owners.isdisjoint(others) for others in self._owners_of_arguments())

    def _owners_of_arguments(self) -> list[set[Value]]:
        recorder = self.tracer.recorder
        arrays = [x.value for x in _symbols_in([self.args, self.kwargs]) if x.is_array]
        return [recorder.definitions.owners(v) for v in arrays]

    def _check_finished(self, block: Block) -> None:
        """Raise if f calls a function that is being traced around this derivative of it."""
        if calls_unfinished(block):
            message = (
                f"{function_name(self.f)} is differentiated inside of a call of itself whose end "
                "depends on values, so that a tape would need its derivatives of every order"
            )
            raise UntraceableError(message, self.tracer.position.location())

    def _check_apart(self, written: list[Value]) -> None:
        """Raise if f writes into an argument that shares memory with another one: it has a copy."""
        recorder = self.tracer.recorder
        owners = self._owners_of_arguments()
        for v in written:
            own = recorder.definitions.owners(v)
            if sum(not own.isdisjoint(others) for others in owners) > 1:
                message = (
                    f"two arguments of {function_name(self.f)} share memory, and one is written, "
                    "so their derivatives cannot be kept apart: pass a copy of one (`.copy()`)"
                )
                raise UntraceableError(message, self.tracer.position.location())

    def _check_kept(self, block: Block, outside: list[Value]) -> None:
        """Raise if f reads in memory from outside what its last derivative call left there."""
        recorder = self.tracer.recorder
        params = recorder.blocks[0].params  # the caller's, who passes them anew at each call
        outside_values = [
            v
            for v in outside
            if recorder.definitions.made_by(v) is None and v not in params and self.stays(v)
        ]
        wrt = [p for p in block.params if p.type.dtype.kind in "fc"]
        read_early = read_before_written(block, wrt, outside_values) if outside_values else None
        if read_early is None:
            return
        a, place = read_early
        name = "an array from outside the function"
        name = f"`{a.name}`, {name}," if a.name else name
        message = (
            f"{function_name(self.f)} reads {name} before it writes there, and stores derivatives "
            "in it: the next call would read plain numbers, and the derivatives would be lost "
            "silently. If what it reads there is a constant (a starting guess), use "
            "fwdad.stop_gradient(array); otherwise pass the array as an argument"
        )
        raise UntraceableError(message, place or self.tracer.position.location())

    def _check_one_name(self, given: list[Value], outside: list[Value], block: Block) -> None:
        """Raise if f writes memory known by two names, one from outside, since each is copied.

        ``given`` are the arguments that it writes, ``outside`` what it writes and is not given.
        """
        recorder = self.tracer.recorder
        free = {v for v in _from_outside(block) if is_array(v)}
        leaves = {recorder.as_symbol(x).value for x in self.leaves}
        others = dict.fromkeys(given, free) | {v: (free | leaves) - {v} for v in outside}
        for v, names in others.items():
            owners = recorder.definitions.owners(v)
            if any(
                not owners.isdisjoint(recorder.definitions.owners(w)) for w in names if is_array(w)
            ):
                message = (
                    f"{function_name(self.f)} writes into an array that it knows by two names, "
                    "one of them from outside the function: pass one array, and take views of it "
                    "inside"
                )
                raise UntraceableError(message, self.tracer.position.location())

    def _as_floats(self, y: Any) -> Any:
        """The value, with y as a float where it is an integer and nothing else."""
        if self.has_aux and type(y) is tuple and len(y) == 2:
            return _as_float(self.tracer, y[0]), y[1]
        return _as_float(self.tracer, y)

    def _with_mutated(self, y: Any, inner: list[Symbol], written: list[bool]) -> Any:
        """The value with the arguments that f writes, beside or instead of what it returns."""
        in_order = sorted(zip(self.argnums, self.trees, strict=True), key=lambda pair: pair[0])
        mutated = [tree(inner[part]) for _, (tree, part) in in_order if any(written[part])]
        if not mutated:
            raise NoOutputError(
                f"{function_name(self.f)} writes into none of its arguments: differentiate what it "
                'returns, with outputs="returned"'
            )
        changed: Any = mutated[0] if len(mutated) == 1 else tuple(mutated)
        return changed if self.outputs == "mutated" else (y, changed)


def _as_float(tracer: Tracer, y: Any) -> Any:
    """An integer, or an array of them, as floats: its derivative is zero, as of any constant."""
    if type(y) is not Symbol:
        return numbers(y)
    if y.dtype.kind not in "iu":
        return y
    if y.is_array:
        return tracer.recorder.apply(np.ndarray.astype, (y, float), {})
    return tracer.recorder.apply(float, (y,), {})


def _symbols_in(x: Any) -> Iterator[Symbol]:
    """The symbols in nested tuples, lists and dicts."""
    if type(x) is Symbol:
        yield x
    elif isinstance(x, (tuple, list, dict)):
        for item in x.values() if isinstance(x, dict) else x:
            yield from _symbols_in(item)


def check_columns(block: Block) -> None:
    """Raise where the columns of a Jacobian may differ from its rows."""
    for op in Program("", block).walk():
        if isinstance(op, Apply) and op.function in RRULES:
            message = (
                f"{function_name(op.function)} has an rrule, and a traced Jacobian of complex "
                "numbers, or stacked as one matrix, is computed by columns, which would not use "
                "it: call jacrev outside jit, or vjp inside"
            )
            raise RowsNeededError(message, op.location)


def _from_outside(block: Block) -> set[Value]:
    """The values that a block uses and does not define."""
    used = {v for op in block.ops for v in all_used(op)} | set(values_in(block.results))
    return used - all_inside(block)


def made_of(at: Differentiated, x: Any) -> Any:
    """A value with its containers marked as made by the traced program, which may change them."""
    return made_in(at.tracer.recorder, x)


def _no_tangent(k: int, x: Any) -> str:
    """A message that says why an argument holds nothing to differentiate."""
    traced = x.type if type(x) is Symbol else None
    if isinstance(traced, Number) or isinstance(x, (bool, int, np.integer)):
        name = type(x).__name__ if traced is None else str(traced)
        what = f"argument {k} is {with_article(name)}"
        return f"{what}, and only floats and complex numbers have tangents: write float(x)"
    if traced is not None or isinstance(x, np.ndarray):
        what = f"argument {k} is an array of dtype {dtype_of(x)}"
        return f"{what}: it has no tangent space. Write x.astype(float)"
    return f"argument {k}, {type_in_words(x)}, holds nothing to differentiate with respect to"


def _number(result: Operand) -> Operand:
    """A result, or any number in place of one that is missing: the program raises before it."""
    missing = isinstance(result, Missing) and isinstance(result.type, Number)
    return result.type.dtype.type() if missing else result

"""Derivatives inside traced programs: ``jvp`` and ``jacobian`` become operations, at any depth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad import evaluators as api
from fwdad.arguments import (
    COMPLEX_ARGUMENT,
    NOT_HOLOMORPHIC,
    REAL_ARGUMENT,
    commutes_with_i,
    positions_of,
)
from fwdad.builder.build import run_on_duals
from fwdad.errors import (
    NoOutputError,
    NotHolomorphicError,
    SeedError,
    UnsupportedTypeError,
    UntraceableError,
)
from fwdad.reverse.pull import pull_block, written_outside
from fwdad.rules.registry import function_name
from fwdad.tangents.seeds import random_seeds
from fwdad.tangents.zero import ZERO, NoTangent
from fwdad.tape.alias import written_parameters
from fwdad.tape.forward import Basis, push_block
from fwdad.tape.forward.rule_table import CONSTANT
from fwdad.tape.ops import Block, Program, Value, is_array, values_in
from fwdad.tape.passes import inline, optimise, split_arrays
from fwdad.tape.passes.rewrite import all_inside, all_used
from fwdad.tape.symbol import Symbol
from fwdad.tape.types import Number, Size
from fwdad.tracing.builtin_calls import builtin
from fwdad.tracing.columns import push_in_chunks, width_of_chunks
from fwdad.tracing.trees import Tree, flatten, made_in


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of a symbol, an array or a number."""
    if type(x) is Symbol:
        return x.dtype
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else np.dtype(type(x))


class Differentiated:
    """A function's value and lanes at a point, written in line.

    Parameters
    ----------
    tracer : Interpreter
        Traces it.
    f : callable
        The function.
    args, kwargs
        All arguments.
    argnums : int or tuple of int
        Those to differentiate with respect to.
    outputs : {"returned", "mutated", "both"}
        What counts as the value.
    has_aux : bool
        Whether that is ``(y, aux)``, of which y is differentiated.
    """

    def __init__(
        self,
        tracer: Any,
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
        self.outputs = outputs
        self.leaves: list[Any] = []
        self.trees: list[tuple[Tree, slice]] = []
        for k in self.argnums:
            found, tree = flatten(args[k], records=True)
            self.trees.append((tree, slice(len(self.leaves), len(self.leaves) + len(found))))
            self.leaves.extend(found)
        if not any(dtype_of(x).kind in "fc" for x in self.leaves):
            message = "the argument holds nothing to differentiate with respect to"
            raise UnsupportedTypeError(message)

    def sizes(self) -> list[int]:
        """How many numbers each leaf holds, which must be known."""
        recorder = self.tracer.recorder
        found = []
        for x in self.leaves:
            symbol = recorder.as_symbol(x) if not isinstance(x, (int, float, complex)) else None
            if symbol is None or not symbol.is_array:
                found.append(1)
                continue
            shape = symbol.type.shape
            found.append(math.prod(recorder.known_length(symbol, a) for a in range(len(shape))))
        return found

    def shape(self, k: int) -> tuple[int, ...]:
        """The shape of a leaf, known."""
        x = self.leaves[k]
        if type(x) is not Symbol and not isinstance(x, np.ndarray):
            return ()
        symbol = self.tracer.recorder.as_symbol(x)
        return tuple(
            self.tracer.recorder.known_length(symbol, axis) for axis in range(symbol.type.ndim)
        )

    def run(
        self, n: int, tangents: list[Any], chunk: Any = None
    ) -> tuple[list[Any], list[Any], Tree]:
        """Values and lanes of the leaves of f's value, and its structure."""
        recorder = self.tracer.recorder
        threads, recorder.threads = recorder.threads, 1  # outer columns are spread, not inner ones
        try:
            block, own, tree = self.traced()
        finally:
            recorder.threads = threads
        inline(Program("", block))
        self.differentiated(tree, len(block.results))  # raises if nothing comes beside it
        if not block.results and tree([]) is None:
            message = (
                f"{function_name(self.f)} returned None. If it updates its arguments in place, say "
                'outputs="mutated"'
            )
            raise NoOutputError(message)
        width = n if threads < 2 else width_of_chunks(block, n, threads, self.tracer.force(chunk))
        if width < n and not any(dtype_of(x).kind == "c" for x in self.leaves):
            made = push_in_chunks(recorder, block, own, tangents, n, width)
            if made is not None:
                return *made, tree
        given = list(zip(own, tangents, strict=True))
        primals, lanes = push_block(recorder, block, n, given)
        return primals, lanes, tree

    def pull(self, seeds: Any) -> tuple[list[Any], list[Any], Tree]:
        """Values of the leaves of f's value, cotangents of those of its arguments, a structure.

        Parameters
        ----------
        seeds : callable
            Called with the leaves of f's value and its structure; answers their cotangents.
        """
        recorder = self.tracer.recorder
        outer, recorder.pulled_at = recorder.pulled_at, self.tracer.depth
        try:
            block, own, tree = self.traced()
        finally:
            recorder.pulled_at = outer
        inline(Program("", block), adjoints=False)
        optimise(Program("", block))  # what is computed twice would be kept twice
        active = [dtype_of(x).kind in "fc" for x in self.leaves]
        primals, bars = pull_block(
            self.tracer.recorder, block, own, active, lambda leaves: seeds(leaves, tree)
        )
        return primals, bars, tree

    def traced(self) -> tuple[Block, list[Symbol], Tree]:
        """The function as a block, its arguments in memory of its own, its value's structure."""
        recorder = self.tracer.recorder
        block = Block()
        outer = [recorder.as_symbol(x) for x in self.leaves]
        inner = []
        for symbol in outer:
            param = Value(recorder.resolved(symbol.type), symbol.value.name)
            block.params.append(param)
            inner.append(Symbol(param, recorder))
        args = list(self.args)
        for k, (tree, part) in zip(self.argnums, self.trees, strict=True):
            args[k] = tree(inner[part])
        mark = recorder.mark()
        derives, recorder.derives = recorder.derives, False
        with recorder.region(block) as region:
            y = self.tracer.call(self.f, tuple(args), self.kwargs)
            if region.changes():
                message = (
                    "a function that is differentiated inside a traced program changes a "
                    "container from outside"
                )
                raise UntraceableError(message, self.tracer.location())
        recorder.forget(mark)  # what was traced is written anew, with its tangents
        written = written_parameters(Program("", block))
        if self.outputs != "returned":
            if written_outside(block):
                message = "arguments that are written and not differentiated are outputs, too"
                raise UntraceableError(message, self.tracer.location())
            y = self._with_mutated(y, inner, written)
        leaves, tree = flatten(y, records=True)
        block.results = [recorder.operand(leaf) for leaf in leaves]
        if not recorder.derives:  # lanes of an inner derivative stay as they are
            recorder.split += split_arrays(Program("", block)).in_loops
        recorder.derives |= derives
        given = [x.value for x, w in zip(outer, written, strict=True) if w]
        outside = written_outside(block)
        changed = [*given, *outside]
        self._check_apart(changed)
        self._check_one_name(given, outside, block)
        recorder.alone.update(changed)
        own = [
            recorder.apply(np.ndarray.copy, (x,), {}) if w else x
            for x, w in zip(outer, written, strict=True)
        ]
        return block, own, tree

    def differentiated(self, tree: Tree, count: int) -> set[int]:
        """Which leaves of f's value are y's, not those of what came beside it."""
        if not self.has_aux:
            return set(range(count))
        places = tree(list(range(count)))
        if not isinstance(places, tuple) or len(places) != 2:
            what = "number or array" if isinstance(places, int) else type(places).__name__
            message = (
                f"has_aux=True: {function_name(self.f)} must return (y, aux); it returned a {what}"
            )
            raise NoOutputError(message)
        return set(flatten(places[0], records=True)[0])

    def answer(self, tree: Tree, primals: list[Any], derivative: Any) -> Any:
        """The value and its derivative, and what came beside it."""
        y = tree(primals)
        found = (y[0], derivative, y[1]) if self.has_aux else (y, derivative)
        return made_in(self.tracer.recorder, found)

    def tangent(self, tree: Tree, leaves: list[Any]) -> Any:
        """Tangents of leaves in the structure of y."""
        made = tree.tangent(leaves)
        return made[0] if self.has_aux else made

    def _check_apart(self, written: list[Value]) -> None:
        """Raise if f writes into an argument that is memory of another one: it has a copy."""
        recorder = self.tracer.recorder
        arrays = [x.value for x in _symbols_in([self.args, self.kwargs]) if x.is_array]
        owners = [recorder.owners(v) for v in arrays]
        for v in written:
            own = recorder.owners(v)
            if sum(not own.isdisjoint(others) for others in owners) > 1:
                message = (
                    f"two arguments of {function_name(self.f)} share memory, and one is written: "
                    "their derivatives cannot be kept apart. Pass a copy of one"
                )
                raise UntraceableError(message, self.tracer.location())

    def _check_one_name(self, given: list[Value], outside: list[Value], block: Block) -> None:
        """Raise if f knows memory that it writes by two names, one from outside: each is copied.

        ``given`` are the arguments that it writes, ``outside`` what it writes and is not given.
        """
        recorder, inside = self.tracer.recorder, all_inside(block)
        used = [v for op in block.ops for v in all_used(op)] + list(values_in(block.results))
        free = {v for v in used if is_array(v) and v not in inside}
        leaves = {recorder.as_symbol(x).value for x in self.leaves}
        others = dict.fromkeys(given, free) | {v: (free | leaves) - {v} for v in outside}
        for v, names in others.items():
            own = recorder.owners(v)
            if any(not own.isdisjoint(recorder.owners(w)) for w in names if is_array(w)):
                message = (
                    f"{function_name(self.f)} writes into an array that it knows by two names, and "
                    "one of them is from outside: pass one array, and take its views inside"
                )
                raise UntraceableError(message, self.tracer.location())

    def _with_mutated(self, y: Any, inner: list[Symbol], written: list[bool]) -> Any:
        """The arguments that f writes into as its value, beside or instead of what it returns."""
        in_order = sorted(zip(self.argnums, self.trees, strict=True), key=lambda pair: pair[0])
        mutated = [tree(inner[part]) for _, (tree, part) in in_order if any(written[part])]
        if not mutated:
            message = f"{function_name(self.f)} writes into none of its arguments"
            raise NoOutputError(message)
        changed: Any = mutated[0] if len(mutated) == 1 else tuple(mutated)
        return changed if self.outputs == "mutated" else (y, changed)


def _symbols_in(x: Any) -> Iterator[Symbol]:
    """The symbols in nested tuples, lists and dicts."""
    if type(x) is Symbol:
        yield x
    elif isinstance(x, (tuple, list, dict)):
        for item in x.values() if isinstance(x, dict) else x:
            yield from _symbols_in(item)


def made_of(at: Differentiated, x: Any) -> Any:
    """A value whose containers the traced program has made: it may return and change them."""
    return made_in(at.tracer.recorder, x)


def _at(tracer: Any, f: Any, args: Any, kwargs: Any, argnums: Any, options: Any) -> Differentiated:
    outputs, has_aux = options.get("outputs", "returned"), options.get("has_aux", False)
    if outputs not in ("returned", "mutated", "both"):
        message = f'outputs is "returned", "mutated" or "both", not {outputs!r}'
        raise ValueError(message)
    return Differentiated(tracer, f, args, kwargs or {}, argnums, outputs, has_aux=has_aux)


def _check_holomorphic(at: Differentiated, *, holomorphic: bool) -> None:
    """What :func:`fwdad.arguments.check_holomorphic` asks, written as a check."""
    kinds = {dtype_of(x).kind for x in at.leaves}
    if "c" not in kinds:
        return
    if not holomorphic:
        raise NotHolomorphicError(COMPLEX_ARGUMENT)
    if kinds != {"c"}:
        raise NotHolomorphicError(REAL_ARGUMENT)
    recorder = at.tracer.recorder
    location = at.tracer.location()
    likes = [np.empty(at.shape(k), dtype_of(x)) for k, x in enumerate(at.leaves)]
    seeds = random_seeds(likes, 1, np.random.default_rng(0))
    given = [recorder.as_symbol(np.concatenate([v, 1j * v])) for v in seeds]
    primals, lanes, tree = at.run(2, given)
    chosen = at.differentiated(tree, len(primals))
    for k, (p, t) in enumerate(zip(primals, lanes, strict=True)):
        if k in chosen and dtype_of(p).kind in "fc":
            holds = at.tracer.call(commutes_with_i, (recorder.as_symbol(t),), {})
            recorder.check(holds, NotHolomorphicError, (NOT_HOLOMORPHIC,), location)


CONSTANT.add(api.stop_gradient)


@builtin(api.jvp)
def _jvp(
    tracer: Any,
    f: Any,
    x: Any,
    v: Any = None,
    *,
    argnums: Any = 0,
    args: tuple[Any, ...] = (),
    kwargs: Any = None,
    holomorphic: bool = False,
    **options: Any,
) -> Any:
    at = _at(tracer, f, (x, *args), kwargs, argnums, options)
    _check_holomorphic(at, holomorphic=holomorphic)
    if v is None:
        primals, lanes, tree = _basis_run(at, options)
        dots = [_tangent(t, p) for t, p in zip(lanes, primals, strict=True)]
        return at.answer(tree, primals, at.tangent(tree, dots))
    directions, _ = flatten(v, records=True)
    if len(directions) != len(at.leaves):
        message = f"v has {len(directions)} leaves, x has {len(at.leaves)}"
        raise SeedError(message)
    recorder = tracer.recorder
    symbols = [recorder.as_symbol(d) for d in directions]
    ranks = [recorder.as_symbol(leaf).type.ndim for leaf in at.leaves]
    single = symbols[0].type.ndim == ranks[0]
    n = 1 if single else recorder.known_length(symbols[0], 0)
    tangents = [
        _stacked(recorder, s, rank, single=single) for s, rank in zip(symbols, ranks, strict=True)
    ]
    primals, lanes, tree = at.run(n, tangents, options.get("chunk", "auto"))
    dots = [
        _first(recorder, t, p) if single else _tangent(t, p)
        for t, p in zip(lanes, primals, strict=True)
    ]
    return at.answer(tree, primals, at.tangent(tree, dots))


def _stacked(recorder: Any, v: Symbol, rank: int, *, single: bool) -> Any:
    if v.dtype.kind not in "fc":
        return ZERO
    if v.type.ndim != rank + (not single):
        message = f"a direction has rank {v.type.ndim}, x has rank {rank}"
        raise SeedError(message)
    if not single:
        return v
    if not v.is_array:
        return recorder.apply(np.array, ([v],), {})
    return recorder.load(v, (None, Ellipsis))


def _first(recorder: Any, lanes: Any, p: Any) -> Any:
    if dtype_of(p).kind not in "fc":
        return NoTangent
    t = recorder.load(recorder.as_symbol(lanes), 0)
    python = type(p) is Symbol and isinstance(p.type, Number) and p.type.python
    return recorder.apply(float, (t,), {}) if python and t.dtype.kind == "f" else t


def _tangent(t: Any, p: Any) -> Any:
    return t if dtype_of(p).kind in "fc" else NoTangent


def _basis_run(at: Differentiated, options: dict[str, Any]) -> tuple[list[Any], list[Any], Tree]:
    sizes = at.sizes()
    starts, total = [], 0
    for x, size in zip(at.leaves, sizes, strict=True):
        starts.append(total)
        total += size if dtype_of(x).kind in "fc" else 0
    seeds: list[Any] = [
        Basis(-start, at.shape(k)) if dtype_of(at.leaves[k]).kind in "fc" else ZERO
        for k, start in enumerate(starts)
    ]
    return at.run(total, seeds, options.get("chunk", "auto"))


@builtin(api.value_and_jacobian)
def _value_and_jacobian(
    tracer: Any,
    f: Any,
    x: Any,
    *,
    argnums: Any = 0,
    args: tuple[Any, ...] = (),
    kwargs: Any = None,
    holomorphic: bool = False,
    **options: Any,
) -> Any:
    at = _at(tracer, f, (x, *args), kwargs, argnums, options)
    _check_holomorphic(at, holomorphic=holomorphic)
    primals, lanes, tree = _basis_run(at, options)
    recorder = tracer.recorder
    if options.get("stack"):
        return at.answer(tree, primals, _stacked_columns(at, tree, primals, lanes))
    blocks = [_columns(recorder, at, t, p) for t, p in zip(lanes, primals, strict=True)]

    def jacobian_of(k: int) -> Any:
        parts = [
            at.trees[j][0].tangent([blocks[k][m] if at.trees[j][1].start <= m < at.trees[j][1].stop
                            else None for m in range(len(at.leaves))][at.trees[j][1]])
            for j in range(len(at.argnums))
        ]  # fmt: skip
        return parts[0] if isinstance(argnums, int) else tuple(parts)

    blocks_of_y = [jacobian_of(k) for k in range(len(primals))]
    return at.answer(tree, primals, at.tangent(tree, blocks_of_y))


def _stacked_columns(
    at: Differentiated, tree: Tree, primals: list[Any], lanes: list[Any]
) -> Symbol:
    """All of y by all of x, as one matrix."""
    recorder = at.tracer.recorder
    chosen = at.differentiated(tree, len(primals))
    rows = []
    for k, (p, t) in enumerate(zip(primals, lanes, strict=True)):
        if k in chosen and dtype_of(p).kind in "fc":
            found = recorder.as_symbol(t)
            rank = found.type.ndim - 1
            last = found if not rank else found.transpose((*range(1, rank + 1), 0))
            n = recorder.length(found, 0)
            rows.append(recorder.apply(np.reshape, (last, (-1, n)), {}))
    return rows[0] if len(rows) == 1 else recorder.apply(np.concatenate, (rows,), {})


@builtin(api.jacobian)
def _jacobian(tracer: Any, f: Any, x: Any, **options: Any) -> Any:
    found = _value_and_jacobian(tracer, f, x, **options)
    return found[1:] if options.get("has_aux") else found[1]


def _columns(recorder: Any, at: Differentiated, lanes: Any, p: Any) -> list[Any]:
    """The Jacobian of one leaf of y with respect to each leaf of x."""
    lanes = recorder.as_symbol(lanes)
    rank = lanes.type.ndim - 1
    last = lanes if not rank else lanes.transpose((*range(1, rank + 1), 0))
    made, start = [], 0
    for k, x in enumerate(at.leaves):
        if dtype_of(x).kind not in "fc" or dtype_of(p).kind not in "fc":
            made.append(NoTangent)
            continue
        shape = at.shape(k)
        size = math.prod(shape)
        whole = size == (lanes.type.shape[0] if not isinstance(lanes.type.shape[0], Size) else -1)
        own = last if whole else recorder.load(last, (Ellipsis, slice(start, start + size)))
        start += size
        made.append(_shaped(recorder, own, rank, shape, p))
    return made


def _shaped(recorder: Any, own: Any, rank: int, shape: tuple[int, ...], p: Any) -> Any:
    if len(shape) == 1:
        return own
    if not shape:
        found = recorder.load(own, (Ellipsis, 0) if rank else 0)
        python = type(p) is Symbol and isinstance(p.type, Number) and p.type.python
        return recorder.apply(float, (found,), {}) if python and found.dtype.kind == "f" else found
    lengths = tuple(recorder.length(own, axis) for axis in range(rank))
    return recorder.apply(np.reshape, (own, (*lengths, *shape)), {})


@builtin(run_on_duals)
def _run_on_duals(tracer: Any, f: Any, args: Any, kwargs: Any) -> Any:
    return tracer.call(f, args, kwargs)

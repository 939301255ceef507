"""Derivatives inside traced programs: ``jvp`` and ``jacobian`` become operations, at any depth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fwdad import evaluators as api
from fwdad.arguments import COMPLEX_ARGUMENT, NOT_HOLOMORPHIC, REAL_ARGUMENT, commutes_with_i
from fwdad.builder.build import run_on_duals
from fwdad.errors import (
    NonScalarOutputError,
    NoOutputError,
    NotHolomorphicError,
    SeedError,
    UnsupportedTypeError,
    UntraceableError,
)
from fwdad.reverse.halves import Cut
from fwdad.reverse.pull import pull_block, write_block, written_outside
from fwdad.rules.registry import function_name
from fwdad.tangents.seeds import random_seeds
from fwdad.tangents.zero import ZERO, NoTangent
from fwdad.tape.alias import written_parameters
from fwdad.tape.forward import Basis, push_block
from fwdad.tape.forward.rule_table import CONSTANT
from fwdad.tape.ops import Block, Program, Value
from fwdad.tape.passes import inline, optimise, split_arrays
from fwdad.tape.stacks import bar_of
from fwdad.tape.symbol import Symbol
from fwdad.tape.types import Number, Size, Type
from fwdad.tracing.builtin_calls import builtin
from fwdad.tracing.columns import push_in_chunks, width_of_chunks
from fwdad.tracing.trees import Tree, flatten, made_in


def _dtype(x: Any) -> np.dtype[Any]:
    if type(x) is Symbol:
        return x.dtype
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else np.dtype(type(x))


class _Differentiated:
    """A function's value and lanes at a point, written in line.

    Parameters
    ----------
    tracer : Interpreter
        Traces it.
    f : callable
        The function.
    args, kwargs
        All arguments.
    argnums : tuple of int
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
        self.argnums = argnums
        self.outputs = outputs
        self.leaves: list[Any] = []
        self.trees: list[tuple[Tree, slice]] = []
        for k in argnums:
            found, tree = flatten(args[k], records=True)
            self.trees.append((tree, slice(len(self.leaves), len(self.leaves) + len(found))))
            self.leaves.extend(found)
        if not any(_dtype(x).kind in "fc" for x in self.leaves):
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
        if width < n and not any(_dtype(x).kind == "c" for x in self.leaves):
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
        active = [_dtype(x).kind in "fc" for x in self.leaves]
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
        changed = [x.value for x, w in zip(outer, written, strict=True) if w]
        changed += written_outside(block)
        self._check_apart(changed)
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
        owners = [recorder.owner(v) for v in arrays]
        for v in written:
            if owners.count(recorder.owner(v)) > 1:
                message = (
                    f"two arguments of {function_name(self.f)} share memory, and one is written: "
                    "their derivatives cannot be kept apart. Pass a copy of one"
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


def _made(at: _Differentiated, x: Any) -> Any:
    """A value whose containers the traced program has made: it may return and change them."""
    return made_in(at.tracer.recorder, x)


def _positions(argnums: Any) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _at(tracer: Any, f: Any, args: Any, kwargs: Any, argnums: Any, options: Any) -> _Differentiated:
    outputs, has_aux = options.get("outputs", "returned"), options.get("has_aux", False)
    if outputs not in ("returned", "mutated", "both"):
        message = f'outputs is "returned", "mutated" or "both", not {outputs!r}'
        raise ValueError(message)
    return _Differentiated(
        tracer, f, args, kwargs or {}, _positions(argnums), outputs, has_aux=has_aux
    )


def _check_holomorphic(at: _Differentiated, *, holomorphic: bool) -> None:
    """What :func:`fwdad.arguments.check_holomorphic` asks, written as a check."""
    kinds = {_dtype(x).kind for x in at.leaves}
    if "c" not in kinds:
        return
    if not holomorphic:
        raise NotHolomorphicError(COMPLEX_ARGUMENT)
    if kinds != {"c"}:
        raise NotHolomorphicError(REAL_ARGUMENT)
    recorder = at.tracer.recorder
    location = at.tracer.location()
    likes = [np.empty(at.shape(k), _dtype(x)) for k, x in enumerate(at.leaves)]
    seeds = random_seeds(likes, 1, np.random.default_rng(0))
    given = [recorder.as_symbol(np.concatenate([v, 1j * v])) for v in seeds]
    primals, lanes, tree = at.run(2, given)
    chosen = at.differentiated(tree, len(primals))
    for k, (p, t) in enumerate(zip(primals, lanes, strict=True)):
        if k in chosen and _dtype(p).kind in "fc":
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
    if _dtype(p).kind not in "fc":
        return NoTangent
    t = recorder.load(recorder.as_symbol(lanes), 0)
    python = type(p) is Symbol and isinstance(p.type, Number) and p.type.python
    return recorder.apply(float, (t,), {}) if python and t.dtype.kind == "f" else t


def _tangent(t: Any, p: Any) -> Any:
    return t if _dtype(p).kind in "fc" else NoTangent


def _basis_run(at: _Differentiated, options: dict[str, Any]) -> tuple[list[Any], list[Any], Tree]:
    sizes = at.sizes()
    starts, total = [], 0
    for x, size in zip(at.leaves, sizes, strict=True):
        starts.append(total)
        total += size if _dtype(x).kind in "fc" else 0
    seeds: list[Any] = [
        Basis(-start, at.shape(k)) if _dtype(at.leaves[k]).kind in "fc" else ZERO
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
    at: _Differentiated, tree: Tree, primals: list[Any], lanes: list[Any]
) -> Symbol:
    """All of y by all of x, as one matrix."""
    recorder = at.tracer.recorder
    chosen = at.differentiated(tree, len(primals))
    rows = []
    for k, (p, t) in enumerate(zip(primals, lanes, strict=True)):
        if k in chosen and _dtype(p).kind in "fc":
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


def _columns(recorder: Any, at: _Differentiated, lanes: Any, p: Any) -> list[Any]:
    """The Jacobian of one leaf of y with respect to each leaf of x."""
    lanes = recorder.as_symbol(lanes)
    rank = lanes.type.ndim - 1
    last = lanes if not rank else lanes.transpose((*range(1, rank + 1), 0))
    made, start = [], 0
    for k, x in enumerate(at.leaves):
        if _dtype(x).kind not in "fc" or _dtype(p).kind not in "fc":
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


# -- reverse mode

_AT_ONCE: dict[str, Any] = {}


def install(gradient: Any) -> None:
    """Say what differentiates a function that is not being traced.

    Parameters
    ----------
    gradient : callable
        With the parameters of :func:`pulled_gradient`.
    """
    _AT_ONCE.update(gradient=gradient)


def pulled_gradient(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient of a function whose value is one real number."""
    return _AT_ONCE["gradient"](f, argnums, args, kwargs, options)


def pulled_value(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """The cotangents of arguments, for that of the value, which is the last of ``args``."""
    message = f"the pullback of {function_name(f)} is needed outside of a tape"
    raise UntraceableError(message)


def value_and_pullback(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """A value and the cotangents of arguments, to be cut in two: see ``reverse.halves``."""
    message = f"the pullback of {function_name(f)} is needed outside of a tape"
    raise UntraceableError(message)


def measured_value(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """:func:`pulled_value`, with a mark where the way back begins."""
    message = f"the pullback of {function_name(f)} is needed outside of a tape"
    raise UntraceableError(message)


def value_alone(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """The value of a function that may write into its arguments: into copies of them."""
    message = f"the value of {function_name(f)} is needed outside of a tape"
    raise UntraceableError(message)


@builtin(value_alone)
def _traced_value(tracer: Any, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    at = _Differentiated(
        tracer, f, tuple(args), dict(kwargs), _positions(argnums), options["outputs"]
    )
    block, own, tree = at.traced()
    return _made(at, tree(write_block(tracer.recorder, block, own)))


@builtin(pulled_gradient)
def traced_gradient(tracer: Any, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """:func:`pulled_gradient` in a trace."""
    has_aux = options["has_aux"]
    at = _Differentiated(tracer, f, tuple(args), dict(kwargs), _positions(argnums), has_aux=has_aux)

    def seeds(leaves: list[Any], tree: Tree) -> list[Any]:
        at.differentiated(tree, len(leaves))  # raises if nothing comes beside it
        places = tree(list(range(len(leaves))))
        y = places[0] if has_aux else places
        check_scalar(leaves[y] if isinstance(y, int) else y, f)
        one = _dtype(leaves[y]).type(1)
        return [one if k == y else None for k in range(len(leaves))]

    primals, bars, tree = at.pull(seeds)
    gradient = _cotangents(at, bars)
    return _made(at, (tree(primals), gradient[0] if isinstance(argnums, int) else tuple(gradient)))


@builtin(pulled_value)
def _traced_pullback(
    tracer: Any, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any
) -> Any:
    *given, y_bar = args
    bars_given, _ = flatten(y_bar, records=True)

    def chosen_bars(chosen: list[Any]) -> list[Any]:
        if len(chosen) != len(bars_given):
            message = f"the cotangent has {len(bars_given)} leaves, the value {len(chosen)}"
            raise SeedError(message)
        return [b if _dtype(b).kind in "fc" else None for b in bars_given]

    _, parts = _value_and_pullback(tracer, f, argnums, (given, kwargs), options, chosen_bars)
    return parts


def _value_and_pullback(
    tracer: Any, f: Any, argnums: Any, given: Any, options: Any, bars_of: Any
) -> Any:
    """A function's value and the cotangents of its arguments.

    ``bars_of`` is called with the leaves of the value that have cotangents, and answers these.
    """
    args, kwargs = given
    at = _Differentiated(
        tracer, f, tuple(args), dict(kwargs), _positions(argnums), options["outputs"]
    )

    def seeds(leaves: list[Any], tree: Tree) -> list[Any]:
        places = tree(list(range(len(leaves))))
        y = places[0] if options["has_aux"] else places
        chosen = [k for k in flatten(y, records=True)[0] if _dtype(leaves[k]).kind in "fc"]
        found: list[Any] = [None] * len(leaves)
        for k, bar in zip(chosen, bars_of([leaves[k] for k in chosen]), strict=True):
            found[k] = bar
        return found

    primals, bars, tree = at.pull(seeds)
    parts = _cotangents(at, bars)
    return _made(at, (tree(primals), parts[0] if isinstance(argnums, int) else tuple(parts)))


@builtin(value_and_pullback)
def _traced_halves(tracer: Any, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    recorder = tracer.recorder
    types: list[Type] = []

    def bars_of(chosen: list[Any]) -> list[Any]:
        types[:] = [recorder.as_symbol(leaf).type for leaf in chosen]
        recorder.turns = True  # the next way back is that of f itself
        return [recorder.apply_typed(bar_of, (k,), t) for k, t in enumerate(types)]

    y, parts = _value_and_pullback(tracer, f, argnums, (args, kwargs), options, bars_of)
    answers, _ = flatten(parts, records=True)
    recorder.cut = Cut(types, sum(type(b) is Symbol for b in answers))
    recorder.turns = False
    return y, parts


@builtin(measured_value)
def _traced_measured(tracer: Any, *given: Any) -> Any:
    tracer.recorder.turns = True
    return _traced_pullback(tracer, *given)


def check_scalar(y: Any, f: Any) -> None:
    """Raise unless a value is one real number.

    Parameters
    ----------
    y : object
        A number, array or symbol, or anything else.
    f : callable
        For the message.
    """
    name = getattr(f, "__qualname__", function_name(f))
    what = ""
    if type(y) is not Symbol and not isinstance(
        y, (bool, int, float, complex, np.generic, np.ndarray)
    ):
        what = f"a {type(y).__name__}"
    elif getattr(y, "ndim", 0):
        known: Any = y
        shape = known.shape
        plain = all(type(n) is int for n in shape)
        what = f"shape {shape}" if plain else f"an array of rank {known.ndim}"
    if what:
        message = (
            f"a gradient needs a function that returns one real number; {name} returned {what}. "
            "Use jacobian or jvp"
        )
        raise NonScalarOutputError(message)
    if _dtype(y).kind == "c":
        message = f"a gradient needs a real value; {name} returned a complex number"
        raise NonScalarOutputError(message)


def _cotangents(at: _Differentiated, bars: list[Any]) -> list[Any]:
    """The cotangents of the arguments in their structures, written out."""
    recorder = at.tracer.recorder
    found: list[Any] = []
    for x, b in zip(at.leaves, bars, strict=True):
        if _dtype(x).kind not in "fc":
            found.append(NoTangent)
            continue
        symbol = recorder.as_symbol(x)
        if not symbol.is_array:
            found.append(_as_number(recorder, symbol, b))
        elif b is None:
            found.append(recorder.apply(np.zeros_like, (symbol,), {}))
        elif type(b) is Symbol and b.is_array:
            found.append(b)
        else:
            found.append(recorder.apply(np.full_like, (symbol, b), {}))
    return [tree.tangent(found[part]) for tree, part in at.trees]


def _as_number(recorder: Any, x: Symbol, b: Any) -> Any:
    python = isinstance(x.type, Number) and x.type.python
    if b is None or type(b) is not Symbol:
        value = x.dtype.type(0 if b is None else b)
        return value.item() if python else value
    return recorder.apply(complex if x.dtype.kind == "c" else float, (b,), {}) if python else b

"""Derivatives inside traced programs: ``jvp`` and ``jacobian`` become operations, at any depth."""

from __future__ import annotations

import math
import operator
from itertools import accumulate
from typing import Any

import numpy as np

from fwdad.eager.arguments import check_outputs
from fwdad.eager.build import run_on_duals
from fwdad.errors import (
    MissingRuleError,
    NotHolomorphicError,
    OutError,
    SeedError,
    UnsupportedTypeError,
    UntraceableError,
)
from fwdad.evaluation import evaluators as api
from fwdad.evaluation.arguments import (
    COMPLEX_ARGUMENT,
    NOT_HOLOMORPHIC,
    REAL_ARGUMENT,
    are_several,
    commutes_with_i,
)
from fwdad.evaluation.elementwise import NOT_ELEMENTWISE, directions, is_diagonal, other_shape
from fwdad.evaluation.out_arrays import SEVERAL
from fwdad.evaluation.transformed import NOT_GIVEN, Transformed
from fwdad.frontend.calls.builtins import as_callable
from fwdad.frontend.calls.tables import CALLED, builtin
from fwdad.frontend.derivatives.differentiated import (
    Differentiated,
    RowsNeededError,
    RowsPayError,
    dtype_of,
)
from fwdad.frontend.derivatives.out_arrays import checked_place, into
from fwdad.frontend.derivatives.pulled import cotangents_of_leaves, unshared
from fwdad.frontend.derivatives.static_chunks import jacobian_in_chunks
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import Tree, flatten, has_tangents, made_in, matched
from fwdad.ir.ops import Block, Program, Value
from fwdad.ir.symbol import Symbol, kind_in_words
from fwdad.ir.types import ArrayType, Number, Size
from fwdad.tangents.seeds import NO_SEED, check_kind, random_seeds
from fwdad.tangents.zero import ZERO, NoTangent
from fwdad.transforms.forward import Basis, push_block
from fwdad.transforms.passes import inline
from fwdad.transforms.reverse.structure import NotReversibleError


@builtin(api.stop_gradient)
def _stop_gradient(tracer: Tracer, x: Any) -> Any:
    """A single operation, since its own source removes tangents that a trace does not have."""
    leaves, tree = flatten(x)
    stopped = [
        tracer.recorder.apply(api.stop_gradient, (v,), {})
        if type(v) is Symbol or isinstance(v, np.ndarray)
        else v
        for v in leaves
    ]
    return made_in(tracer.recorder, tree(stopped))


def _at(
    tracer: Tracer, f: Any, args: Any, kwargs: Any, argnums: Any, options: Any
) -> Differentiated:
    outputs, has_aux = options.get("outputs", "returned"), options.get("has_aux", False)
    check_outputs(outputs)
    return Differentiated(tracer, f, args, kwargs or {}, argnums, outputs, has_aux=has_aux)


def _check_holomorphic(at: Differentiated, *, holomorphic: bool) -> None:
    """The conditions of :func:`fwdad.evaluation.arguments.check_holomorphic`, as a check."""
    kinds = {dtype_of(x).kind for x in at.leaves}
    if "c" not in kinds:
        return
    if not holomorphic:
        raise NotHolomorphicError(COMPLEX_ARGUMENT)
    if kinds != {"c"}:
        raise NotHolomorphicError(REAL_ARGUMENT)
    recorder = at.tracer.recorder
    location = at.tracer.position.location()
    likes = [np.empty(at.shape(k), dtype_of(x)) for k, x in enumerate(at.leaves)]
    seeds = random_seeds(likes, 1, np.random.default_rng(0))
    given = [recorder.as_symbol(np.concatenate([v, 1j * v])) for v in seeds]
    primals, lanes, tree = at.run(2, given)
    chosen = at.differentiated(tree, len(primals))
    for k, (p, t) in enumerate(zip(primals, lanes, strict=True)):
        if k in chosen and dtype_of(p).kind in "fc":
            holds = at.tracer.call(commutes_with_i, (recorder.as_symbol(t),), {})
            recorder.check(holds, NotHolomorphicError, (NOT_HOLOMORPHIC,), location)


def refuse_linearize(tracer: Tracer, *_args: Any, **_options: Any) -> Any:
    """The meaning of ``linearize`` in a trace: none."""
    message = (
        "linearize returns a SciPy LinearOperator, which cannot be used in a traced function: use "
        "jvp for J @ v, vjp for J.T @ v, or jacobian"
    )
    raise UntraceableError(message, tracer.position.location())


@builtin(api.jvp)
def _jvp(
    tracer: Tracer,
    f: Any,
    x: Any,
    v: Any = None,
    *,
    argnums: Any = 0,
    args: tuple[Any, ...] = (),
    kwargs: Any = None,
    holomorphic: bool = False,
    out: Any = None,
    **options: Any,
) -> Any:
    if out is not None:
        given = {"argnums": argnums, "args": args, "kwargs": kwargs, "holomorphic": holomorphic}
        found = tracer.call(api.jvp, (f, x, v), {**given, **options})
        return into(tracer, out, found, (x, v, args, kwargs), "the tangent")
    if are_several(as_callable(f), x, v, args, kwargs, argnums):
        x, *more = x
        v, args, argnums = tuple(v), tuple(more), tuple(range(1 + len(more)))
    at = _at(tracer, f, (x, *args), kwargs, argnums, options)
    _check_holomorphic(at, holomorphic=holomorphic)
    if v is None:
        primals, lanes, tree = _basis_run(at, options)
        dots = [_tangent(t, p) for t, p in zip(lanes, primals, strict=True)]
        return at.result(tree, primals, at.tangent(tree, dots))
    directions = _directions(at, v)
    recorder = tracer.recorder
    leaves = [recorder.as_symbol(leaf) for leaf in at.leaves]
    pairs = [(_fitting(recorder, d, x), x) for d, x in zip(directions, leaves, strict=True)]
    stacked = [d for d, x in pairs if d is not None and d.type.ndim > x.type.ndim]
    single = not stacked
    n = 1 if single else recorder.lengths.known_length(stacked[0], 0)
    tangents = [ZERO if d is None else _stacked(tracer, d, x, single=single) for d, x in pairs]
    begin = len(recorder.block.ops)
    primals, lanes, tree = at.run(n, tangents, options.get("chunk", "auto"))
    dots = [
        _first(recorder, t, p) if single else _tangent(t, p)
        for t, p in zip(lanes, primals, strict=True)
    ]
    dots = unshared(at, dots, primals, begin)
    return at.result(tree, primals, at.tangent(tree, dots))


def _directions(at: Differentiated, v: Any) -> list[Any]:
    """The part of v for each leaf of the arguments."""
    seeds = (v,) if at.single else v
    if not isinstance(seeds, (tuple, list)) or len(seeds) != len(at.argnums):
        raise SeedError(
            f"the seed must be a tuple of length {len(at.argnums)}, like the argument; got "
            f"{kind_in_words(v)}"
        )
    found: list[Any] = []
    for k, (tree, _), seed in zip(at.argnums, at.trees, seeds, strict=True):
        parts = tree.by_leaf(matched(at.args[k], seed))
        found += [at.tracer.call(np.asarray, (p,), {}) if type(p) is list else p for p in parts]
    return found


def _fitting(recorder: Any, v: Any, x: Symbol) -> Symbol | None:
    """Directions as numbers of the kind that their argument has; None if it does not move."""
    if v is ZERO or not has_tangents(x):
        return None
    if v is None or v is NoTangent:
        raise SeedError(NO_SEED.format(v))
    v = recorder.as_symbol(v)
    check_kind(v.dtype, x.dtype)
    if v.dtype == x.dtype:
        return v
    if v.is_array:
        return recorder.apply(np.ndarray.astype, (v, x.dtype), {})
    return recorder.apply(x.dtype.type, (v,), {})


@builtin(api.derivative)
def _derivative(
    tracer: Any,
    f: Any,
    x: Any = NOT_GIVEN,
    *,
    args: tuple[Any, ...] = (),
    kwargs: Any = None,
    holomorphic: bool = False,
) -> Any:
    given = {"args": args, "kwargs": kwargs, "holomorphic": holomorphic}
    if x is NOT_GIVEN:
        return tracer.inline.call_by_source(api.derivative, (f,), given)
    shaped = (
        x.is_array and x.type.ndim if type(x) is Symbol else isinstance(x, np.ndarray) and x.ndim
    )
    if not shaped:
        return tracer.call(api.derivative_of_number, (f, x), given)
    at = _at(tracer, f, (x, *args), kwargs, 0, {})
    _check_holomorphic(at, holomorphic=holomorphic)
    recorder, location, shape = tracer.recorder, tracer.position.location(), at.shape(0)
    moves = directions(shape, dtype_of(at.leaves[0]))
    seeds = recorder.as_symbol(moves)
    own = recorder.apply(np.ndarray.copy, (seeds,), {})  # f may write into x, and so into these
    primals, lanes, tree = at.run(len(moves), [own])
    dots: list[Any] = []
    for p, t in zip(primals, lanes, strict=True):
        if dtype_of(p).kind not in "fc":
            dots.append(NoTangent)
            continue
        symbol = recorder.as_symbol(p)
        rank = symbol.type.ndim if symbol.is_array else 0
        of_value = tuple(recorder.lengths.known_length(symbol, axis) for axis in range(rank))
        if of_value != shape:
            raise UnsupportedTypeError(other_shape(shape, of_value), location)
        t = recorder.as_symbol(t)
        holds = tracer.call(is_diagonal, (seeds, t), {})
        recorder.check(holds, UnsupportedTypeError, (NOT_ELEMENTWISE,), location)
        dots.append(recorder.load(t, 0))
    return made_in(recorder, at.tangent(tree, dots))


def _stacked(tracer: Tracer, v: Symbol, x: Symbol, *, single: bool) -> Any:
    """Directions as lanes of their argument's shape."""
    recorder, rank = tracer.recorder, x.type.ndim
    if v.type.ndim != rank + (not single):
        raise SeedError(f"a direction has rank {v.type.ndim}, x has rank {rank}")
    if not v.is_array:
        return recorder.apply(np.array, ([v],), {})
    v = _of_shape(tracer, v, x)
    # memory of its own: what f stores into x, is stored into the lanes
    v = recorder.apply(np.ndarray.copy, (v,), {})
    return recorder.load(v, (None, Ellipsis)) if single else v


def _of_shape(tracer: Tracer, v: Symbol, x: Symbol) -> Symbol:
    """Directions with the argument's lengths, compared at run time where types do not suffice."""
    recorder = tracer.recorder
    message = (
        "the shape of a direction differs from its argument's, and directions are not broadcast"
    )
    first = v.type.ndim - x.type.ndim
    given, wanted = (recorder.lengths.resolved(s.type).shape for s in (v, x))
    if given[first:] == wanted:
        return v
    lengths = [recorder.length(x, axis) for axis in range(x.type.ndim)]
    for axis, length in enumerate(lengths):
        holds = tracer.call(operator.eq, (recorder.length(v, axis + first), length), {})
        if type(holds) is Symbol:
            recorder.check(holds, SeedError, (message,), tracer.position.location())
        elif not holds:
            raise SeedError(message, tracer.position.location())
    lanes = [recorder.length(v, 0)] if first else []
    return recorder.apply(np.reshape, (v, (*lanes, *lengths)), {})


def _first(recorder: Any, lanes: Any, p: Any) -> Any:
    if dtype_of(p).kind not in "fc":
        return NoTangent
    t = recorder.load(recorder.as_symbol(lanes), 0)
    return recorder.apply(float, (t,), {}) if _is_python(p) and t.dtype.kind == "f" else t


def _tangent(t: Any, p: Any) -> Any:
    return t if dtype_of(p).kind in "fc" else NoTangent


def _basis_run(
    at: Differentiated, options: dict[str, Any], *, cheaper: bool = False
) -> tuple[list[Any], list[Any], Tree]:
    at.check_numbers()
    sizes = at.sizes()
    starts, total = [], 0
    for x, size in zip(at.leaves, sizes, strict=True):
        starts.append(total)
        total += size if dtype_of(x).kind in "fc" else 0
    seeds: list[Any] = [
        Basis(-start, at.shape(k)) if dtype_of(at.leaves[k]).kind in "fc" else ZERO
        for k, start in enumerate(starts)
    ]
    rows = options.get("mode") == "reverse"
    return at.run(total, seeds, options.get("chunk", "auto"), rows=rows, cheaper=cheaper)


def traced_value_and_jacobian(
    tracer: Tracer,
    f: Any,
    x: Any,
    *,
    argnums: Any = 0,
    args: tuple[Any, ...] = (),
    kwargs: Any = None,
    out: Any = None,
    **options: Any,
) -> Any:
    """The meaning of ``value_and_jacobian`` in a trace."""
    point = f, x, argnums, args, kwargs
    found = _in_chunks(tracer, *point, out=out, **options)
    if found is not None:
        return found
    found = _value_and_jacobian(tracer, *point, **options)
    if out is None:
        return found
    return into(tracer, out, found, (x, args, kwargs), "the Jacobian")


def _in_chunks(
    tracer: Tracer,
    f: Any,
    x: Any,
    argnums: Any,
    args: tuple[Any, ...],
    kwargs: Any,
    *,
    out: Any = None,
    chunk: Any = "auto",
    holomorphic: bool = False,
    stack: bool = False,
    **options: Any,
) -> Any:
    """Value and Jacobian in chunks of the width that was asked for; None if not so."""
    if type(chunk) is Symbol and chunk.dtype.kind == "i" and not chunk.is_array:
        chunk = tracer.values.force(chunk)
    if type(chunk) is not int or chunk < 1 or holomorphic or stack:
        return None
    at = _at(tracer, f, (x, *args), kwargs, argnums, options)
    at.check_numbers()

    def place(k: int, y: Symbol, lengths: list[Any]) -> Symbol | None:
        if out is None:
            return None
        if k:
            raise OutError(SEVERAL, tracer.position.location())
        return checked_place(tracer, out, y.dtype, lengths, (x, args, kwargs), "the Jacobian")

    try:
        made = jacobian_in_chunks(at, chunk, place, rows=options.get("mode") == "reverse")
    except RowsNeededError:
        return None
    if made is None:
        return None
    primals, blocks, tree = made
    blocks = [NoTangent if b is None else b for b in blocks]
    of_y = [at.trees[0][0].tangent([b]) for b in blocks]
    return at.result(tree, primals, at.tangent(tree, of_y if at.single else [(b,) for b in of_y]))


def _value_and_jacobian(
    tracer: Tracer,
    f: Any,
    x: Any,
    argnums: Any,
    args: tuple[Any, ...],
    kwargs: Any,
    *,
    holomorphic: bool = False,
    **options: Any,
) -> Any:
    point = f, x, argnums, args, kwargs
    at = _at(tracer, f, (x, *args), kwargs, argnums, options)
    _check_holomorphic(at, holomorphic=holomorphic)
    recorder = tracer.recorder
    columns_alone = holomorphic or options.get("stack")
    cheaper = not columns_alone and options.get("mode") != "forward"
    try:
        primals, lanes, tree = _basis_run(at, options, cheaper=cheaper)
    except RowsNeededError as needed:
        if columns_alone:
            raise
        found = _rows(at, needed)
        if found is None:
            return _value_and_jacobian(tracer, *point, **options | {"mode": "forward"})
        primals, blocks, tree = found
    else:
        if options.get("stack"):
            return at.result(tree, primals, _stacked_columns(at, tree, primals, lanes))
        blocks = [_columns(recorder, at, t, p) for t, p in zip(lanes, primals, strict=True)]

    def jacobian_of(k: int) -> Any:
        parts = [
            at.trees[j][0].tangent([blocks[k][m] if at.trees[j][1].start <= m < at.trees[j][1].stop
                            else None for m in range(len(at.leaves))][at.trees[j][1]])
            for j in range(len(at.argnums))
        ]  # fmt: skip
        return parts[0] if at.single else tuple(parts)

    blocks_of_y = [jacobian_of(k) for k in range(len(primals))]
    return at.result(tree, primals, at.tangent(tree, blocks_of_y))


def _rows(
    at: Differentiated, needed: RowsNeededError
) -> tuple[list[Any], list[list[Any]], Tree] | None:
    """Values, the Jacobian of each leaf of y for each leaf of x, a structure.

    One reverse pass is written, of any cotangent, and the unit cotangents are pushed through it.
    None if it cannot be written, and columns will do.
    """
    recorder = at.tracer.recorder
    block, shapes = Block(), {}

    def seeds(leaves: list[Any], tree: Tree) -> list[Any]:
        found: list[Any] = [None] * len(leaves)
        for k in sorted(at.differentiated(tree, len(leaves))):
            if any(dtype_of(x).kind == "c" for x in (*at.leaves, leaves[k])):
                raise UntraceableError(_COMPLEX_ROWS, at.tracer.position.location())
            y = recorder.as_symbol(leaves[k])
            if y.dtype.kind == "f":
                shapes[k] = tuple(recorder.lengths.known_length(y, a) for a in range(y.type.ndim))
                block.params.append(Value(ArrayType(y.dtype, shapes[k]) if y.is_array else y.type))
                found[k] = Symbol(block.params[-1], recorder)
        return found

    mark = recorder.lengths.mark()
    with recorder.region(block):
        try:
            values, bars, tree = at.pull(seeds)
        except (NotReversibleError, MissingRuleError):
            if type(needed) is RowsPayError:
                return None
            raise
        bars = cotangents_of_leaves(at, bars)
        moving = [b for b in bars if b is not NoTangent]
        block.results = [recorder.operand(r) for r in (*values, *moving)]
    recorder.lengths.forget(mark)
    inline(Program("", block))
    starts = dict(zip(shapes, accumulate(map(math.prod, shapes.values()), initial=0), strict=False))
    count = sum(map(math.prod, shapes.values()))
    given = [
        (recorder.as_symbol(np.zeros(shape, p.type.dtype)[()]), Basis(-starts[k], shape))
        for p, (k, shape) in zip(block.params, shapes.items(), strict=True)
    ]
    found, lanes = push_block(recorder, block, count, given, stays=at.stays)
    primals, pulled = found[: len(values)], iter(lanes[len(values) :])
    own = [NoTangent if b is NoTangent else next(pulled) for b in bars]
    blocks = [
        [_row_block(recorder, rows, at, m, p, shapes[k], starts[k]) for m, rows in enumerate(own)]
        if k in shapes
        else [NoTangent] * len(own)
        for k, p in enumerate(primals)
    ]
    return primals, blocks, tree


_COMPLEX_ROWS = (
    "an rrule cannot be used for complex numbers in a traced Jacobian: call jacrev outside jit, or "
    "vjp inside"
)


def _row_block(
    recorder: Any, rows: Any, at: Differentiated, m: int, given: Any, shape: tuple[int, ...],
    start: int,
) -> Any:  # fmt: skip
    """The Jacobian of one leaf of y for leaf m of x, from the rows of all leaves."""
    y = recorder.as_symbol(given)
    if rows is NoTangent:
        return NoTangent
    lengths = (*shape, *at.shape(m))
    if rows is ZERO:
        value = recorder.apply(np.zeros, (lengths, y.dtype), {})
    else:
        own = recorder.load(recorder.as_symbol(rows), slice(start, start + math.prod(shape)))
        value = recorder.apply(np.reshape, (own, lengths), {})
        if value.dtype != y.dtype:  # that of columns
            value = recorder.apply(np.ndarray.astype, (value, y.dtype), {})
    return value if lengths else _like_numbers(recorder, value, given, at.leaves[m])


def _like_numbers(recorder: Any, value: Any, y: Any, x: Any) -> Any:
    """As :func:`fwdad.evaluation.jacobian_layout.like_numbers`, of an array without axes."""
    if any(_is_array(leaf) for leaf in (y, x)):
        return value
    number = recorder.load(value, ())
    python = all(_is_python(leaf) for leaf in (y, x)) and number.dtype.kind == "f"
    return recorder.apply(float, (number,), {}) if python else number


def _is_array(x: Any) -> bool:
    return x.is_array if type(x) is Symbol else isinstance(x, np.ndarray)


def _is_python(x: Any) -> bool:
    """Whether a number is of a class of Python's."""
    if type(x) is Symbol:
        return isinstance(x.type, Number) and x.type.python
    return type(x) in (float, int, complex)


def _stacked_columns(
    at: Differentiated, tree: Tree, primals: list[Any], lanes: list[Any]
) -> Symbol:
    """The Jacobian of all of y with respect to all of x, as one matrix."""
    recorder = at.tracer.recorder
    chosen = at.differentiated(tree, len(primals))
    rows = []
    for k, (p, t) in enumerate(zip(primals, lanes, strict=True)):
        if k in chosen and dtype_of(p).kind in "fc":
            symbol = recorder.as_symbol(t)
            rank = symbol.type.ndim - 1
            last = symbol if not rank else symbol.transpose((*range(1, rank + 1), 0))
            n = recorder.length(symbol, 0)
            rows.append(recorder.apply(np.reshape, (last, (-1, n)), {}))
    return rows[0] if len(rows) == 1 else recorder.apply(np.concatenate, (rows,), {})


def traced_jacobian(tracer: Tracer, f: Any, x: Any, **options: Any) -> Any:
    """The meaning of ``jacobian`` in a trace."""
    found = traced_value_and_jacobian(tracer, f, x, **options)
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
        value = last if whole else recorder.load(last, (Ellipsis, slice(start, start + size)))
        start += size
        if shape or rank:
            made.append(_shaped(recorder, value, rank, shape))
        else:
            made.append(_like_numbers(recorder, recorder.load(value, (Ellipsis, 0)), p, x))
    return made


def _shaped(recorder: Any, own: Any, rank: int, shape: tuple[int, ...]) -> Any:
    if len(shape) == 1:
        return own
    if not shape:
        return recorder.load(own, (Ellipsis, 0))
    lengths = tuple(recorder.length(own, axis) for axis in range(rank))
    return recorder.apply(np.reshape, (own, (*lengths, *shape)), {})


@builtin(run_on_duals)
def _run_on_duals(tracer: Tracer, f: Any, args: Any, kwargs: Any) -> Any:
    return tracer.call(f, args, kwargs)


CALLED[Transformed] = lambda tracer, f, args, kwargs: f.evaluate(tracer.call, args, kwargs)

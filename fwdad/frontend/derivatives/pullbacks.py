"""``vjp`` inside traced programs, where each call of the pullback writes a reverse pass.

The function is traced once; a reverse pass uses the values that its arguments, and all that it
reads, had when ``vjp`` was called.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from fwdad.eager.arguments import check_outputs
from fwdad.errors import NoOutputError, SeedError, returned_nothing
from fwdad.evaluation.arguments import with_more
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.differentiated import Differentiated, dtype_of, made_of
from fwdad.frontend.derivatives.out_arrays import into
from fwdad.frontend.derivatives.pulled import cotangents, cotangents_of_leaves, unshared
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import flatten, matched
from fwdad.ir.builder.outside import leave_outside
from fwdad.ir.clone import Cloner
from fwdad.ir.ops import Block, Program, Value, is_array, values_in
from fwdad.ir.rewrite import all_inside, all_used, written_outside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number
from fwdad.rules.core.registry import function_name
from fwdad.tangents.seeds import ONE_OR_SEVERAL, check_one_array
from fwdad.tangents.zero import ZERO, NoTangent, Zero
from fwdad.transforms.forward import push_block
from fwdad.transforms.passes import inline, optimise
from fwdad.transforms.reverse.pull import pull_block, write_block


class Point(OfTrace):
    """A function traced at some arguments."""

    def __init__(self, at: Differentiated) -> None:
        self.at = at
        recorder = self.recorder = at.tracer.recorder
        outer, recorder.pulled_at = recorder.pulled_at, at.tracer.position.depth
        try:
            block, own, self.tree = at.traced()
        finally:
            recorder.pulled_at = outer
        inline(Program("", block), adjoints=False)
        optimise(Program("", block, own=True))  # what is computed twice would be kept twice
        self.given = [self._copy(x) for x in at.apart(block, own)]
        outside = written_outside(block)
        self.block, own_copies = self._apart(block)
        left: dict[Value, Value] = {}
        given = [self._copy(x) for x in self.given]
        first = len(recorder.block.ops)
        found = write_block(recorder, self.block, given, left)
        copies = {v: left[own_copies[v]] for v in outside}
        leave_outside(recorder, copies, at.stays, first)
        self.primals: list[Any] = found
        places = self.tree(list(range(len(found))))
        at.differentiated(self.tree, len(found))  # raises if there is no aux
        self.y = places[0] if at.has_aux else places
        self.leaves = flatten(self.y, records=True)[0]
        if not self.leaves and self.y is None:
            raise NoOutputError(returned_nothing(function_name(at.f)))

    def _copy(self, x: Any) -> Any:
        return self.recorder.apply(np.ndarray.copy, (x,), {}) if x.is_array else x

    def _apart(self, block: Block) -> tuple[Block, dict[Value, Value]]:
        """The block on copies of the arrays from outside that it uses, and these copies."""
        cloner = Cloner({})
        inside = all_inside(block)
        used = [v for op in block.ops for v in all_used(op)] + list(values_in(block.results))
        for v in dict.fromkeys(used):
            if v not in inside and is_array(v):
                cloner.mapping[v] = self._copy(Symbol(v, self.recorder)).value
        ops = [cloner.op(op) for op in block.ops]
        results = [cloner.operand(r) for r in block.results]
        return Block([cloner.operand(p) for p in block.params], ops, results), cloner.mapping

    def _block(self) -> Block:
        """A copy of the block for one reverse pass, which may rewrite it; its output is made."""
        return Cloner({}, again=True).block(self.block)

    def value(self) -> Any:
        """The result of ``vjp`` without the pullback."""
        return self.tree(self.primals)

    def pull(self, y_bar: Any) -> Any:
        """The cotangents of the arguments for one cotangent of the value, or for K of them."""
        bars, count = self._bars(y_bar)
        first = len(self.recorder.block.ops)
        bars_of_x = self._pulled(bars) if count is None else self._pulled_many(bars, count)
        bars_of_x = unshared(self.at, bars_of_x, list(bars.values()), first)
        parts = cotangents(self.at, bars_of_x) if count is None else self._stacked(bars_of_x, count)
        return made_of(self.at, parts[0] if self.at.single else tuple(parts))

    # -- cotangents of y

    def _bars(self, y_bar: Any) -> tuple[dict[int, Any], int | None]:
        """The cotangents of y's leaves that have one, as symbols, and their number (None: one)."""
        bar_leaves = matched(self.y, y_bar, "cotangent", "value")
        bars, extra = {}, set()
        for k, bar in zip(self.leaves, bar_leaves, strict=True):
            if dtype_of(self.primals[k]).kind not in "fc" or isinstance(bar, Zero):
                continue
            if bar is None or bar is NoTangent:
                raise SeedError(
                    f"got {bar} as the cotangent of a value that needs one: pass fwdad.ZERO for a "
                    "zero cotangent"
                )
            check_one_array(bar, "cotangent")
            if isinstance(bar, list):
                bar = self.at.tracer.call(np.asarray, (bar,), {})
            y, made = self.recorder.as_symbol(self.primals[k]), self.recorder.as_symbol(bar)
            self._check_dtype(made, y)
            bars[k] = made
            extra.add(made.type.ndim - y.type.ndim)
        if extra - {0, 1} or len(extra) > 1:
            raise SeedError(
                f"got cotangents of ranks {[b.type.ndim for b in bars.values()]} for values of "
                f"ranks {[self.recorder.as_symbol(self.primals[k]).type.ndim for k in bars]}: "
                f"{ONE_OR_SEVERAL}"
            )
        if extra != {1}:
            return bars, None
        return bars, self.recorder.lengths.known_length(next(iter(bars.values())), 0)

    @staticmethod
    def _check_dtype(bar: Symbol, y: Symbol) -> None:
        if bar.dtype.kind == "c" and y.dtype.kind != "c":
            raise SeedError(f"got a complex cotangent for a real value of dtype {y.dtype}")
        if bar.dtype.kind not in "biufc":
            raise SeedError(f"expected a float array; got a cotangent of dtype {bar.dtype}")

    def _own(self, bar: Symbol, like: Symbol, *, count: int | None = None) -> Symbol:
        """A cotangent in its value's type, in memory of its own, with its lengths checked."""
        recorder = self.recorder
        if not like.is_array and count is None:
            return bar if bar.type == like.type else self._number(bar, like)
        shape = tuple(recorder.length(like, axis) for axis in range(like.type.ndim))
        for axis, n in enumerate(shape):
            self._check_length(recorder.length(bar, axis + (count is not None)), n)
        if count is not None:
            shape = (count, *shape)
        value = recorder.apply(np.empty, (shape, like.dtype), {})
        recorder.store(value, Ellipsis, bar)
        return value

    def _check_length(self, given: Any, wanted: Any) -> None:
        holds = self.at.tracer.call(operator.eq, (given, wanted), {})
        message = "the shape of a cotangent differs from its value's"
        if type(holds) is Symbol:
            self.recorder.check(holds, SeedError, (message,), self.at.tracer.position.location())
        elif not holds:
            raise SeedError(message, self.at.tracer.position.location())

    def _number(self, bar: Symbol, like: Symbol) -> Symbol:
        python = isinstance(like.type, Number) and like.type.python
        function = (complex if like.dtype.kind == "c" else float) if python else like.dtype.type
        return self.recorder.apply(function, (bar,), {})

    def _pulled(self, bars: dict[int, Any]) -> list[Any]:
        def seeds(leaves: list[Any]) -> list[Any]:
            return [
                self._own(bars[k], self.recorder.as_symbol(y)) if k in bars else None
                for k, y in enumerate(leaves)
            ]

        active = [dtype_of(x).kind in "fc" for x in self.at.leaves]
        copies = [self._copy(x) for x in self.given]
        return pull_block(self.recorder, self._block(), copies, active, seeds)[1]

    def _pulled_many(self, bars: dict[int, Any], count: int) -> list[Any]:
        """Several cotangents, pushed as tangents through the (linear) reverse pass of one."""
        recorder, block = self.recorder, Block()
        likes = {k: recorder.as_symbol(self.primals[k]) for k in bars}
        block.params = [Value(recorder.lengths.resolved(y.type)) for y in likes.values()]
        mark = recorder.lengths.mark()
        with recorder.region(block):
            own = {k: Symbol(p, recorder) for k, p in zip(bars, block.params, strict=True)}
            bars_of_x = cotangents_of_leaves(self.at, self._pulled(own))
            block.results = [recorder.operand(b) for b in bars_of_x if b is not NoTangent]
        recorder.lengths.forget(mark)
        inline(Program("", block))
        stacked = []
        for k, y in likes.items():
            zero = recorder.apply(np.zeros_like, (y,), {}) if y.is_array else y.dtype.type(0)
            mark_of = recorder.as_symbol(zero)
            stacked.append((mark_of, self._own(bars[k], y, count=count)))
        return push_block(recorder, block, count, stacked)[1]

    def _stacked(self, lanes: list[Any], count: int) -> list[Any]:
        """K stacked cotangents of the arguments, in their structures."""
        recorder, found, at = self.recorder, [], iter(lanes)
        for x in self.at.leaves:
            if dtype_of(x).kind not in "fc":
                found.append(NoTangent)
                continue
            value, symbol = next(at), recorder.as_symbol(x)
            if value is ZERO or isinstance(value, Zero):
                shape = [recorder.length(symbol, axis) for axis in range(symbol.type.ndim)]
                value = recorder.apply(np.zeros, ((count, *shape), symbol.dtype), {})
            found.append(value)
        return [tree.tangent(found[part]) for tree, part in self.at.trees]


def pull(point: Point, y_bar: Any, *, out: Any = None) -> Any:
    """The result of a pullback, which is defined only while its program is traced."""
    raise RuntimeError(
        f"the pullback of {function_name(point.at.f)} was made in a traced function, and can be "
        "called only there"
    )


@builtin(pull)
def _traced_pull(tracer: Tracer, point: Point, y_bar: Any, *, out: Any = None) -> Any:
    x_bar = point.pull(y_bar)
    return x_bar if out is None else into(tracer, out, (None, x_bar), y_bar, "the cotangent")[1]


def traced_vjp(
    tracer: Tracer,
    f: Any,
    x: Any,
    *more: Any,
    argnums: Any = None,
    args: tuple[Any, ...] = (),
    kwargs: Any = None,
    has_aux: bool = False,
    outputs: str = "returned",
    chunk: Any = "auto",
) -> Any:
    """:func:`fwdad.vjp` in a trace: the value, and a pullback to be called in the same trace."""
    check_outputs(outputs)
    args, argnums = with_more(more, args, argnums)
    at = Differentiated(
        tracer, f, (x, *args), dict(kwargs or {}), argnums, outputs, has_aux=has_aux
    )
    point = Point(at)
    y = made_of(at, point.value())
    pullback = functools.partial(pull, point)
    return (y[0], pullback, y[1]) if has_aux else (y, pullback)

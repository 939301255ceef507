"""Reverse mode inside traced programs: gradients, and values with their reverse passes."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from fwdad.errors import NonScalarOutputError, SeedError, UntraceableError, type_in_words
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.differentiated import Differentiated, dtype_of, made_of
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.frontend.trees import Tree, flatten
from fwdad.ir.analysis.alias import memory, memory_of
from fwdad.ir.builder.outside import leave_outside
from fwdad.ir.ops import Block, Program, Value
from fwdad.ir.primitives.stacks import bar_of
from fwdad.ir.rewrite import all_inside
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number, Type
from fwdad.rules.core.registry import function_name
from fwdad.tangents.zero import NoTangent
from fwdad.transforms.reverse.pull import write_block
from fwdad.transforms.reverse.split_passes import Cut


def _refuse_outside(what: str, f: Any) -> NoReturn:
    """Refuse to call a function that has a meaning only in a trace."""
    message = f"the {what} of {function_name(f)} can be computed only in a traced function"
    raise UntraceableError(message)


def pulled_gradient(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """Value and gradient of a function whose value is one real number."""
    _refuse_outside("gradient", f)


def pulled_value(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """The cotangents of the arguments for that of the value, which is the last of ``args``."""
    _refuse_outside("pullback", f)


def value_and_pullback(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """A value and the cotangents of arguments, to be cut in two by ``split_passes``."""
    _refuse_outside("pullback", f)


def measured_value(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """The result of :func:`pulled_value`, with a mark where the reverse pass begins."""
    _refuse_outside("pullback", f)


def value_alone(f: Any, argnums: Any, args: Any, kwargs: Any, options: Any) -> Any:
    """The value of a function that may write into its arguments, which are then copied."""
    _refuse_outside("value", f)


@builtin(value_alone)
def _traced_value(
    tracer: Tracer, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any
) -> Any:
    at = Differentiated(tracer, f, tuple(args), dict(kwargs), argnums, options["outputs"])
    block, own, tree = at.traced()
    lent = at.lent(block)
    left: dict[Value, Value] = {}
    first = len(tracer.recorder.block.ops)
    found = write_block(tracer.recorder, block, own, left)
    leave_outside(tracer.recorder, left, at.stays, first)
    return made_of(at, tree(at.in_own_memory(found, lent)))


@builtin(pulled_gradient)
def traced_gradient(
    tracer: Tracer, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any
) -> Any:
    """:func:`pulled_gradient` in a trace, without the value if that is not wanted."""
    has_aux = options["has_aux"]
    at = Differentiated(tracer, f, tuple(args), dict(kwargs), argnums, has_aux=has_aux)

    def seeds(leaves: list[Any], tree: Tree) -> list[Any]:
        at.differentiated(tree, len(leaves))  # raises if there is no aux
        places = tree(list(range(len(leaves))))
        y = places[0] if has_aux else places
        check_scalar(leaves[y] if isinstance(y, int) else y, f)
        one = dtype_of(leaves[y]).type(1)
        return [one if k == y else None for k in range(len(leaves))]

    first = len(tracer.recorder.block.ops)
    primals, bars, tree = at.pull(seeds)
    gradient = cotangents(at, unshared(at, bars, primals, first))
    y = tree(primals) if options.get("value", True) else None
    return made_of(at, (y, gradient[0] if at.single else tuple(gradient)))


@builtin(pulled_value)
def _traced_pullback(
    tracer: Tracer, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any
) -> Any:
    *given, y_bar = args
    bars_given, _ = flatten(y_bar, records=True)

    def chosen_bars(chosen: list[Any]) -> list[Any]:
        if len(chosen) != len(bars_given):
            raise SeedError(f"the cotangent has {len(bars_given)} leaves, the value {len(chosen)}")
        return [b if dtype_of(b).kind in "fc" else None for b in bars_given]

    _, parts = _value_and_pullback(tracer, f, argnums, (given, kwargs), options, chosen_bars)
    return parts


def _value_and_pullback(
    tracer: Tracer, f: Any, argnums: Any, given: Any, options: Any, bars_of: Any
) -> Any:
    """A function's value and the cotangents of its arguments.

    ``bars_of`` is called with the leaves of the value that have cotangents, and returns these.
    """
    args, kwargs = given
    has_aux = options["has_aux"]
    at = Differentiated(
        tracer, f, tuple(args), dict(kwargs), argnums, options["outputs"], has_aux=has_aux
    )

    def seeds(leaves: list[Any], tree: Tree) -> list[Any]:
        at.differentiated(tree, len(leaves))  # raises if there is no aux
        places = tree(list(range(len(leaves))))
        y = places[0] if has_aux else places
        chosen = [k for k in flatten(y, records=True)[0] if dtype_of(leaves[k]).kind in "fc"]
        found: list[Any] = [None] * len(leaves)
        for k, bar in zip(chosen, bars_of([leaves[k] for k in chosen]), strict=True):
            found[k] = bar
        seeded.extend(found)
        return found

    seeded: list[Any] = []
    first = len(tracer.recorder.block.ops)
    primals, bars, tree = at.pull(seeds, lends=True)
    parts = cotangents(at, unshared(at, bars, [*primals, *seeded], first))
    return made_of(at, (tree(primals), parts[0] if at.single else tuple(parts)))


@builtin(value_and_pullback)
def _traced_halves(
    tracer: Tracer, f: Any, argnums: Any, args: Any, kwargs: Any, options: Any
) -> Any:
    recorder = tracer.recorder
    types: list[Type] = []

    def bars_of(chosen: list[Any]) -> list[Any]:
        types[:] = [recorder.as_symbol(leaf).type for leaf in chosen]
        recorder.turns = True  # the next reverse pass is that of f itself
        return [recorder.apply_typed(bar_of, (k,), t) for k, t in enumerate(types)]

    y, parts = _value_and_pullback(tracer, f, argnums, (args, kwargs), options, bars_of)
    leaves, tree = flatten(parts, records=True, once=True)  # as results: a container is made once
    recorder.cut = Cut(types, sum(type(leaves[k]) is Symbol for k in tree.places))
    recorder.turns = False
    return y, parts


@builtin(measured_value)
def _traced_measured(tracer: Tracer, *given: Any) -> Any:
    tracer.recorder.turns = True
    return _traced_pullback(tracer, *given)


def check_scalar(y: Any, f: Any) -> None:
    """Raise ``NonScalarOutputError``, naming f, unless y is one real number or a symbol of one."""
    name = getattr(f, "__qualname__", function_name(f))
    what = ""
    if type(y) is not Symbol and not isinstance(
        y, (bool, int, float, complex, np.generic, np.ndarray)
    ):
        what = type_in_words(y)
    elif getattr(y, "ndim", 0):
        known: Any = y
        shape = known.shape
        plain = all(type(n) is int for n in shape)
        what = f"shape {shape}" if plain else f"an array of rank {known.ndim}"
    if what:
        raise NonScalarOutputError(
            f"a gradient needs a function that returns one real number; {name} returned {what}. "
            "Use jacobian or jvp"
        )
    if dtype_of(y).kind == "c":
        message = f"a gradient needs a real value; {name} returned a complex number"
        raise NonScalarOutputError(message)


def unshared(at: Differentiated, bars: list[Any], others: list[Any], first: int) -> list[Any]:
    """Tangents that may be written: copies of what is other memory, too, or was made earlier.

    ``others`` are also returned, or given. What belongs to this call is made by the operations
    from ``first`` on. A sum that is broadcast is read-only.
    """
    recorder = at.tracer.recorder
    here = Block(ops=recorder.block.ops[first:])
    roots, own = memory_of(Program("", here)), all_inside(here)
    taken = memory([recorder.operand(x) for x in others if type(x) is Symbol], roots)
    found: list[Any] = []
    for bar in bars:
        if type(bar) is Symbol and bar.is_array:
            held = memory(bar.value, roots)
            if held & taken or not held <= own or recorder.definitions.is_read_only(bar.value):
                bar = recorder.apply(np.ndarray.copy, (bar,), {})
            taken |= held
        found.append(bar)
    return found


def cotangents(at: Differentiated, bars: list[Any]) -> list[Any]:
    """The cotangents of the arguments in their structures, with zeros written out."""
    found = cotangents_of_leaves(at, bars)
    return [tree.tangent(found[part]) for tree, part in at.trees]


def cotangents_of_leaves(at: Differentiated, bars: list[Any]) -> list[Any]:
    """The cotangents of the arguments' leaves, with zeros written out."""
    recorder = at.tracer.recorder
    found: list[Any] = []
    for x, b in zip(at.leaves, bars, strict=True):
        if dtype_of(x).kind not in "fc":
            found.append(NoTangent)
            continue
        symbol = recorder.as_symbol(x)
        if not symbol.is_array:
            found.append(_as_number(recorder, symbol, b))
        elif b is None:
            found.append(recorder.apply(np.zeros_like, (symbol,), {}))
        elif type(b) is Symbol and b.is_array:
            found.append(_as_wide(b, symbol))
        else:
            found.append(recorder.apply(np.full_like, (symbol, b), {}))
    return found


def _as_wide(x_bar: Symbol, x: Symbol) -> Symbol:
    """The cotangent of an array, made complex if x is and only its real part is known."""
    if x.dtype.kind != "c" or x_bar.dtype.kind == "c":
        return x_bar
    return x.recorder.apply(np.ndarray.astype, (x_bar, x.dtype), {})


def _as_number(recorder: Any, x: Symbol, b: Any) -> Any:
    python = isinstance(x.type, Number) and x.type.python
    if b is None or type(b) is not Symbol:
        value = x.dtype.type(0 if b is None else b)
        return value.item() if python else value
    return recorder.apply(complex if x.dtype.kind == "c" else float, (b,), {}) if python else b

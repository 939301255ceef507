"""Functions without side effects: they copy what a generated function updates, and return that."""

from __future__ import annotations

import ast

from fwdad.reversible.arguments.kinds import Kind
from fwdad.reversible.language import nodes
from fwdad.reversible.lowering.cotangents import zero_like


def on_copies(
    name: str, inner: ast.FunctionDef, kinds: list[Kind], updated: set[int], *, adjoint: bool
) -> ast.FunctionDef:
    """The function ``name``, which calls a generated function with copies.

    ``kinds`` are those of its values, ``updated`` the positions of those that it updates. With
    ``adjoint`` it takes all values and the cotangents of those that are updated, and returns the
    cotangents of all numbers and arrays that have one.
    """
    names = [a.arg for a in inner.args.args]
    values, bars = names[: len(kinds)], names[len(kinds) :]
    body = [_copy(values[k]) for k in sorted(updated) if kinds[k].is_array]
    params, results = list(values), [values[k] for k in sorted(updated)]
    if adjoint:
        results = bars
        active = [k for k, kind in enumerate(kinds) if kind.active]
        zeros_like = nodes.attribute(nodes.name("np"), "zeros_like")
        for k, bar in zip(active, bars, strict=True):
            if k not in updated:
                zero = zero_like(values[k], kinds[k], zeros_like)
                body.append(nodes.assign(nodes.name(bar), zero))
                continue
            params.append(bar)
            if kinds[k].is_array:
                body.append(_copy(bar))
    call = nodes.call(inner.name, *map(nodes.name, names))
    last = inner.body[-1]
    returned = last.value if isinstance(last, ast.Return) else None
    body.append(ast.Expr(call) if returned is None else nodes.assign(returned, call))
    body.append(ast.Return(ast.Tuple([nodes.name(r) for r in results], ast.Load())))
    return nodes.define(name, params, body)


def _copy(name: str) -> ast.stmt:
    """``name = name.copy()``."""
    value = nodes.name(name)
    return nodes.assign(value, nodes.call(nodes.attribute(value, "copy")))

"""Source without side effects: it copies what a generated function updates, and returns that."""

from __future__ import annotations

import ast

from fwdad.reversible.arguments.kinds import Kind
from fwdad.reversible.lowering.cotangents import zero_like


def source_of_copies(
    name: str, code: str, inner: str, kinds: list[Kind], updated: set[int], *, adjoint: bool
) -> str:
    """The function ``name``, which calls the function ``inner`` of a source with copies.

    ``kinds`` are those of its values, ``updated`` the positions of those that it updates. With
    ``adjoint`` it takes all values and the cotangents of those that are updated, and returns the
    cotangents of all numbers and arrays that have one.
    """
    definition = ast.parse(code[code.index(f"def {inner}(") :]).body[0]
    assert isinstance(definition, ast.FunctionDef)  # noqa: S101  (it begins with def)
    names = [a.arg for a in definition.args.args]
    last = definition.body[-1]
    lines = [f"{names[k]} = {names[k]}.copy()" for k in sorted(updated) if kinds[k].is_array]
    params = names[: len(kinds)]
    results = [names[k] for k in sorted(updated)]
    if adjoint:
        active = [k for k, kind in enumerate(kinds) if kind.active]
        results = names[len(kinds) :]
        for k, bar in zip(active, results, strict=True):
            if k not in updated:
                lines.append(f"{bar} = {zero_like(names[k], kinds[k], 'np')}")
                continue
            params.append(bar)
            if kinds[k].is_array:
                lines.append(f"{bar} = {bar}.copy()")
    call = f"{inner}({', '.join(names)})"
    if isinstance(last, ast.Return) and last.value is not None:
        call = f"{ast.unparse(last.value).strip('()')} = {call}"
    lines += [call, f"return ({', '.join(results)}{',' if results else ''})"]
    body = "".join(f"    {line}\n" for line in lines)
    return f"def {name}({', '.join(params)}):\n{body}"

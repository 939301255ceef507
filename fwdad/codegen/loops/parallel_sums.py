"""Long sums and other reductions on several cores, in the Numba source.

What is reduced to one number is reduced in blocks whose size depends on the lengths alone, and
their results are joined in order: so the number has the same bits however many threads there are.
Where several numbers are returned, each is reduced by one thread as it would be without.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from fwdad.codegen.loops.loop_lines import LoopLines
from fwdad.codegen.loops.notation import dtype_text
from fwdad.codegen.loops.parallel_elements import (
    REGION,
    SHORTEST,
    checks,
    dedented,
    longest_of,
    names_from_outside,
    nest_of_part,
    part_function,
    run_on_threads,
    work_of,
)

BLOCK = 16_384
"""About how many elements are reduced one after the other."""


@dataclass
class _Nest:
    """Nested loops as source, and the statements inside the innermost one."""

    index: list[str]
    lengths: list[str]
    inside: list[ast.stmt]


def _nest(statement: ast.stmt) -> _Nest:
    nest = _Nest([], [], [statement])
    while len(nest.inside) == 1 and isinstance(loop := nest.inside[0], ast.For):
        assert isinstance(loop.iter, ast.Call)
        nest.index.append(ast.unparse(loop.target))
        nest.lengths.append(ast.unparse(loop.iter.args[0]))
        nest.inside = loop.body
    return nest


def spread_total(loops: LoopLines, start: int, join: str) -> None:
    """Let a reduction to one number, written from line ``start`` on, run in blocks if it is long.

    The lines must be the first value and one statement in loops; ``join`` is the statement that
    joins ``partial[part]``.
    """
    first, nested = _unchecked(loops, start).body
    assert isinstance(first, ast.Assign)
    total, identity = ast.unparse(first.targets[0]), ast.unparse(first.value)
    nest = _nest(nested)
    conditions = checks(nest.inside[0], dict(zip(nest.index, nest.lengths, strict=True)))
    if conditions is None:
        return
    outside_names = _outside_names(nest, {total})
    comma = "".join(f"{each}, " for each in outside_names)
    name = loops.names.temporary(total)
    dtype = dtype_text(loops.names.types[total].dtype)
    in_blocks = [*outside_names, "split", "length", "size"]
    loops.outlined += [
        *part_function(
            name,
            [*outside_names, "split"],
            [f"{total} = {identity}", *_part(nest), f"return {total}"],
        ),
        *part_function(
            f"{name}_of_blocks",
            [*in_blocks, "partial"],
            [
                "for part in range(first, last):",
                "    stop = min((part + 1) * size, length)",
                f"    partial[part] = {name}({comma}split, part * size, stop)",
            ],
        ),
        f"@{REGION}",
        f"def {name}_on_threads({', '.join(in_blocks)}):",
        "    blocks = (length + size - 1) // size",
        f"    partial = np.empty((blocks,), {dtype})",
        *(
            f"    {line}"
            for line in run_on_threads(f"{name}_of_blocks", [*in_blocks, "partial"], "0", "blocks")
        ),
        f"    {total} = {identity}",
        "    for part in range(blocks):",
        f"        {join}",
        f"    return {total}",
        "",
    ]
    length, split = _longest(nest.lengths)
    rest = " * ".join(f"({n} if {split} != {k} else 1)" for k, n in enumerate(nest.lengths))
    size = f"max({BLOCK} // max({rest}, 1), 1)" if len(nest.lengths) > 1 else str(BLOCK)
    work = work_of(nest.inside[0])
    _replace(loops, start, conditions, [
        f"if {' * '.join(nest.lengths)} >= {SHORTEST // work}:",
        f"    {total} = {name}_on_threads({comma}{split}, {length}, {size})",
        "else:",
        f"    {total} = {name}({comma}0, 0, {nest.lengths[0]})",
    ])  # fmt: skip


def spread_rows(loops: LoopLines, start: int) -> None:
    """Let reductions to an element each, written from line ``start`` on, use several cores.

    The lines must be loops over the results; in them the first value, one statement in loops, and a
    store.
    """
    nest = _nest(_unchecked(loops, start).body[0])
    _, nested, store = nest.inside
    inner = _nest(nested)
    index = dict(zip([*nest.index, *inner.index], [*nest.lengths, *inner.lengths], strict=True))
    found, of_store = (checks(statement, index) for statement in (inner.inside[0], store))
    if found is None or of_store is None:
        return
    outside = sorted({*_outside_names(nest), *_outside_names(inner, {*nest.index})} - _stored(nest))
    comma = "".join(f"{each}, " for each in outside)
    name = loops.names.temporary("rows")
    loops.outlined += part_function(name, [*outside, "split"], _part(nest))
    length, split = _longest(nest.lengths)
    total = " * ".join([*nest.lengths, *inner.lengths])
    work = work_of(inner.inside[0])
    _replace(loops, start, list(dict.fromkeys([*found, *of_store])), [
        f"if {length} > 1 and {total} >= {SHORTEST // work}:",
        *(f"    {line}" for line in run_on_threads(name, [*outside, split], "0", length)),
        "else:",
        f"    {name}({comma}0, 0, {nest.lengths[0]})",
    ])  # fmt: skip


def _unchecked(loops: LoopLines, start: int) -> ast.Module:
    """The lines from ``start`` on, with indices that are not checked where they are used."""
    tree = ast.parse("\n".join(dedented(loops.code.lines[start:])[1]))
    nodes = list(ast.walk(tree))
    index = list(dict.fromkeys(ast.unparse(n.target) for n in nodes if isinstance(n, ast.For)))
    unchecked = dict(zip(index, loops.index_names(len(index), inner=True), strict=True))
    for node in nodes:
        if isinstance(node, ast.Name):
            node.id = unchecked.get(node.id, node.id)
    return tree


def _stored(nest: _Nest) -> set[str]:
    nodes = [node for s in nest.inside for node in ast.walk(s)]
    return {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def _outside_names(nest: _Nest, own: Collection[str] = ()) -> list[str]:
    """What loops read from outside."""
    return names_from_outside([*nest.inside, *map(ast.parse, nest.lengths)], {*nest.index, *own})


def _part(nest: _Nest) -> list[str]:
    """The loops, one of them over a part of its range."""
    text = "\n".join(ast.unparse(s) for s in nest.inside)
    return nest_of_part(nest.index, nest.lengths, "split", text.splitlines())


def _longest(lengths: Sequence[str]) -> tuple[str, str]:
    """The greatest length, and its axis, as source that binds tightly."""
    most, split = longest_of(lengths)
    return most, f"({split})" if len(lengths) > 1 else split


def _replace(loops: LoopLines, start: int, tests: list[str], lines: list[str]) -> None:
    """Replace the lines from ``start`` on; the tests of each element move before them."""
    if tests:
        lines = [
            f"if not ({' and '.join(tests)}):",
            "    raise IndexError('lengths differ')",
            *lines,
        ]
    outside, _ = dedented(loops.code.lines[start:])
    loops.code.replace(start, [outside + line for line in lines])

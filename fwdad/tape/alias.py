"""Which memory a value may be: the arrays that it may share elements with."""

from __future__ import annotations

from fwdad.tape.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Load,
    Loop,
    Operand,
    Program,
    Value,
    is_array,
    values_in,
)

Roots = dict[Value, set[Value]]


def memory_of(program: Program, roots: Roots | None = None) -> Roots:
    """For each array value the parameters and allocations that it may be a window on.

    Parameters
    ----------
    program : Program
        What to analyse.
    roots : dict, optional
        Filled in; parameters may be given.

    Returns
    -------
    dict
        Value to the set of values that own its memory.
    """
    roots = {} if roots is None else roots
    for p in program.block.params:
        roots.setdefault(p, {p})
    _block(program.block, roots)
    return roots


def _of(operand: Operand, roots: Roots) -> set[Value]:
    return set().union(*(roots.get(v, {v}) for v in values_in(operand) if is_array(v)))


def _block(block: Block, roots: Roots) -> None:
    for op in block.ops:
        if isinstance(op, Load) and op.view:
            roots[op.outputs[0]] = _of(op.array, roots)
        elif isinstance(op, Apply):
            shared = [op.args[k] for k in op.views]
            for v in op.outputs:
                if is_array(v):
                    roots[v] = {v} | _of(shared, roots) if shared else {v}
        elif isinstance(op, Branch):
            _block(op.then, roots)
            _block(op.other, roots)
            for v, a, b in zip(op.outputs, op.then.results, op.other.results, strict=True):
                roots[v] = _of([a, b], roots)
        elif isinstance(op, Loop):
            _loop(op, roots)
        elif isinstance(op, Call):
            for v in op.outputs:
                roots[v] = {v} | _of(op.args, roots)
        else:
            for v in op.outputs:
                roots[v] = {v}


def _loop(op: Loop, roots: Roots) -> None:
    carried = op.carried
    for p, a in zip(carried, op.initial, strict=True):
        roots[p] = _of(a, roots)
    while True:
        before = [set(roots[p]) for p in carried]
        if op.test is not None:
            _block(op.test, roots)
        _block(op.body, roots)
        for p, r in zip(carried, op.body.results, strict=False):
            roots[p] = roots[p] | _of(r, roots)
        if before == [roots[p] for p in carried]:
            break
    for v, p in zip(op.outputs, carried, strict=True):
        roots[v] = set(roots[p])

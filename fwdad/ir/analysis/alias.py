"""Alias analysis: the arrays that a value may share memory with.

Parameters are assumed not to alias where the program writes into one of them, which its callers
guarantee, unless the program declares that they may (``together``).
"""

from __future__ import annotations

import operator
import types
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.ir.leaves import Leaves
from fwdad.ir.ops import (
    Apply,
    Block,
    Branch,
    Call,
    Check,
    Load,
    Loop,
    Operand,
    Program,
    Value,
    values_in,
    walk,
)
from fwdad.ir.primitives.argument_memory import are_disjoint
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.types import ArrayType
from fwdad.ops import Memory, record_of
from fwdad.rules.core.registry import find_rule

Roots = dict[Value, set[Value]]


def aliased_arguments(op: Apply) -> list[Operand]:
    """The arguments that an array returned by a call may alias; all, of an unknown function."""
    if _copies(op) or makes_its_own(op.function):
        return []
    positions = record_of(op.function).aliased
    if positions is not None:
        return [op.args[k] for k in positions]
    return [*op.args, *op.kwargs.values()]


def _copies(op: Apply) -> bool:
    """Whether a call of a function that may return a view returns a copy."""
    if op.kwargs.get("copy") is True and _is_of_numpy(op.function):
        return True
    if op.function is np.array:
        return op.kwargs.get("copy", True) is True
    if op.function is np.einsum:  # of one operand it may be a diagonal or a transpose
        arrays = sum(type(v.type) is ArrayType for v in values_in(op.args))
        return arrays > 1 or _letters(op) == "summed"
    if op.function is np.diag:  # of a vector it is a matrix of its own
        return op.outputs[0].type.ndim == 2
    if _makes_zeros(op) or _converts(op):
        return True
    return op.function is np.ndarray.astype and op.kwargs.get("copy", True) is True


def _makes_zeros(op: Apply) -> bool:
    """Whether a call takes the imaginary part of real numbers: zeros, which nobody may write."""
    return op.function is np.imag and all(v.type.dtype.kind != "c" for v in values_in(op.args))


def returns_read_only(op: Apply) -> bool:
    """Whether NumPy makes an array read-only that a call returns."""
    return record_of(op.function).read_only or _makes_zeros(op)


def _converts(op: Apply) -> bool:
    """Whether a call that may return its argument makes an array of another dtype of it."""
    record = record_of(op.function)
    if record.memory is not Memory.MAYBE or not (record.by_layout or record.passes):
        return False
    dtype = op.outputs[0].type.dtype
    return all(v.type.dtype != dtype for v in values_in(op.args))


def is_rearranged(op: Apply) -> bool:
    """Whether a call is an ``einsum`` that returns a view: a diagonal or permuted axes."""
    return op.function is np.einsum and _letters(op) == "kept"


def _letters(op: Apply) -> str:
    """``"kept"`` or ``"summed"``: what an ``einsum`` of one array does with letters; else empty."""
    if len(op.args) != 2 or op.kwargs or not isinstance(op.args[0], str):
        return ""
    terms, arrow, returned = op.args[0].replace(" ", "").partition("->")
    if not arrow or not (terms + returned).isalpha() or type(op.args[1]) is not Value:
        return ""
    return "kept" if set(terms) == set(returned) else "summed"


def makes_its_own(function: Callable[..., Any]) -> bool:
    """Whether a function's result is never a view of an argument."""
    if isinstance(function, Leaves):
        return makes_its_own(function.function)
    memory = record_of(function).memory
    if memory is not Memory.UNKNOWN:
        return memory is Memory.NEW
    if isinstance(function, np.ufunc) or isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    if getattr(operator, getattr(function, "__name__", ""), None) is function:
        return True
    if isinstance(function, types.MethodDescriptorType):
        return False
    if isinstance(function, Whole):
        return function.makes_its_own or makes_its_own(function.function)
    rule = find_rule(function)
    if rule is not None and rule.of_user:
        return rule.returns == "new"  # which is checked whenever it runs
    home = getattr(function, "__module__", None) or ""
    if not home or home.startswith("scipy."):  # f2py's functions name no module
        return rule is not None
    return _is_of_numpy(function)


def _is_of_numpy(function: Callable[..., Any]) -> bool:
    name = getattr(function, "__name__", "")
    return any(getattr(module, name, None) is function for module in (np, np.linalg, np.fft))


def memory_of(program: Program, roots: Roots | None = None) -> Roots:
    """For each array value, the parameters and allocations that it may be a view of.

    ``roots`` may contain the parameters' entries, and is filled in. An allocation inside a loop is
    one value that stands for the arrays of all iterations.
    """
    roots = {} if roots is None else roots
    params = program.block.params
    for k, p in enumerate(params):
        roots.setdefault(p, {params[program.together[k]] if k < len(program.together) else p})
    _block(program.block, roots)
    return roots


def memory(operand: Operand, roots: Roots) -> set[Value]:
    """The memory that the arrays in a structure of operands may alias."""
    arrays = [v for v in values_in(operand) if type(v.type) is ArrayType]
    return set().union(*(roots.get(v) or {v} for v in arrays)) if arrays else set()


def results_apart(program: Program) -> list[bool]:
    """For each result, whether it is an array in memory of its own.

    It shares none with a parameter or another result.
    """
    roots, results = memory_of(program), program.block.results
    held = [memory(r, roots) if isinstance(r, Value) else set() for r in results]
    given = {root for p in program.block.params for root in memory(p, roots)}
    counts = Counter(root for each in held for root in each)
    return [
        bool(each) and each.isdisjoint(given) and all(counts[root] == 1 for root in each)
        for each in held
    ]


def with_companions(some: set[Value], roots: Roots) -> set[Value]:
    """Some memory, and all memory that a name may be instead of it: names of one phi."""
    groups = [memory for memory in roots.values() if len(memory) > 1]
    found = set(some)
    while added := [memory for memory in groups if memory & found and not memory <= found]:
        found.update(*added)
    return found


def may_overlap(a: Value, b: Value, roots: Roots, params: set[Value]) -> bool:
    """Whether two arrays may share memory; any two parameters may."""
    ra, rb = roots.get(a, {a}), roots.get(b, {b})
    return bool(ra & rb) or bool(ra & params and rb & params)


def pairs_apart(program: Program) -> set[frozenset[int]]:
    """The pairs of parameters of which a program checks itself, first, that they are disjoint."""
    places = {v: k for k, v in enumerate(program.block.params)}
    asked = {
        op.outputs[0]: frozenset(places.get(v, -1) for v in values_in(op.args))
        for op in program.block.ops
        if isinstance(op, Apply) and op.function is are_disjoint
    }
    checks = [op.condition for op in program.block.ops if isinstance(op, Check)]
    return {asked[c] for c in checks if isinstance(c, Value) and c in asked}


def alone_by_checks(program: Program) -> set[Value]:
    """The parameters of which a program checks that they are disjoint from all other arrays."""
    arrays = [k for k, v in enumerate(program.block.params) if type(v.type) is ArrayType]
    apart = pairs_apart(program)
    return {
        program.block.params[k]
        for k in arrays
        if apart and all(frozenset((k, m)) in apart for m in arrays if m != k)
    }


def memory_here(block: Block) -> Roots:
    """As :func:`memory_of`, but within one iteration: what a loop carries is memory of its own."""
    roots: Roots = {p: {p} for p in block.params}
    _block(block, roots, here=True)
    return roots


def _block(block: Block, roots: Roots, *, here: bool = False) -> None:
    for op in block.ops:
        if isinstance(op, Apply):
            arrays = [v for v in op.outputs if type(v.type) is ArrayType]
            if arrays:
                shared = memory(aliased_arguments(op), roots)
                roots.update((v, {v} | shared) for v in arrays)
        elif isinstance(op, Load) and op.view:
            roots[op.outputs[0]] = memory(op.array, roots)
        elif isinstance(op, Branch):
            _block(op.then, roots, here=here)
            _block(op.other, roots, here=here)
            for v, a, b in zip(op.outputs, op.then.results, op.other.results, strict=True):
                roots[v] = memory([a, b], roots)
        elif isinstance(op, Loop) and here:
            roots.update((v, {v}) for v in (*op.carried, *op.outputs))
            for inner in op.blocks():
                _block(inner, roots, here=True)
        elif isinstance(op, Loop):
            _loop(op, roots)
        elif isinstance(op, Call) and op.program.interpreted:
            _called(op, roots)
        elif isinstance(op, Call):
            shared = memory(op.args, roots)
            roots.update((v, {v} | shared) for v in op.outputs if type(v.type) is ArrayType)
        else:
            for v in op.outputs:
                roots[v] = {v}


def _called(op: Call, roots: Roots) -> None:
    """The memory of what a program returns that calls no other."""
    inside = memory_of(op.program)
    given = dict(zip(op.program.block.params, op.args, strict=True))
    for v, r in zip(op.outputs, op.program.block.results, strict=True):
        owners = memory(r, inside)
        taken = memory([given[p] for p in owners if p in given], roots)
        roots[v] = taken if owners <= given.keys() else {v} | taken


def _loop(op: Loop, roots: Roots) -> None:
    carried = op.carried
    for p, a in zip(carried, op.initial, strict=True):
        roots[p] = memory(a, roots)
    while True:
        before = [set(roots[p]) for p in carried]
        if op.test is not None:
            _block(op.test, roots)
        _block(op.body, roots)
        for p, r in zip(carried, op.body.results, strict=False):
            roots[p] = roots[p] | memory(r, roots)
        if before == [roots[p] for p in carried]:
            break
    for v, p in zip(op.outputs, carried, strict=True):
        roots[v] = set(roots[p])


def written_parameters(program: Program) -> list[bool]:
    """For each parameter, whether the program writes into it, directly or through a view."""
    targets = [v for op in walk(program.block) for v in op.writes()]
    if not targets:
        return [False] * len(program.block.params)
    roots = memory_of(program)
    written: set[Value] = set().union(*(roots.get(v, {v}) for v in targets))
    return [bool(roots[p] & written) for p in program.block.params]

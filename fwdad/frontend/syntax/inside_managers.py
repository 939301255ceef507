"""What is traced inside of a lock, or of ``np.errstate`` that raises.

A tape holds no lock: what it computes depends on its inputs alone, which it reads when it begins.
Where NumPy would raise at a division by zero, an overflow or an invalid operation, it otherwise
leaves an infinity or NaN: then the program itself runs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np

from fwdad.errors import Location, UntraceableError
from fwdad.frontend.syntax.raising import writes_outside
from fwdad.ir.analysis.effects import risk
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.ops import (
    Apply,
    Block,
    Check,
    Effect,
    Load,
    Op,
    Store,
    Update,
    Value,
    type_of_operand,
    walk,
)
from fwdad.ir.other_way import OtherWayError
from fwdad.ir.primitives.opaque_call import Whole
from fwdad.ir.symbol import Symbol
from fwdad.ir.types import Number
from fwdad.ops import Risk, record_of
from fwdad.rules.core.registry import function_name


def refuse_shared(recorder: Recorder, ops: list[Op], place: Location | None) -> None:
    """Refuse operations inside of a lock that other threads may see, or that Python makes."""
    for op in walk(Block(ops=ops)):
        by_python = isinstance(op, Apply) and isinstance(op.function, Whole)
        if by_python or isinstance(op, Effect) or writes_outside(recorder, op):
            what = "a call that Python makes" if by_python else "output, or a store that is seen,"
            message = (
                f"{what} inside of a lock cannot be traced, since a tape holds no lock: take the "
                "derivative without jit"
            )
            raise UntraceableError(message, op.location or place)


def is_checked(manager: np.errstate) -> bool:
    """Whether all that ``np.errstate`` raises is seen in results."""
    modes = _modes(manager)
    return "call" not in modes.values() and modes["under"] != "raise"


def raises(manager: np.errstate) -> bool:
    """Whether ``np.errstate`` raises."""
    return "raise" in _modes(manager).values()


def _modes(manager: np.errstate) -> dict[str, str]:
    with copy.copy(manager):  # each can be entered once
        return {kind: str(mode) for kind, mode in np.geterr().items()}


def check_finite(recorder: Recorder, ops: list[Op], first: int, place: Location | None) -> None:
    """Check that all that operations have computed is finite; else the program itself runs."""
    computed = [v for op in ops[first:] for v in _computed(op, place)]
    if not computed:
        return
    if recorder.ways is None or recorder.block.ops is not ops:
        raise UntraceableError(_refusal("a branch or another `try`"), place)
    recorder.ways.taken, recorder.ways.place = True, recorder.ways.place or place
    for v in computed:
        finite = recorder.apply(np.isfinite, (Symbol(v, recorder),), {})
        holds = recorder.apply(np.all, (finite,), {}) if finite.is_array else finite
        recorder.check(holds, OtherWayError, ("np.errstate raises",), place)


def _computed(op: Op, place: Location | None) -> Iterator[Value]:
    """What NumPy's arithmetic computes in an operation; raises if what it raises is not seen."""
    if isinstance(op, (Load, Check)) or risk(op) is Risk.QUIET:
        return
    if isinstance(op, (Store, Update)):
        if op.array.type.dtype != type_of_operand(op.value).dtype:
            raise UntraceableError(_refusal("a store that converts numbers"), op.location or place)
        return
    if not isinstance(op, Apply):
        raise UntraceableError(_refusal("a loop or a branch"), op.location or place)
    record = record_of(op.function)
    function = record.reduction or record.accumulation or record.stands_for or op.function
    name = getattr(function, "__name__", "")
    if record.own or all(isinstance(v.type, Number) and v.type.python for v in op.outputs):
        return
    if isinstance(function, np.ufunc) and getattr(np, name, None) is function:
        kinds = {v.type.dtype.kind for v in op.outputs}
        if not kinds <= set("fcb"):  # an integer holds no infinity: 6 // 0 is 0
            raise UntraceableError(_refusal(f"numpy.{name} of integers"), op.location or place)
        yield from (v for v in op.outputs if v.type.dtype.kind in "fc")
        return
    if record.made_of_values or record.fill is not None or record.about_types:
        return
    dtypes = {t.dtype for t in map(type_of_operand, op.operands()) if t is not None}
    if (record.moves or record.joins) and dtypes <= {v.type.dtype for v in op.outputs}:
        return
    raise UntraceableError(_refusal(function_name(op.function)), op.location or place)


def _refusal(what: str) -> str:
    return (
        f"{what} inside of `np.errstate` that raises cannot be traced: enter it outside of the "
        "function, or around less"
    )

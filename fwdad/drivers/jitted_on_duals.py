"""Calls of functions under ``jit`` from lifted code, whose arguments may be duals."""

from __future__ import annotations

import inspect
import operator
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.specialisation import Specialisation
from fwdad.drivers.strategy import Candidate, first_that_can, note_tape
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.eager.run import STATE, Tag
from fwdad.frontend.arguments import Flattened
from fwdad.ir.other_way import OtherWayError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.plain import plain


def call_on_duals(f: Jitted[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the traced program, pushed forward where an argument is active.

    A function that captures active values has no tape, which would hold them as they are now.
    """
    if is_active(_captured(f)):
        return call(f.__wrapped__, *args, **kwargs)
    return first_that_can(
        "pushforward",
        f,
        Candidate("tape", lambda: push_on_duals(f, args, kwargs)),
        Candidate("duals", lambda: call(f.__wrapped__, *args, **kwargs)),
    )


def _captured(f: Any) -> list[Any]:
    """The values of the free variables of a function, or of the one that it wraps."""
    function = inspect.unwrap(f)
    if not isinstance(function, types.FunctionType) or not function.__closure__:
        return []
    values = []
    for cell in function.__closure__:
        try:
            values.append(cell.cell_contents)
        except ValueError:  # a name that is not bound yet
            continue
    return values


def push_on_duals(f: Jitted[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the tape, pushed forward, or an :class:`Untraced` where it cannot be."""
    split = _Split()
    flat = Flattened(args, kwargs, split=split)
    if split.reason:
        return Untraced(f, reason=split.reason)
    made, leaves, _ = f.find_flat(flat)
    tag = split.tag
    reason = _why_not_run(made, leaves, tag)
    if reason:
        return Untraced(f, reason=reason)
    note_tape(made)
    if tag is None:
        return _run(f, made, flat, leaves)
    duals = [*flat.notes, *leaves[len(flat.notes) :]]  # behind the arguments, what it captures
    lanes = [x.t.lanes if isinstance_dual(x) else None for x in duals]
    written = [k for k, held in enumerate(made.tape.program.written) if held]
    for k in written:  # on copies, whose content is then stored as any other is
        leaves[k], given = leaves[k].copy(order="K"), lanes[k]
        if leaves[k].dtype.kind in "fc":
            zeros = np.zeros((tag.n, *leaves[k].shape), leaves[k].dtype)
            lanes[k] = zeros if given is None else given + zeros
    run, constants = f.push(made, tag.n, tuple(t is not None for t in lanes))
    try:
        results = run(*leaves, *[t for t in lanes if t is not None], *constants)
    except Exception as error:
        if not (written or made.tape.follows):
            raise
        return _instead(f, made, error)  # f itself leaves its arguments as far as it came
    half = len(results) // 2
    if _share_memory(results[:half], leaves):
        return Untraced(f, reason="it returns memory of other arrays, which have one tangent")
    for k in written:
        call(operator.setitem, duals[k], Ellipsis, _dual(leaves[k], lanes[k], tag))
    found = [_dual(p, t, tag) for p, t in zip(results[:half], results[half:], strict=True)]
    return made.tape.rebuild(found)


def _share_memory(results: Sequence[Any], leaves: list[Any]) -> bool:
    """Whether a result may be memory of an input, or of another result."""
    arrays = [x for x in leaves if isinstance(x, np.ndarray)]
    for p in results:
        if isinstance(p, np.ndarray):
            if any(np.may_share_memory(p, a) for a in arrays):
                return True
            arrays.append(p)
    return False


def _run(f: Jitted[..., Any], made: Specialisation, flat: Flattened, leaves: list[Any]) -> Any:
    """The value of plain arguments, perhaps by another tape."""
    if made.tape.follows:
        args, kwargs, _ = flat.rebuild(flat.leaves)
        return f(*args, **kwargs)
    return made.tape.rebuild(made.run(*leaves), flat.containers)


def _instead(f: Jitted[..., Any], made: Specialisation, error: Exception) -> Untraced:
    if isinstance(error, OtherWayError):
        return Untraced(f, reason="it takes another way than its tape")
    return Untraced(f, error, catches=made.tape.catches)


def _why_not_run(made: Specialisation, leaves: list[Any], tag: Tag | None) -> str:
    """Why a tape cannot be run in place of its function; empty if it can."""
    if any(made.tape.program.written):
        if tag is None:
            return "it writes into arrays that it is given"
        if made.tape.prints:  # it might have to be run again
            return "it writes into arrays that it is given, and prints"
    if made.tape.aliased(leaves):
        return "two arrays that it reads share memory"
    if is_active(leaves):
        return "what it reads from outside carries tangents"
    if tag is not None and made.tape.rebuild.needs_containers:  # the duals are in other containers
        return "it changes its arguments"
    return "there is no derivative call" if tag is not None and STATE.run is None else ""


class _Split:
    """Takes arguments apart: the primal of a leaf, and the leaf as it was given.

    ``tag`` is that of the duals, and ``reason`` why they have no tape, if they have none.
    """

    def __init__(self) -> None:
        self.tag: Tag | None = None
        self.reason = ""

    def __call__(self, given: Any) -> tuple[Any, Any]:
        """The primal, and what was given."""
        x = explicit(given)
        if type(x) is not Scalar and type(x) is not Array:
            return x, x
        if type(x.p) in (Scalar, Array) or (self.tag is not None and x.tag is not self.tag):
            self.reason = "its arguments are duals of more than one derivative"
            return plain(x), x  # nothing will be run with it
        if x.tag.record is not None:
            self.reason = "its run is recorded for a reverse pass"
        self.tag = x.tag
        return x.p, x


def _dual(p: Any, lanes: Any, tag: Any) -> Any:
    if isinstance(p, np.ndarray):
        return Array(p, Chunk(lanes), tag) if p.dtype.kind in "fc" else p
    if isinstance(p, (bool, int, np.bool_, np.integer)):
        return p
    chunk = Chunk(lanes)
    return Scalar(p, dict.fromkeys(chunk.terms, 1.0), tag)

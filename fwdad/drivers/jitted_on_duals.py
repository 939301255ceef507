"""Calls of functions under ``jit`` from lifted code, whose arguments may be duals."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fwdad.core.fallbacks import Untraced
from fwdad.drivers.jitted_function import Jitted, Specialisation
from fwdad.drivers.strategy import Candidate, first_that_can, note_tape
from fwdad.eager.activity import is_active
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.array import Array
from fwdad.eager.duals.explicit import explicit, with_explicit
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.duals.tags import top_tag
from fwdad.eager.run import STATE
from fwdad.frontend.arguments import is_record
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.namespaces import namespace_of
from fwdad.tangents.objects import attributes_of


def call_on_duals(f: Jitted[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the traced program, pushed forward where an argument is active."""
    args = with_explicit(args)
    return first_that_can(
        "pushforward",
        f,
        Candidate("tape", lambda: push_on_duals(f, args, kwargs)),
        Candidate("duals", lambda: call(f.__wrapped__, *args, **kwargs)),
    )


def push_on_duals(f: Jitted[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the tape, pushed forward, or an :class:`Untraced` where it cannot be."""
    flat = _DualArguments(args, kwargs) if is_active((*args, *kwargs.values())) else None
    reason = _why_not_split(flat, args, kwargs)
    if reason:
        return Untraced(f, reason=reason)
    made, leaves, containers = f.find(*((args, kwargs) if flat is None else flat.primals))
    reason = _why_not_run(made, leaves, pushed=flat is not None)
    if reason:
        return Untraced(f, reason=reason)
    note_tape(made)
    if flat is None:
        return made.tape.rebuild(made.run(*leaves), containers)
    captured = leaves[len(flat.given) :]
    lanes = [None if t is None else t.lanes for t in [*flat.tangents, *[None] * len(captured)]]
    written = [k for k, held in enumerate(made.tape.program.written) if held]
    for k in written:  # on copies, whose content is then stored as any other is
        leaves[k], given = leaves[k].copy(order="K"), lanes[k]
        if leaves[k].dtype.kind in "fc":
            zeros = np.zeros((flat.tag.n, *leaves[k].shape), leaves[k].dtype)
            lanes[k] = zeros if given is None else given + zeros
    run, constants = f.push(made, flat.tag.n, tuple(t is not None for t in lanes))
    results = run(*leaves, *[t for t in lanes if t is not None], *constants)
    half = len(results) // 2
    duals = [_dual(p, t, flat.tag) for p, t in zip(results[:half], results[half:], strict=True)]
    if any(np.may_share_memory(p, leaves[k]) for p in results[:half] for k in written):
        return Untraced(f, reason="it returns memory of an array that it writes into")
    for k, target in enumerate([*flat.given, *captured]):
        if k in written:
            call(operator.setitem, target, Ellipsis, _dual(leaves[k], lanes[k], flat.tag))
    return made.tape.rebuild(duals)


def _why_not_split(flat: _DualArguments | None, args: Any, kwargs: Any) -> str:
    """Why arguments have no primals and tangents for a tape; empty if they do."""
    if _held_by_objects((*args, *kwargs.values())):
        return "an object among its arguments carries tangents"
    if flat is None:
        return ""
    if flat.tag is None or flat.nested:
        return "its arguments are objects, or duals of more than one derivative"
    return "its run is recorded for a reverse pass" if flat.tag.record is not None else ""


def _why_not_run(made: Specialisation, leaves: list[Any], *, pushed: bool) -> str:
    """Why a tape cannot be run in place of its function; empty if it can."""
    if any(made.tape.program.written) and not pushed:
        return "it writes into arrays that it is given"
    if made.tape.aliased(leaves):
        return "two arrays that it reads share memory"
    if is_active(leaves):
        return "what it reads from outside carries tangents"
    if pushed and made.tape.rebuild.needs_containers:  # the duals are in other containers
        return "it changes its arguments"
    return "there is no derivative call" if pushed and STATE.run is None else ""


def _held_by_objects(values: Any, met: tuple[int, ...] = ()) -> bool:
    """Whether an object among values, or nested in them, has an active attribute."""
    for x in values:
        t = type(x)
        if t is list or t is tuple or t is dict:
            if id(x) not in met and _held_by_objects(x.values() if t is dict else x, (*met, id(x))):
                return True
        elif t is not np.ndarray and t is not Array and t is not Scalar and is_record(x):
            if id(x) in met:
                continue
            held = attributes_of(x).values()
            if is_active(held) or _held_by_objects(held, (*met, id(x))):
                return True
    return False


def _dual(p: Any, lanes: Any, tag: Any) -> Any:
    if isinstance(p, np.ndarray):
        return Array(p, Chunk(lanes), tag) if p.dtype.kind in "fc" else p
    if isinstance(p, (bool, int, np.bool_, np.integer)):
        return p
    chunk = Chunk(lanes)
    return Scalar(p, dict.fromkeys(chunk.terms, 1.0), tag)


class _DualArguments:
    """The arguments of a call split into primals, in their structure, and the leaves' tangents."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.tag: Any = top_tag((*args, *kwargs.values()))
        self.nested = False
        self.tangents: list[Any] = []
        self.given: list[Any] = []
        self._arrays: set[int] = set()  # of one argument: an array is one leaf in it
        self.primals = (
            tuple(self._of_argument(a) for a in args),
            {k: self._of_argument(a) for k, a in kwargs.items()},
        )

    def _of_argument(self, x: Any) -> Any:
        self._arrays.clear()
        return self._take(x)

    def _leaf(self, given: Any, primal: Any, tangent: Any) -> Any:
        """Note a leaf, unless it is an array that the argument has elsewhere, too."""
        if isinstance(primal, np.ndarray):
            if id(primal) in self._arrays:
                return primal
            self._arrays.add(id(primal))
        self.given.append(given)
        self.tangents.append(tangent)
        return primal

    def _take(self, given: Any) -> Any:
        x = explicit(given)
        if type(x) is Scalar or type(x) is Array:
            if x.tag is not self.tag or type(x.p) in (Scalar, Array):
                self.nested = True
            return self._leaf(given, x.p, x.t)
        if isinstance(x, (tuple, list)):
            items = [self._take(item) for item in x]
            return tuple.__new__(type(x), items) if isinstance(x, tuple) else type(x)(items)
        if isinstance(x, dict):
            return {key: self._take(item) for key, item in x.items()}
        if isinstance(x, (np.ndarray, bool, int, float, complex, np.generic)):
            return self._leaf(given, x, None)
        if namespace_of(x) is not None and not callable(x):
            self.nested = True  # objects are run by the other evaluator
        return x

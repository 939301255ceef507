"""Calls of functions under ``jit`` from lifted code, whose arguments may be duals."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.drivers.jitted_function import Jitted
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


def call_on_duals(f: Jitted, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of the traced program, pushed forward where an argument is active."""
    args = with_explicit(args)
    if _held_by_objects((*args, *kwargs.values())):
        return call(f.__wrapped__, *args, **kwargs)
    if not is_active((*args, *kwargs.values())):
        made, leaves, containers = f.find(args, kwargs)
        writes = any(made.tape.program.written) or made.tape.aliased(leaves)
        if writes or is_active(leaves):  # what is captured may be active
            return call(f.__wrapped__, *args, **kwargs)
        return made.tape.rebuild(made.run(*leaves), containers)
    flat = _DualArguments(args, kwargs)
    if flat.tag is None or flat.nested or flat.tag.record is not None:  # no lanes to push
        return call(f.__wrapped__, *args, **kwargs)
    made, leaves, _ = f.find(*flat.primals)
    changes = any(made.tape.program.written) or made.tape.rebuild.needs_containers
    changes = changes or made.tape.aliased(leaves)
    if changes or is_active(leaves) or STATE.run is None:  # the duals are in other containers
        return call(f.__wrapped__, *args, **kwargs)
    missing = len(leaves) - len(flat.tangents)
    tangents = [*flat.tangents, *[None] * missing]
    active = tuple(t is not None for t in tangents)
    run, constants = f.push(made, flat.tag.n, active)
    lanes = [t.lanes for t in tangents if t is not None]
    results = run(*leaves, *lanes, *constants)
    half = len(results) // 2
    duals = [_dual(p, t, flat.tag) for p, t in zip(results[:half], results[half:], strict=True)]
    return made.tape.rebuild(duals)


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
            held = vars(x).values()
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
        self.tag = top_tag((*args, *kwargs.values()))
        self.nested = False
        self.tangents: list[Any] = []
        self.primals = (
            tuple(self._take(a) for a in args),
            {k: self._take(a) for k, a in kwargs.items()},
        )

    def _take(self, x: Any) -> Any:
        x = explicit(x)
        if type(x) is Scalar or type(x) is Array:
            if x.tag is not self.tag or type(x.p) in (Scalar, Array):
                self.nested = True
            self.tangents.append(x.t)
            return x.p
        if isinstance(x, (tuple, list)):
            items = [self._take(item) for item in x]
            return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
        if isinstance(x, dict):
            return {key: self._take(item) for key, item in x.items()}
        if isinstance(x, (np.ndarray, bool, int, float, complex, np.generic)):
            self.tangents.append(None)
            return x
        if namespace_of(x) is not None and not callable(x):
            self.nested = True  # objects are run by the other evaluator
        return x

"""The call that a value belongs to, and its primal and tangent there."""

from __future__ import annotations

from typing import Any

from fwdad.eager.duals.array import Array
from fwdad.eager.duals.dual import OPAQUE, check_alive
from fwdad.eager.duals.scalar import Scalar
from fwdad.eager.run import Tag
from fwdad.tangents.zero import ZERO


def isinstance_dual(x: Any) -> bool:
    """Whether x is a dual, despite its ``__class__``."""
    t = type(x)
    return t is Scalar or t is Array


def top_tag(values: Any, top: Tag | None = None) -> Tag | None:
    """The innermost call that any of the values, or any item of lists and dicts, belongs to."""
    for x in values:
        t = type(x)
        if t is Scalar or t is Array:
            tag = x.tag
            if top is not tag:
                if not tag.alive:
                    check_alive(tag)
                if top is None or tag.order > top.order:
                    top = tag
        elif (t is list or t is tuple) and x:
            top = top_tag(x, top)
        elif t is dict and x:
            top = top_tag(x.values(), top)
        elif OPAQUE and t in OPAQUE:
            check_alive(x.tag)
            if top is None or x.tag.order > top.order:
                top = x.tag
    return top


def split(x: Any, tag: Tag) -> tuple[Any, Any]:
    """The primal and tangent of a value with respect to one call; containers are split by item."""
    t = type(x)
    if t is Scalar or t is Array:
        return (x.p, x.t) if x.tag is tag else (x, ZERO)
    if (t is list or t is tuple) and top_tag(x) is not None:
        pairs = [split(item, tag) for item in x]
        return t(p for p, _ in pairs), t(d for _, d in pairs)
    if t is dict and top_tag(x.values()) is not None:
        both = {key: split(item, tag) for key, item in x.items()}
        return {k: p for k, (p, _) in both.items()}, {k: d for k, (_, d) in both.items()}
    if OPAQUE and t in OPAQUE and x.tag is tag:
        return x.p, x.t
    return x, ZERO

"""Lengths and other ints that may be symbols."""

from __future__ import annotations

import operator
from typing import Any

from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.builder.recorder import Recorder
from fwdad.ir.primitives.ranges import range_length


def binary_add(tracer: Tracer, a: Any, b: Any) -> Any:
    """``a + b``."""
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    return tracer.binary(operator.add, a, b)


def binary_sub(tracer: Tracer, a: Any, b: Any) -> Any:
    """``a - b``."""
    return a if isinstance(b, int) and b == 0 else tracer.binary(operator.sub, a, b)


def binary_mul(tracer: Tracer, a: Any, b: Any) -> Any:
    """``a * b``."""
    return a if isinstance(b, int) and b == 1 else tracer.binary(operator.mul, a, b)


def length_of_range(recorder: Recorder, start: Any, stop: Any, step: Any) -> Any:
    """The length of a range with bounds that may be symbols."""
    return recorder.apply(range_length, (start, stop, step), {})


def shortest(recorder: Recorder, lengths: list[Any]) -> Any:
    """The smallest of several lengths."""
    known = [n for n in lengths if isinstance(n, int)]
    others = [n for n in lengths if not isinstance(n, int)]
    values = {id(n.value) for n in others}
    if not known and len(values) == 1:
        return others[0]
    if not others:
        return min(known)
    return recorder.apply(min, (*([min(known)] if known else []), *others), {})

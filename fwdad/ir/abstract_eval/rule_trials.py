"""Checks of users' rules on tapes: on samples while tracing, and of lengths at run time."""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, Location, RuleError
from fwdad.ir.abstract_eval.samples import run_on_sample, sample_of
from fwdad.ir.ops import Operand, Value, map_values, values_in
from fwdad.ir.symbol import Length, Symbol
from fwdad.ir.types import CannotInferError, Size
from fwdad.rules.core.containers import rebuild, walk
from fwdad.rules.core.contract import check_memory, undeclared_write
from fwdad.rules.core.registry import Rule
from fwdad.tangents.chunk import Chunk

_LENGTHS = (2, 24)  # a function may need more than two


def check_on_samples(
    rule: Rule, args: Operand, kwargs: dict[str, Operand], place: Location | None
) -> None:
    """Check that a function writes and returns only the memory that its rule declares.

    The function of a user's rule is called on samples if it is declared pure. ``RuleError`` if it
    writes into an argument, or returns memory that it should not.
    """
    unknown = {d for v in values_in([args, kwargs]) for d in v.type.shape if isinstance(d, Size)}
    hints = {d: d.hint for d in unknown if d.hint is not None}
    for length in _LENGTHS:
        sizes = {**dict.fromkeys(unknown, length), **hints}

        def sample(v: Value, sizes: dict[Size, int] = sizes) -> Any:
            return sample_of(v.type, sizes, 0.75)

        given: Any = map_values(sample, [args, kwargs])
        before = rebuild(given, lambda _, v: v.copy() if isinstance(v, np.ndarray) else v)
        try:
            y = run_on_sample(rule.function, *given)
        except CannotInferError:  # it may have effects: what it does is seen when the tape runs
            return
        except Exception:  # noqa: BLE001, S112  (it is not defined there)
            continue
        for (path, now), (_, old) in zip(walk(given), walk(before), strict=True):
            if isinstance(old, np.ndarray) and now.tobytes() != old.tobytes():
                raise RuleError(undeclared_write(rule, path[1]), place)
        check_memory(rule, y, given, place)
        return


def check_lengths_of(recorder: Any, rule: Rule, y: Any, y_dot: Any, place: Location | None) -> None:
    """Record checks that a user's tangent is as long as its value, where lengths are unknown."""
    if isinstance(y, (tuple, list)):
        if isinstance(y_dot, (tuple, list)):
            for part, t in zip(y, y_dot, strict=True):
                check_lengths_of(recorder, rule, part, t, place)
        return
    if not isinstance(y_dot, Chunk):
        return
    shape = y.shape if type(y) is Symbol else np.shape(y)
    for axis, (m, n) in enumerate(zip(y_dot.shape, shape, strict=True)):
        if m != n:
            own, wanted = (x.symbol if isinstance(x, Length) else x for x in (m, n))
            message = (
                f"{rule.place} returns a tangent whose length along axis {axis} differs from its "
                "value's"
            )
            recorder.check(own == wanted, ChunkMismatchError, (message,), place)

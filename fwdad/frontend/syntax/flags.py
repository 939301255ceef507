"""``a.flags`` of arrays."""

from __future__ import annotations

from typing import Any

from fwdad.errors import UntraceableError
from fwdad.frontend.calls.tables import ATTRIBUTES_OF
from fwdad.frontend.syntax.symbols import OfTrace
from fwdad.frontend.syntax.tracer import Tracer
from fwdad.ir.primitives.argument_memory import is_c_contiguous
from fwdad.ir.symbol import Symbol


class Flags(OfTrace):
    """``a.flags`` of an array that is unknown until run time."""

    def __init__(self, array: Symbol) -> None:
        self.array = array


def _flag(tracer: Tracer, flags: Flags, name: str) -> Any:
    recorder = tracer.recorder
    owners = recorder.definitions.owners(flags.array.value)
    if name == "writeable" and owners.isdisjoint(recorder.lengths.inputs):
        return True  # the program has made it
    if name == "c_contiguous":
        return recorder.apply(is_c_contiguous, (flags.array,), {})
    message = f"'flags' of an array that is unknown until run time cannot be traced ({name})"
    raise UntraceableError(message, tracer.position.location())


ATTRIBUTES_OF[Flags] = _flag


def item_of_flags(tracer: Tracer, flags: Flags, key: Any) -> Any:
    """``a.flags["C_CONTIGUOUS"]``, the attribute of that name."""
    return _flag(tracer, flags, key.lower() if isinstance(key, str) else repr(key))

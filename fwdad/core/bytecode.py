"""What bytecode does, of functions whose source was not kept."""

from __future__ import annotations

import dis
from types import CodeType

# by beginnings, since versions of Python join loads of two names into one instruction
_PASSES_ON = (
    "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "LOAD_FAST", "LOAD_DEREF",
    "LOAD_CONST", "LOAD_SMALL_INT", "BUILD_TUPLE", "BUILD_LIST", "RETURN_",
)  # fmt: skip


def only_passes_on(code: CodeType) -> bool:
    """Whether a function only puts its arguments, and constants, together."""
    names = (i.opname for i in dis.get_instructions(code))
    return not code.co_flags & _GENERATES and all(n.startswith(_PASSES_ON) for n in names)


_GENERATES = 0x20 | 0x80 | 0x200  # generators, coroutines, and both

"""How deeply branches and loops of a program are nested."""

from __future__ import annotations

from fwdad.errors import UntraceableError
from fwdad.ir.ops import Block

_DEEPEST = 90  # Python's parser takes 100 levels of indentation, of the code that we write, too


def refuse_deep(block: Block) -> None:
    """Refuse what is nested so deeply that no source can be written."""
    waiting = [(block, 0)]
    while waiting:
        outer, depth = waiting.pop()
        for op in outer.ops:
            if op.nests and depth == _DEEPEST:
                message = (
                    f"more than {_DEEPEST} branches and loops are nested here, those of called "
                    "functions and of each `elif` among them, and Python's parser takes no more: "
                    "use a table or np.select in place of the branches"
                )
                raise UntraceableError(message, op.location)
            waiting += [(inner, depth + 1) for inner in op.blocks()]

"""Generated source with the lines of the user's that it comes from, as comments."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any


def annotated(code: str, places: list[Any]) -> str:
    """Generated source as it is shown.

    Parameters
    ----------
    code : str
        The source that runs.
    places : list of Location or None
        Where each of its lines comes from.

    Returns
    -------
    str
        With the user's line above the first of the lines that come from it, or behind it where
        both are the same. What stands inside a loop or a branch does not repeat the line of that.
        Of a file that cannot be read, the place alone.
    """
    made: list[str] = []
    open_blocks: list[tuple[int, Any]] = []  # the indentation of a block's head, and its line
    last = None
    for line, place in zip(code.splitlines(), places, strict=True):
        indent = len(line) - len(line.lstrip())
        while open_blocks and open_blocks[-1][0] >= indent:
            open_blocks.pop()
        mark = place and (place.filename, place.line)
        repeated = mark == last or any(mark == held for _, held in open_blocks)
        if place is None or repeated or line.strip() == "else:":
            made.append(line)
        else:
            last = mark
            where = f"{PurePath(place.filename).name}:{place.line}"
            text = (place.text or "").strip()
            if not text or _plain(text) == line.strip():
                made.append(f"{line}  # {where}")
            else:
                made += [f"{line[:indent]}# {where}: {text}", line]
        if line.endswith(":"):
            open_blocks.append((indent, mark))
    return "\n".join(made) + "\n"


def _plain(text: str) -> str:
    """A line without the comment behind it; quotes may hold what looks like one."""
    return text.partition("  #")[0].rstrip()

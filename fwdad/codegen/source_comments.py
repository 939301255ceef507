"""Generated source annotated with the user's lines that it comes from, as comments."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from fwdad.display.words import file_in_words


def annotated(code: str, places: list[Any]) -> str:
    """Generated source with the user's lines as comments, as it is shown.

    A user's line stands above the first generated line that comes from it, and is not repeated
    inside its own loop or branch. The location alone is shown where both lines are the same, or the
    file cannot be read.
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
            where = f"{PurePath(file_in_words(place.filename)).name}:{place.line}"
            text = (place.text or "").strip()
            if not text or _plain(text) == line.strip():
                made.append(f"{line}  # {where}")
            else:
                made += [f"{line[:indent]}# {where}: {text}", line]
        if line.endswith(":"):
            open_blocks.append((indent, mark))
    return "\n".join(made) + "\n"


def _plain(text: str) -> str:
    """A line without the comment behind it; a ``#`` inside quotes may be taken for one."""
    return text.partition("  #")[0].rstrip()

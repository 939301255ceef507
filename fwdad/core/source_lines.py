"""Lines of source, as a traceback shows them, and the columns that an instruction came from."""

from __future__ import annotations

import unicodedata
from types import CodeType


def shown(
    filename: str,
    line: int,
    text: str | None,
    column: int = 1,
    end_line: int | None = None,
    end_column: int | None = None,
) -> str:
    """Format a place in source as a traceback does: file and line, source line, carets."""
    head = f'  File "{filename}", line {line}'
    text = (text or "").rstrip()
    code = text.lstrip()
    if not code:
        return head
    start = max(column - 1 - (len(text) - len(code)), 0)
    end = len(code)
    if end_column is not None and end_line in (None, line):
        end = end_column - 1 - (len(text) - len(code))
    before = "".join(c if c.isspace() else " " * _width(c) for c in code[:start])
    carets = "^" * max(sum(map(_width, code[start:end])), 1)
    return f"{head}\n    {code}\n    {before}{carets}"


def _width(character: str) -> int:
    """How many columns of a terminal a character takes."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns_of(
    code: CodeType, instruction: int
) -> tuple[int | None, int | None, int | None, int | None]:
    """Line, end line, column and end column of an instruction, the columns in bytes of UTF-8."""
    for index, position in enumerate(code.co_positions()):
        if index == instruction // 2:
            return position
    return (None, None, None, None)


def characters(line: str, utf8_offset: int) -> int:
    """The characters before a byte of a line."""
    return len(line.encode()[:utf8_offset].decode(errors="replace"))

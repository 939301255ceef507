"""Python source as HTML: loops and branches fold, and each line can tell where it comes from."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from fwdad.display.html import Html, folded, joined, tag, text

FEW = 30  # lines of a source of which everything is seen at first
_TOKENS = re.compile(
    r"""(?P<comment>\#.*)|(?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|(?P<word>[^\W\d]\w*)"""
)


@dataclass(frozen=True)
class Line:
    """A line of source.

    ``kept`` tells what it makes, a type; ``place`` says where it comes from, and ``origin`` is the
    text there. ``group`` is the part of the source that it belongs to: ``"forward"`` or
    ``"reverse"``, or nothing.
    """

    code: str
    kept: str = ""
    place: str = ""
    origin: str = ""
    group: str = ""


def highlighted(code: str, title: Callable[[str], str] = lambda _: "") -> Html:
    """One line of source with its keywords and comments marked; ``title`` tells of a name."""
    parts: list[object] = []
    at = 0
    for match in _TOKENS.finditer(code):
        parts.append(code[at : match.start()])
        found, at = match.group(), match.end()
        after_dot = code[: match.start()].endswith(".")
        if match.lastgroup == "comment":
            parts.append(tag("span", found, kind="fwdad-c"))
        elif match.lastgroup == "word" and keyword.iskeyword(found):
            parts.append(tag("span", found, kind="fwdad-k"))
        elif match.lastgroup == "word" and not after_dot and title(found):
            parts.append(tag("span", found, title=f"{found}: {title(found)}"))
        else:
            parts.append(found)
    return joined([*parts, code[at:]])


def listing(
    lines: Sequence[Line], title: Callable[[str], str] = lambda _: "", few: int = FEW
) -> Html:
    """Lines of source, of which the blocks fold; they are folded at first if it is long.

    Lines of a group stand together below its name.
    """
    opened = len(lines) <= few
    parts = []
    for group, members in groupby(_blocks(lines, 0), lambda block: block[0].group):
        shown = joined(_block(block, title, opened=opened) for block in members)
        if group:
            name = tag("div", f"{group} pass", kind="fwdad-name")
            shown = tag("div", name, shown, kind=f"fwdad-pass fwdad-{group}")
        parts.append(shown)
    width = max((len(line.place) for line in lines), default=0)
    return tag("div", *parts, kind="fwdad-code", style=f"--fwdad-at:{width + 2}ch" if width else "")


def plain_lines(source: str) -> list[Line]:
    """The lines of a source of which nothing else is known."""
    return [Line(code) for code in source.rstrip("\n").split("\n")]


def _indentation(line: Line) -> int:
    return len(line.code) - len(line.code.lstrip())


def _opens(code: str) -> bool:
    """Whether a line is the head of a block, with a comment behind it or not."""
    comments = (m.start() for m in _TOKENS.finditer(code) if m.lastgroup == "comment")
    return code[: next(comments, len(code))].rstrip().endswith(":")


def _blocks(lines: Sequence[Line], start: int) -> Iterator[list[Line]]:
    """Lines divided into statements: each has what is indented more deeply behind it."""
    while start < len(lines):
        end = start + 1
        depth = _indentation(lines[start])
        while end < len(lines) and (not lines[end].code or _indentation(lines[end]) > depth):
            end += 1
        yield list(lines[start:end])
        start = end


def _block(block: list[Line], title: Callable[[str], str], *, opened: bool) -> Html:
    head, *inner = block
    within = opened
    if not inner or not _opens(head.code):
        return tag("pre", *(_shown(line, title) for line in block))
    opened = opened or head.code.startswith("def ")
    count = "1 line" if len(inner) == 1 else f"{len(inner)} lines"
    note = tag("span", f"  … {count}", kind="fwdad-folded")
    parts = (_block(each, title, opened=within) for each in _blocks(inner, 0))
    # where styles are taken out (a notebook that is not trusted), the marker stays on the line
    summary = tag("span", _shown(head, title, note), kind="fwdad-mono", style="white-space:pre")
    return folded(summary, *parts, opened=opened, kind="fwdad-block")


def _shown(line: Line, title: Callable[[str], str], note: object = "") -> Html:
    # a newline ends each line, so that it is one without the styles, too
    beside = [
        tag("span", f"  {said}", kind="fwdad-at", title=line.origin)
        for said in (line.kept, line.place)
        if line.kept or line.place
    ]
    code = tag("span", highlighted(line.code, title), note)
    return tag("span", code, *beside, text("\n"), kind="fwdad-line")

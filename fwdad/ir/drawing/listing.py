"""A program as HTML: its lines, with types and the user's lines beside them, and the two passes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath

from fwdad.display.html import Html
from fwdad.display.source import Line, listing
from fwdad.display.words import file_in_words
from fwdad.errors import Location
from fwdad.ir.ops import Program
from fwdad.ir.printer import Writer, sketched

_ASSIGNED = re.compile(r"\s*([\w, ]+) = ")


def listed(program: Program) -> tuple[str, Html]:
    """The head of a program, with the types of its parameters, and its lines."""
    writer = sketched(program)
    types = _types(writer)
    head, *_ = writer.code.lines
    return head.removesuffix(":"), listing(
        list(_lines(writer, types)), lambda name: types.get(name, "")
    )


def _types(writer: Writer) -> dict[str, str]:
    """The type of each name; more than one where a name stands for values of several types."""
    found: dict[str, dict[str, None]] = {}
    for value, name in writer.names.of.items():
        found.setdefault(name, {})[str(value.type)] = None
    return {name: " | ".join(types) for name, types in found.items()}


def _lines(writer: Writer, types: dict[str, str]) -> Iterator[Line]:
    """The lines behind the head, less one indentation."""
    code = writer.code
    two_passes = any(place is not None and place.reverse for place in code.places)
    group = "forward"
    for text, place in zip(code.lines[1:], code.places[1:], strict=True):
        if place is not None:
            group = "reverse" if place.reverse else "forward"
        of = "" if not two_passes or text.startswith("    return") else group
        assigned = _ASSIGNED.match(text)
        names = assigned[1].split(", ") if assigned else []
        kept = ", ".join(types[name] for name in names if name in types)
        yield Line(text[4:], kept, *_origin(place), group=of)


def _origin(place: Location | None) -> tuple[str, str]:
    """The user's line: where it stands, and what it says."""
    if place is None:
        return "", ""
    name = PurePath(file_in_words(place.filename)).name
    return f"{name}:{place.line}", (place.text or "").strip()

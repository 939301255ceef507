"""Texts that a prompt shows as they are, not as the literal of a string."""

from __future__ import annotations

from fwdad.display.html import framed, tag
from fwdad.display.source import listing, plain_lines


class Text(str):
    """A text that is shown line by line; it is a ``str`` in all else."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(*self.parts())

    def parts(self) -> tuple[object, ...]:
        """Its headline, and what stands below it."""
        head, *rest = self.split("\n")
        return (head, tag("pre", "\n".join(rest))) if rest else (head,)


class SourceText(Text):
    """Python source."""

    __slots__ = ()

    def parts(self) -> tuple[object, ...]:
        """The source, of which the blocks fold."""
        return ("source", listing(plain_lines(self)))

"""Texts that a prompt shows as they are, not as the literal of a string."""

from __future__ import annotations

from fwdad.display.html import Html, framed, tag
from fwdad.display.source import listing, plain_lines


class Text(str):
    """A text that is shown line by line; it is a ``str`` in all else."""

    __slots__ = ()
    headline = "what runs it, and why"

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return framed(self.headline, self.body())

    def body(self) -> Html:
        """What stands below the headline."""
        return tag("pre", str(self), kind="fwdad-prose")


class SourceText(Text):
    """Python source."""

    __slots__ = ()
    headline = "source"

    def body(self) -> Html:
        """The source, of which the blocks fold."""
        return listing(plain_lines(self))

"""Pictures of programs: Graphviz lays the graph out, where its command ``dot`` is installed."""

from __future__ import annotations

import base64
import functools
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

from fwdad.display.html import folded, framed, paragraph, tag
from fwdad.ir.drawing.dot import dot_source
from fwdad.ir.drawing.graph import graph_of
from fwdad.ir.ops import Program

_MISSING = (
    "Graphviz draws the picture, and its command `dot` is not found here: install the package "
    "graphviz of your system (apt, dnf, brew, choco, conda-forge)"
)
_FORMATS = ("svg", "png", "pdf", "dot")
# A picture has a ground of its own: it is seen on light and on dark pages, whatever they say.
_STYLE = """
<style>
.fwdad-drawing { background: #ffffff; max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  .fwdad-drawing { background: #1c1c1c; }
  .fwdad-drawing text { fill: #e6e6e6; }
  .fwdad-drawing .forward path, .fwdad-drawing .forward polygon { fill: #17344a; }
  .fwdad-drawing .reverse path, .fwdad-drawing .reverse polygon { fill: #4a2f17; }
  .fwdad-drawing .plain path, .fwdad-drawing .plain polygon { fill: #333333; }
}
</style>
"""


class Drawing(str):
    """A picture of a program; as a ``str`` it is its source in Graphviz's language.

    A notebook shows the picture. ``save(file)`` writes it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        lines = self.count(" [label=")
        return f"<drawing of {lines} lines: save(file) writes it, print shows Graphviz's source>"

    def save(self, path: str | Path) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path : str or Path
            Its suffix says what is written: ``.svg``, ``.png``, ``.pdf``, or ``.dot``, the source,
            for which Graphviz is not needed.

        Raises
        ------
        ValueError
            If the suffix is another one.
        ImportError
            If Graphviz is not installed.
        """
        path = Path(path)
        kind = path.suffix.removeprefix(".")
        if kind not in _FORMATS:
            raise ValueError(f"a drawing is saved as {', '.join(_FORMATS)}; got {path.name!r}")
        path.write_bytes(self.encode() if kind == "dot" else self._laid_out(kind))

    def svg(self) -> str:
        """The picture as SVG; ``ImportError`` if Graphviz is not installed."""
        text = self._laid_out("svg").decode()
        text = text[text.index("<svg") :]  # without the head of a file
        text = text.replace("<svg", '<svg class="fwdad-drawing"', 1)
        text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)  # with Graphviz's version
        head = text.index(">") + 1
        return text[:head] + _STYLE + text[head:]

    def _laid_out(self, kind: str) -> bytes:
        dot = shutil.which("dot")
        if dot is None:
            raise ImportError(_MISSING)
        ground = [] if kind == "svg" else ["-Gbgcolor=white"]
        return _run((dot, f"-T{kind}", "-Gdpi=96" if kind == "png" else "-Gdpi=72", *ground), self)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        if shutil.which("dot") is not None:
            # who does not trust a notebook shows no SVG of it, but an image
            png = base64.b64encode(self._laid_out("png")).decode()
            return {"image/svg+xml": self.svg(), "image/png": png, "text/plain": repr(self)}
        source = folded("its source, in Graphviz's language", tag("pre", str(self)))
        shown = framed("a drawing", paragraph(_MISSING), source)
        return {"text/html": shown, "text/plain": f"{self!r}\n{_MISSING}"}


@functools.lru_cache(maxsize=16)
def _run(command: tuple[str, ...], source: str) -> bytes:
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode().strip()}")
    return done.stdout


def drawn(program: Program) -> Drawing:
    """The picture of a program."""
    return Drawing(dot_source(program.name, graph_of(program)))

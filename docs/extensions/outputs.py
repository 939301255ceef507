"""Of a traceback in a page: what the error says, without frames of libraries and names of files.

A kernel keeps each cell in a file of its own, whose name is another one at each build.
"""

import re

from docutils import nodes
from sphinx.application import Sphinx

CELL_FILE = re.compile(r"[^\s\"]*ipykernel_\d+[/\\]\d+\.py")
HEAD = re.compile(r"^(\w+) +Traceback \(most recent call last\)$", re.MULTILINE)


def shortened(text: str) -> str:
    """The text of an output as the page shows it."""
    head = HEAD.search(text)
    if head is not None:
        _, _, message = text.rpartition(f"\n{head[1]}: ")
        text = f"{head[1]}: {message}"
    return CELL_FILE.sub("cell", text)


def shorten(_app: Sphinx, document: nodes.document) -> None:
    """Shorten the outputs of a page."""
    for output in document.findall(
        lambda node: (
            isinstance(node, nodes.container) and node.get("nb_element") == "cell_code_output"
        )
    ):
        for block in output.findall(nodes.literal_block):
            text = shortened(block.astext())
            if text != block.astext():
                block.rawsource, block.children = text, []
                block += nodes.Text(text)
                block["language"] = "text"


def setup(app: Sphinx):
    """Register the handler."""
    app.connect("doctree-read", shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Formulas as MathML, which browsers draw by themselves: no script, and none from elsewhere."""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx


def inline(writer, node):
    """Write a formula in a line of text."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block(writer, node):
    """Write a formula of its own line."""
    formula = convert(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

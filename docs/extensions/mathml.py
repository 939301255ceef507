"""Formulas as MathML, which browsers draw by themselves: no script, and none from elsewhere."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

# Glyphs of primes are small and high by themselves: as exponents they would hardly be seen.
PRIMED = re.compile(r"<msup>(<mi>[^<]*</mi>)(<mi>&#x0203[234];</mi>)</msup>")


def mathml(formula: str, display: str = "inline") -> str:
    """Write a formula of LaTeX's as MathML."""
    return PRIMED.sub(r"<mrow>\1\2</mrow>", convert(formula, display=display))


def inline(writer, node):
    """Write a formula in a line of text."""
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def block(writer, node):
    """Write a formula of its own line."""
    formula = mathml(node.astext(), display="block")
    writer.body.append(f'<div class="formula">{formula}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx):
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}

"""Writes formulas as MathML, which browsers draw without a script from elsewhere."""

import re

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

LARGER = re.compile(r"\\[bB]ig(?![a-z])")  # MathML's brackets grow by themselves


def mathml(node, *, as_block):
    """Return the formula of a node."""
    return tex2mathml(LARGER.sub("", node.astext()), as_block=as_block)


def visit_inline(writer, node):
    """Write a formula in a line of text."""
    writer.body.append(mathml(node, as_block=False))
    raise nodes.SkipNode


def visit_block(writer, node):
    """Write a formula on lines of its own."""
    writer.body.append(f"<div>{mathml(node, as_block=True)}</div>")
    raise nodes.SkipNode


def setup(app):
    """Add the renderer that ``html_math_renderer`` names."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True}

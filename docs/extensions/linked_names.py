"""Links every name in code type that is a policy, or public, to its page."""

import re
from collections import Counter

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from risingsearch.policies import POLICIES

A_NAME = re.compile(r"[A-Z_]")  # `report` may be a command, a method or a word
PUBLIC = ("class", "exception", "function")


class LinkedNames(SphinxPostTransform):
    """Turns ``nodes.literal`` of known names into links."""

    default_priority = 11  # after Sphinx has made links of its references, by 10

    def run(self, **kwargs):
        """Link the names on one page."""
        targets = linked_names(self.env)
        for literal in list(self.document.findall(nodes.literal)):
            page, anchor = targets.get(literal.astext(), ("", ""))
            if page in ("", self.env.docname) or in_a_link(literal):
                continue
            uri = self.app.builder.get_relative_uri(self.env.docname, page) + anchor
            link = nodes.reference("", "", internal=True, refuri=uri)
            literal.replace_self(link)
            link += literal


def in_a_link(node):
    """Return whether a node is part of a link or of a heading already."""
    while node := node.parent:
        if isinstance(node, nodes.reference | nodes.title):
            return True
    return False


def linked_names(env):
    """Return page and anchor of every policy, and of names that mean one thing only."""
    public = [
        (name.rpartition(".")[2], (entry.docname, f"#{entry.node_id}"))
        for name, entry in env.domains["py"].objects.items()
        if entry.objtype in PUBLIC and not entry.aliased
    ]
    number = Counter(name for name, _ in public)
    known = {n: page for n, page in public if number[n] == 1 and A_NAME.search(n)}
    return known | {name: (f"generated/policies/{name}", "") for name in POLICIES}


def setup(app):
    """Connect to what Sphinx does."""
    app.add_post_transform(LinkedNames)
    return {"parallel_read_safe": True}

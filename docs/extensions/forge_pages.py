"""Shows the Markdown that is written for a forge: links, README, list of pages."""

import os
import re
from pathlib import Path

from sphinx.util.osutil import FileAvoidWrite

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)#\s]+)")
HTML_IMAGE = re.compile(r'\b(src|srcset)="docs/images/')
SECTION = re.compile(r"^## (.*)$", re.MULTILINE)
ENTRY = re.compile(r"^- \[([^]]+)\]\(([^)]+)\)", re.MULTILINE)
HOME = "/index.md"
LAB_BOOK = "lab-book/index"
ORPHAN = "---\norphan: true\n---\n\n"  # no warning where the sidebar has it not
AT_THE_ROOT = {  # files outside docs/, and the pages that show them
    path.name: f"/generated/project/{path.stem.lower()}.md"
    for path in sorted(ROOT.glob("*.md"))
} | {"README.md": HOME}

ONLY_HERE = """
## Reference

- [Examples](/generated/examples/index.rst) Programs, with what they print and draw.
- [A page per policy](/generated/policies/index.rst) What each does on two curves.
- [API](/generated/api/index.rst) Every public name.
- [How to contribute](/generated/project/contributing.md) A new policy in one page.
- [Changelog](/generated/project/changelog.md) What is new.
"""


def as_on_the_site(text, folder):
    """Return the text with its links to files, from a folder, as links to pages."""

    def moved(match):
        if not (ROOT / folder / match[1]).is_file():
            return match[0]
        path = os.path.normpath(f"{folder}/{match[1]}")
        inside = path.removeprefix("docs")
        outside = AT_THE_ROOT.get(path, f"/../{path}")
        return f"]({inside if inside != path else outside}"

    return LINK.sub(moved, text)


def toctree(listing, options=""):
    """Return what puts the pages of a list into the sidebar, called as in the list."""
    pages = "\n".join(f"{name} <{page}>" for name, page in ENTRY.findall(listing))
    return f"```{{toctree}}\n:hidden:\n{options}\n{pages}\n```\n"


def with_sidebar(listing):
    """Return the list of pages, and a hidden toctree for each of its sections."""
    _, *parts = SECTION.split(listing)
    sidebar = [
        toctree(text, f":caption: {title}\n")
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    ]
    return "\n\n".join([listing.replace("\n#", "\n##"), *sidebar])


def read_source(app, docname, source):
    """Move the links of a page; begin the home page with the README."""
    if app.env.doc2path(docname).suffix != ".md":
        return
    source[0] = as_on_the_site(source[0], Path("docs", docname).parent)
    if docname == LAB_BOOK:
        source[0] += f"\n{toctree(source[0])}"
    if docname == "index":
        readme = as_on_the_site((ROOT / "README.md").read_text(), ".")
        readme = HTML_IMAGE.sub(r'\1="_static/', readme)
        title, _, listing = source[0].partition("\n")
        listing = with_sidebar(f"{listing}{ONLY_HERE}")
        source[0] = f"{readme}\n#{title}\n{listing}"
        app.env.note_dependency(ROOT / "README.md")


def write_project_pages(app, config):
    """Write the pages that show the files at the root."""
    for name, page in AT_THE_ROOT.items():
        if page != HOME:
            path = Path(f"{app.srcdir}{page}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with FileAvoidWrite(path) as file:
                file.write(ORPHAN + as_on_the_site((ROOT / name).read_text(), "."))


def setup(app):
    """Connect to what Sphinx does."""
    app.connect("config-inited", write_project_pages)
    app.connect("source-read", read_source)
    return {"parallel_read_safe": True}

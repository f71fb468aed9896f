"""The files that pages are made of, and the pages made of them."""

from __future__ import annotations

import base64
import hashlib
import html
from functools import cache
from importlib import resources
from string import Template


@cache
def part(name: str) -> str:
    """Return a file of ``page``."""
    page = resources.files("risingsearch.plotting") / "page"
    return (page / name).read_text(encoding="utf-8")


def hash_of(source: str) -> str:
    """Return how a content security policy names a style or program."""
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def own_page(
    name: str, title: str, style: str, program: str = "", **content: str
) -> str:
    """Return a page whose own policy allows its style and program, and nothing else.

    Its body is a file of ``page``, with the title, the program and the content put in;
    what a user has written is escaped in the content already.
    """
    allowed = f"style-src {hash_of(style)}"
    if program:
        allowed += f"; script-src {hash_of(program)}"
    policy = (
        '<meta http-equiv="Content-Security-Policy" content="'
        f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'\">\n"
    )
    title = html.escape(title)
    body = Template(part(name)).substitute(content, title=title, program=program)
    return whole_page(title, style, body, policy)


def whole_page(title: str, style: str, body: str, policy: str = "") -> str:
    """Return a page with the head that all pages share; the title is escaped."""
    return Template(part("head.html")).substitute(
        title=title, style=style, body=body, policy=policy
    )

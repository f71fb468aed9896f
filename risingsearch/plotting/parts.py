"""The files that pages are made of, and the pages made of them."""

import base64
import hashlib
import html
import json
from functools import cache
from importlib import resources
from string import Template


@cache
def part(name: str) -> str:
    """Return a file of ``page``."""
    page = resources.files("risingsearch.plotting") / "page"
    return (page / name).read_text(encoding="utf-8")


def hash_of(source: str) -> str:
    """Return how a content security policy names a style or program.

    Examples
    --------
    >>> hash_of("")
    "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='"
    """
    digest = hashlib.sha256(source.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def embedded(data: object) -> str:
    r"""Return JSON that cannot leave its script element.

    Parameters
    ----------
    data : object
        Values that JSON can hold.

    Returns
    -------
    str
        The text.

    Examples
    --------
    >>> print(embedded({"text": "</script>"}))
    {"text":"\u003c/script\u003e"}
    """
    text = json.dumps(
        data,
        allow_nan=False,
        separators=(",", ":"),
    )
    for character in "<>&":  # all that is not ASCII is escaped already
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def own_page(
    name: str, title: str, program: str, *, version: str | None = None, **content: str
) -> str:
    """Return a page whose own policy allows its style and program, and nothing else.

    Parameters
    ----------
    name : str
        The file of its body.
    title : str
        The heading, as text.
    program : str
        The script.
    version : str, optional
        Of a page that follows a search: what the page compares with the server's.
    **content : str
        What fills the places of the body, as HTML.

    Returns
    -------
    str
        The page.
    """
    live = ""
    style = part("page.css")
    if version is not None:
        live = '<p id="said" class="note" role="status"></p>\n'
        program += f"\n{part('live.js')}"
    lines = map(str.strip, program.splitlines())
    program = "\n".join(line for line in lines if not line.startswith("//"))
    allowed = f"style-src {hash_of(style)}; script-src {hash_of(program)}"
    allowed += "" if version is None else "; connect-src 'self'"
    policy = (
        '<meta http-equiv="Content-Security-Policy" content="'
        f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'\">\n"
    )
    if version is not None:
        policy += f'<meta name="version" content="{html.escape(version)}">\n'
    title = html.escape(title)
    body = Template(part(name)).substitute(
        content,
        title=title,
        program=program,
        live=live,
    )
    return Template(part("head.html")).substitute(
        title=title,
        style=style,
        body=body,
        policy=policy,
    )

"""Pages, docstrings and messages use the words of the field."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILT = {ROOT / "docs" / "generated", ROOT / "docs" / "_build"}
LINK = ROOT / "risingsearch" / "integrations"
SAY = {
    r"go(?:es|ing)? on\b(?! top)": "continue, resume",
    r"by the clock": "wall-clock",
    r"of its own": "separate",
    r"whatever|whoever|nobody": "any, all, none",
    r"what is none": "invalid",
    r"[\"']{3}(?:who|what|whose|returns? what)\b": "the name of the thing",
}
FIRST_LINE = re.compile(r"[\"']{3}[^\"\n]*\b[wW]hat\b")
WHAT = re.compile(r"^(?![|#]).*?(?:^|[.!:] )(What [^.?]*[.,\n])", re.MULTILINE)


def texts():
    """Return the pages and the sources by their paths in the repository."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    sources = [*(ROOT / "risingsearch").rglob("*.py")]
    sources += (ROOT / "integrations").rglob("*.py")
    return {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for path in [*pages, *sources]
        if not {*BUILT, LINK} & {*path.parents}
    }


def test_no_text_has_words_that_have_to_be_read_twice():
    found = [
        f"{name}: {match[0]!r}, say {better}"
        for name, text in texts().items()
        for words, better in SAY.items()
        for match in re.finditer(rf"(?<!\w){words}", " ".join(text.split()), re.I)
    ]
    assert found == []


def test_the_first_line_of_a_docstring_names_the_thing():
    """Without a clause with "what" in its place."""
    found = [
        f"{name}: {match[0]!r}"
        for name, text in texts().items()
        if name.endswith(".py")
        for match in FIRST_LINE.finditer(text)
    ]
    assert found == []


def test_no_sentence_of_a_page_begins_with_what():
    found = [
        f"{name}: {match[1]!r}"
        for name, text in texts().items()
        if name.endswith(".md")
        for match in WHAT.finditer(text)
    ]
    assert found == []

"""What the documents show is what happens.

Every ``python`` block runs and every ``pycon`` block prints what it shows, in the order
of the page, with the names of the blocks before it.
"""

import ast
import doctest
import io
import json
import os
import re
import shlex
import sys
import types
from pathlib import Path

import matplotlib as mpl
import pytest
from threadpoolctl import threadpool_limits

mpl.use("Agg")

from matplotlib import pyplot as plt

from risingsearch.cli.main import _parser, main
from risingsearch.policies import list_policies, resolve_policy
from risingsearch.scripts.run import check_sweep
from risingsearch.scripts.sweep import Sweep, checked_sweep
from risingsearch.scripts.yaml_files import load_yaml

ROOT = Path(__file__).resolve().parents[1]


def written(pattern):
    """Return the files in docs/ but for those that a build of the site has left."""
    built = (ROOT / "docs" / "generated", ROOT / "docs" / "_build")
    found = sorted((ROOT / "docs").rglob(pattern))
    return [path for path in found if not set(built) & set(path.parents)]


PAGES = [ROOT / "README.md", *written("*.md")]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
NOTEBOOKS = written("*.ipynb")
LINKING = [*PAGES, *NOTEBOOKS, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def blocks(page, *languages):
    """Return language, text and the line before the text of every such block."""
    text = page.read_text()
    return [
        (match[1], match[2], text[: match.start(2)].count("\n"))
        for match in FENCE.finditer(text)
        if match[1] in languages
    ]


@pytest.fixture
def module(monkeypatch, tmp_path, interpreted):
    """Return an empty module to run a page in, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    page = types.ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)  # so that its classes pickle
    with threadpool_limits(1):  # models this small only wait for more threads
        yield page
    plt.close("all")


def check_session(text, names, page, line):
    """Run a session at the prompt and compare what it prints."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), line)
    printed = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=flags, verbose=False)
    runner.run(test, out=printed.write, clear_globs=False)
    names.update(test.globs)  # the session ran in a copy
    assert runner.failures == 0, printed.getvalue()


ADVICE = [  # of Lightning and Hugging Face, and what torch says to them
    pytest.mark.filterwarnings(f"ignore::{kind}")
    for kind in ("UserWarning", "FutureWarning", "DeprecationWarning")
]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=ADVICE if page.stem == "pytorch" else [])
        for page in PAGES
    ],
    ids=NAMES,
)
def test_every_block_runs_and_prints_what_it_shows(page, module):
    names = vars(module)
    for language, text, line in blocks(page, "python", "pycon"):
        if language == "pycon":
            check_session(text, names, page, line)
        else:
            # The empty lines make tracebacks point at the line of the page.
            exec(compile("\n" * line + text, page, "exec"), names)


GUIDE = [
    page for page in PAGES if page.parent.name != "lab-book" and page.stem != "glossary"
]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", GUIDE, ids=lambda page: page.name)
@pytest.mark.parametrize(
    ("term", "word"), [("r", r"\bR\b(?!²)"), ("rung", r"\brungs?\b")]
)
def test_a_page_links_a_term_to_the_glossary_where_it_has_it_first(page, term, word):
    first = re.search(rf"{word}(.*)", CODE.sub("", page.read_text()))
    assert not first or re.match(rf"\]\([^)]*glossary\.md#{term}\)", first[1])


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_is_of_a_kind_that_is_checked(page):
    text = page.read_text()
    languages = [match[1] for match in FENCE.finditer(text)]
    assert set(languages) <= {"", "python", "pycon", "console", "yaml", "diff", "text"}
    assert text.count("```") == 2 * len(languages)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_yaml_block_is_a_sweep(page):
    for _, text, _ in blocks(page, "yaml"):
        check_sweep(checked_sweep(load_yaml(text), page.name))


def test_the_whole_script_of_the_command_line_is_searched_over(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    here = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", here, prepend=os.pathsep)
    for _, text, _ in blocks(ROOT / "docs" / "command-line.md", "python", "yaml"):
        if named := re.match(r"# (train\.py|small\.yaml)\n", text):
            Path(named[1]).write_text(text)
    with open("small.yaml", "a") as file:
        file.write("seed: 0\nepoch_timeout: 600\n")
    assert main(["run", "small.yaml", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epochs"], found["failures"], found["best_epoch"]) == (30, 0, 8)


def commands(page):
    """Return the words of every ``risingsearch ...`` in a console block."""
    for _, text, _ in blocks(page, "console"):
        lines = text.splitlines()
        if any(line.startswith("$ ") for line in lines):  # the others are output
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        for command in re.split(r"&&|\n", "\n".join(lines)):
            program, *arguments = shlex.split(command) or [""]
            if Path(program).name == "risingsearch":
                yield arguments


def test_every_command_is_one():
    found = [arguments for page in PAGES for arguments in commands(page)]
    assert ["policies"] in found
    for arguments in found:
        assert _parser().parse_args(arguments).command


def anchors(page):
    """Return what the headings of a page are linked by."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h).lower().replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page):
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target), link


def test_the_table_of_a_sweeps_file_has_its_keys():
    text = (ROOT / "docs" / "sweep-file.md").read_text()
    table = text.partition("\n## The keys\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", table, re.MULTILINE)
    keys = [key for row in rows for key in re.findall(r"`(\w+)`", row)]
    assert sorted(keys) == sorted(Sweep.model_fields)


def test_the_lists_of_pages_have_one_line_for_every_page():
    listed = []
    for index in (ROOT / "docs" / "index.md", ROOT / "docs" / "lab-book" / "index.md"):
        found = re.findall(r"^- \[.+?\]\(([^)]+)\) \S.*$", index.read_text(), re.M)
        listed += [index.parent / name for name in found]
    pages = {*PAGES[1:], *NOTEBOOKS} - {ROOT / "docs" / "index.md"}
    assert sorted(listed) == sorted(pages)


def test_an_old_address_leads_to_a_page():
    lines = ast.parse((ROOT / "docs" / "conf.py").read_text()).body
    (redirects,) = [
        ast.literal_eval(line.value)
        for line in lines
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "redirects"
    ]
    assert redirects
    for old, new in redirects.items():
        assert not (ROOT / "docs" / f"{old}.md").exists()
        page, _, section = new.partition("#")
        target = ROOT / "docs" / f"{page.removesuffix('.html')}.md"
        assert target.is_file(), new
        assert not section or section in anchors(target), new


@pytest.mark.parametrize(
    ("page", "words"),
    [("README.md", "The {} [policies]"), ("docs/policies.md", "the other {} policies")],
)
def test_a_page_counts_all_policies(page, words):
    text = " ".join((ROOT / page).read_text().split())
    n_others = len(list_policies()) - words.startswith("the other")
    assert words.format(n_others) in text


def test_auto_is_the_policy_that_the_page_names():
    text = (ROOT / "docs" / "policies.md").read_text()
    assert f'`policy="auto"` stands for `{resolve_policy("auto")}`' in text

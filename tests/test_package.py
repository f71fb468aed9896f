"""The package as a whole: what is installed, imported, drawn and run by ``.ci/run``."""

import ast
import doctest
import importlib
import importlib.metadata
import inspect
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import risingsearch
from risingsearch.errors import RisingSearchError
from risingsearch.testing import check_policy

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
UNPACKED = (ROOT / "PKG-INFO").exists()  # from a source distribution: it holds no link

FOLDERS = (
    ".ci", ".github", "benchmarks", "docs", "examples", "integrations", "risingsearch",
    "tests",
)  # fmt: skip
FILES = (
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "SECURITY.md",
    "noxfile.py",
    "pyproject.toml",
)
HEAVY = ["numpy", "scipy", "sklearn", "torch", "optuna", "ray", "numba", "matplotlib"]

TEST_COMMAND = (
    "python3 -m venv .venv && .venv/bin/pip install -e '.[test]' && .venv/bin/pytest"
)
DEMO_COMMAND = (
    "python3 -m venv .venv && .venv/bin/pip install -e '.[sklearn,plot]' "
    "&& .venv/bin/risingsearch demo"
)


def source_files(pattern):
    """Return the sources as they are imported: path in the wheel -> path here."""
    files = {}
    for top, prefix in (("risingsearch", ""), ("integrations", "risingsearch/")):
        for path in (ROOT / top).rglob(pattern):
            here = path.relative_to(ROOT).as_posix()
            if not here.startswith("risingsearch/integrations"):
                files[prefix + here] = path
    return files


def run_python(code):
    """Run code in a fresh interpreter; return what it printed."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class TestPublicNames:
    def test_the_three_lists_of_public_names_agree_and_are_sorted(self):
        tree = ast.parse(inspect.getsource(risingsearch))
        (block,) = [
            node
            for node in tree.body
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        ]
        shown = {alias.name: line.module for line in block.body for alias in line.names}
        assert shown == risingsearch._MODULES
        assert list(risingsearch._MODULES) == risingsearch.__all__
        kind_and_name = [
            (not name.isupper(), not name[0].isupper(), name)
            for name in risingsearch.__all__
        ]
        assert kind_and_name == sorted(kind_and_name)

    @pytest.mark.parametrize("name", risingsearch.__all__)
    def test_every_public_name_resolves(self, name):
        public = getattr(risingsearch, name)
        assert name in dir(risingsearch)
        if inspect.isclass(public) or inspect.isfunction(public):
            assert public.__name__ == name
            assert inspect.getdoc(public)

    def test_every_error_is_public(self):
        errors = [RisingSearchError]
        for error in errors:
            errors += error.__subclasses__()
        ours = {e.__name__ for e in errors if e.__module__ == "risingsearch.errors"}
        assert ours <= set(risingsearch.__all__)

    def test_an_unknown_name_is_an_attribute_error(self):
        with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
            risingsearch.Nothing  # noqa: B018

    def test_the_version_is_the_one_that_is_installed(self):
        assert risingsearch.__version__ == importlib.metadata.version("risingsearch")


class TestImports:
    @pytest.mark.parametrize(
        ("module", "loads"),
        [
            ("", []),
            (".cli.main", []),
            (".policies", ["numpy"]),
            (".scheduling.scheduler", ["numpy"]),
            (".search.search", ["numpy"]),
            (".plotting", ["numpy"]),
        ],
    )
    def test_importing_loads_nothing_heavy(self, module, loads):
        printed = run_python(
            "import sys\n"
            "before = set(sys.modules)\n"
            f"import risingsearch{module}\n"
            f"print(*(set(sys.modules) - before) & set({HEAVY!r}))\n"
        )
        assert printed.split() == loads

    def test_without_scikit_learn_its_adapter_names_the_command(self):
        printed = run_python(
            "import sys\n"
            "for name in ('joblib', 'scipy', 'sklearn', 'threadpoolctl'):\n"
            "    sys.modules[name] = None\n"
            "import risingsearch\n"
            "try:\n"
            "    risingsearch.RisingSearchCV\n"
            "except risingsearch.MissingDependencyError as error:\n"
            "    print(error)\n"
        )
        assert 'pip install "risingsearch[sklearn]"' in printed

    def test_adapters_never_hide_the_frameworks_they_are_named_after(self):
        printed = run_python(
            "import sys, pathlib\n"
            "import risingsearch.integrations.sklearn\n"
            "import sklearn\n"
            "print([p for p in sys.path if pathlib.Path(p).name == 'integrations'])\n"
            "print(sklearn.__version__)\n"
        )
        on_path, version = printed.splitlines()
        assert on_path == "[]"
        assert version

    def test_optional_modules_imported_by_name_are_these(self):
        found = set()
        for name, path in source_files("*.py").items():
            for module in re.findall(r"import_module\(\"(\w+)", path.read_text()):
                found.add((name.removesuffix(".py"), module))
        assert found == {
            ("risingsearch/curves/smooth", "statsmodels"),
            ("risingsearch/simulation/engine", "numba"),
        }


class TestLayout:
    """The picture of the house in CONTRIBUTING.md shows the folders that there are."""

    HOUSES = ("risingsearch", "integrations", "benchmarks")
    ROOM = re.compile(r"^((?:[|] {3}| {4}|[|]-- |`-- )*)(\w+)/(?: |$)")
    INDENT = 4  # characters for each level of the tree

    @pytest.fixture
    def drawing(self):
        text = (ROOT / "CONTRIBUTING.md").read_text()
        return re.search(r"^## The layout$.*?^```\n(.*?)^```$", text, re.M | re.S)[1]

    @pytest.fixture
    def drawn(self, drawing):
        path, folders = [], []
        for line in filter(None, drawing.splitlines()):
            indent, name = self.ROOM.match(line).groups()
            path[len(indent) // self.INDENT :] = [name]
            folders.append("/".join(path))
        return folders

    def test_the_picture_shows_every_room_and_no_other(self, drawn):
        there = {
            module.parent.relative_to(ROOT).as_posix()
            for house in self.HOUSES
            for module in (ROOT / house).rglob("*.py")
            if "integrations" not in module.relative_to(ROOT / house).parts
        }
        assert sorted(drawn) == sorted(there)

    def test_the_root_of_the_package_holds_the_modules_named_there(self, drawing):
        named = re.search(r"^risingsearch/ +([\w, ]+): no other module", drawing, re.M)
        modules = (ROOT / "risingsearch").glob("*.py")
        assert {f"{name}.py" for name in named[1].split(", ")} == {
            path.name for path in modules
        }

    def test_the_picture_of_the_layers_is_what_the_linter_checks(self):
        contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
        layers = next(one["layers"] for one in contracts if one["type"] == "layers")
        assert (
            f"```\n{chr(10).join(layers)}\n```"
            in (ROOT / "CONTRIBUTING.md").read_text()
        )


@pytest.fixture(scope="module")
def nodes():
    """Return the syntax trees of all classes and functions, each with its file."""
    return [
        (name, node)
        for name, path in source_files("*.py").items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]


class TestNames:
    def test_no_two_classes_have_one_name(self, nodes):
        names = Counter(n.name for _, n in nodes if isinstance(n, ast.ClassDef))
        assert [name for name, n in names.items() if n > 1] == []


class TestMetadata:
    def test_every_package_is_listed(self):
        found = [str(Path(init).parent) for init in source_files("__init__.py")]
        packages = sorted(package.replace("/", ".") for package in found)
        assert PYPROJECT["tool"]["setuptools"]["packages"] == packages

    def test_the_link_for_type_checkers_is_relative(self):
        link = ROOT / "risingsearch" / "integrations"
        if not UNPACKED:
            assert os.readlink(link) == "../integrations"

    def test_the_core_depends_on_two_small_packages(self):
        names = [re.match(r"[\w.-]+", line)[0] for line in PROJECT["dependencies"]]
        assert names == ["filelock", "numpy"]

    def test_the_tests_pin_torch(self):
        assert "torch==2.13.0" in PROJECT["optional-dependencies"]["test"]


def build(kind, source, out):
    """Build the way pip does, with the setuptools that is installed."""
    code = f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (built,) = (path for path in out.iterdir() if path.is_file())
    return built


def copy_sources(to):
    """Copy what is kept in the repository, not what a build left in the checkout."""
    to.mkdir()
    for name in FILES:
        shutil.copy(ROOT / name, to)
    for name in FOLDERS:
        ignore = shutil.ignore_patterns("__pycache__", "_build", "generated")
        shutil.copytree(ROOT / name, to / name, symlinks=True, ignore=ignore)


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """Return the names of our files, and the unpacked source distribution."""
    folder = tmp_path_factory.mktemp("sdist")
    copy_sources(folder / "source")
    paths = [path for path in (folder / "source").rglob("*") if path.is_file()]
    names = {path.relative_to(folder / "source").as_posix() for path in paths}
    for name in ("risingsearch/__pycache__", "docs/generated", "docs/_build"):
        (folder / "source" / name).mkdir()
        (folder / "source" / name / "left.pyc").touch()
    (folder / "out").mkdir()
    with tarfile.open(build("sdist", folder / "source", folder / "out")) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    return names, unpacked


class TestDistributions:
    def test_a_source_distribution_holds_every_file_once(self, sdist):
        names, unpacked = sdist
        found = {
            path.relative_to(unpacked).as_posix()
            for path in unpacked.rglob("*")
            if path.is_file() and "risingsearch.egg-info" not in path.parts
        }
        assert found == names | {"PKG-INFO", "setup.cfg"}

    def test_a_wheel_holds_every_module_under_the_name_it_is_imported_by(
        self, tmp_path
    ):
        copy_sources(tmp_path / "source")
        (tmp_path / "out").mkdir()
        wheel = zipfile.ZipFile(build("wheel", tmp_path / "source", tmp_path / "out"))
        with wheel:
            names = {name for name in wheel.namelist() if ".dist-info/" not in name}
        page = (ROOT / "risingsearch" / "plotting" / "page").iterdir()
        assert names == {
            *source_files("*.py"),
            *(f"risingsearch/plotting/page/{file.name}" for file in page),
            "risingsearch/py.typed",
            "risingsearch/space/estimators.json",
            "risingsearch/space/starts.json",
        }
        assert "risingsearch/integrations/sklearn/__init__.py" in names


class TestReadme:
    @pytest.mark.parametrize("command", [TEST_COMMAND, DEMO_COMMAND])
    def test_the_commands_stand_on_lines_of_their_own(self, command):
        assert command in (ROOT / "README.md").read_text().splitlines()

    def test_the_badges_are_true(self):
        images = ROOT / "docs" / "images"
        python = PROJECT["requires-python"].removeprefix(">=")
        assert f">{python}+<" in (images / "python.svg").read_text()
        assert f">{PROJECT['license']}<" in (images / "licence.svg").read_text()

    def test_the_pictures_are_there_and_light(self):
        readme = (ROOT / "README.md").read_text()
        named = re.findall(r'(?:src|srcset)="([^"]+)"', readme)
        assert len(named) == 2
        assert sum((ROOT / name).stat().st_size for name in named) < 200_000


class TestContributing:
    """The worked example of CONTRIBUTING.md, as a reader would copy it."""

    @pytest.fixture
    def blocks(self):
        text = (ROOT / "CONTRIBUTING.md").read_text()
        return re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)

    @pytest.fixture
    def policy_module(self, blocks, tmp_path, monkeypatch):
        (tmp_path / "last_gain.py").write_text(blocks[0])
        monkeypatch.syspath_prepend(tmp_path)
        yield importlib.import_module("last_gain")
        del sys.modules["last_gain"]

    def test_the_policy_keeps_the_contract(self, policy_module):
        check_policy(policy_module.LastGain.create)
        check_policy(policy_module.LastGain.create, memory=0.0)

    def test_the_example_in_its_docstring_runs(self, policy_module):
        results = doctest.testmod(
            policy_module, optionflags=doctest.NORMALIZE_WHITESPACE
        )
        assert results.attempted > 0
        assert results.failed == 0

    def test_a_search_takes_it_as_shown(self, blocks, policy_module, capsys):
        exec(blocks[1], {"LastGain": policy_module.LastGain})
        assert capsys.readouterr().out == "{'top': 0.9}\n"

    def test_the_check_runs_as_shown(self, blocks, policy_module):
        exec(blocks[2], {"LastGain": policy_module.LastGain})


class TestContinuousIntegration:
    """``.ci/run`` in an empty folder, where every tool only writes down its name."""

    TESTED = (
        "python3 -m venv .venv",
        "pip install --upgrade pip",
        "pip install -e .[test]",
        "pytest",
    )
    CHECKED = (
        "python3 -m venv BUILT/tools",
        "pip install uv",
        "uv pip install --python BUILT/tools -r pyproject.toml --extra lint "
        "build check-wheel-contents twine",
        "lint-imports",
        "ruff check",
        "ruff format --check",
        "mypy",
        "python .ci/readability.py",
        "check-jsonschema --builtin-schema vendor.github-workflows "
        ".github/workflows/docs.yml .github/workflows/publish.yml "
        ".github/workflows/tests.yml",
        "check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff",
        "python -m build --installer uv --outdir BUILT",
        "twine check --strict BUILT/risingsearch-0.tar.gz BUILT/risingsearch-0.whl",
        "check-wheel-contents BUILT/risingsearch-0.whl",
        "uv venv BUILT/empty",
        "uv pip install --python BUILT/empty BUILT/risingsearch-0.whl",
        "python -I .ci/installed.py",
        "risingsearch policies",
        "python .ci/compiled.py BUILT/installed",
        "python -m sphinx -W -b html docs docs/_build/html",
    )
    LANES = (TESTED, CHECKED)
    SERVED = ("slurm", "postgres start")
    TOOL = """#!/bin/sh
        call="$(echo $(basename "$0") "$@" | sed "s|$TMPDIR/tmp[^ /]*|BUILT|g")"
        # pip is not done when it has installed the project
        test "$call" != "pip install -e .[test]" ||
            { touch .venv/bin/risingsearch && sleep 0.3; }
        echo "$call" >> "$CALLS"
        test "$call" != "$HANGING" || sleep infinity
        test "$call" != "$BROKEN" || { echo "broken: $call" && exit 1; }
        case "$call" in
        "python3 -m venv "*) mkdir -p "$3/bin" && cp -p "$TOOLS"/* "$3/bin" ;;
        "uv venv "*) mkdir -p "$2/bin" && cp -p "$TOOLS"/* "$2/bin" ;;
        "python -m build "*) touch "$6/risingsearch-0.whl" "$6/risingsearch-0.tar.gz" ;;
        esac
        """
    POSTGRES = """#!/bin/sh
        echo "postgres $1" >> "$CALLS"
        test "$1" != start || { mkdir "$2/data" && touch "$2/data/postmaster.pid"; }
        """
    SLURM = """#!/bin/sh
        echo slurm >> "$CALLS"
        """

    @pytest.fixture
    def calls(self, tmp_path):
        """Return a function that tells the calls so far."""
        (tmp_path / "calls").touch()
        return lambda: (tmp_path / "calls").read_text().splitlines()

    @pytest.fixture
    def start(self, tmp_path, calls):
        """Return a function that starts ``.ci/run``."""
        checkout = tmp_path / "checkout"
        (checkout / ".ci").mkdir(parents=True)
        shutil.copy(ROOT / ".ci" / "run", checkout / ".ci")
        scripts = {
            checkout / ".ci" / "postgres": self.POSTGRES,
            checkout / ".ci" / "slurm": self.SLURM,
        }
        shutil.copytree(ROOT / ".github", checkout / ".github")
        for folder in (tmp_path / "tools", checkout / ".venv" / "bin"):
            folder.mkdir(parents=True)
            for tool in {call.partition(" ")[0] for call in sum(self.LANES, ())}:
                scripts[folder / tool] = self.TOOL
        for path, text in scripts.items():
            path.write_text(text)
            path.chmod(0o755)
        (tmp_path / "tmp").mkdir()

        def start(broken="", hanging=""):
            return subprocess.Popen(
                [checkout / ".ci" / "run"],
                cwd=tmp_path,
                env={
                    "PATH": f"{tmp_path / 'tools'}:/usr/bin:/bin",
                    "TMPDIR": str(tmp_path / "tmp"),
                    "TOOLS": str(tmp_path / "tools"),
                    "CALLS": str(tmp_path / "calls"),
                    "BROKEN": broken,
                    "HANGING": hanging,
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )

        return start

    @staticmethod
    def in_order(steps, calls):
        """Return whether the steps are among the calls, in their order."""
        following = iter(calls)
        return all(step in following for step in steps)

    def test_is_executable_and_runs_the_readmes_command(self):
        script = ROOT / ".ci" / "run"
        assert script.stat().st_mode & stat.S_IXUSR
        lines = [line.strip() for line in script.read_text().splitlines()]
        assert TEST_COMMAND in lines

    def test_runs_all_lanes_in_order_beside_an_older_environment(
        self, start, calls, tmp_path
    ):
        run = start()
        said, _ = run.communicate()
        assert run.returncode == 0, said
        *made, last = calls()
        assert last == "postgres stop"
        assert Counter(made) == Counter(self.SERVED + sum(self.LANES, ()))
        assert self.in_order((*self.SERVED, "pytest"), made)
        for lane in self.LANES:
            assert self.in_order(lane, made)
        assert self.in_order(("pip install -e .[test]", self.CHECKED[-1]), made)
        assert list((tmp_path / "tmp").iterdir()) == []

    @pytest.mark.parametrize("step", [*TESTED[-2:], "mypy", *CHECKED[-2:]])
    def test_a_failure_ends_its_lane_and_is_shown(self, start, calls, step):
        run = start(broken=step)
        said, _ = run.communicate()
        assert run.returncode == 1, said
        assert f"broken: {step}\n" in said
        [lane] = [lane for lane in self.LANES if step in lane]
        made = calls()
        assert made[-1] == "postgres stop"
        assert self.in_order(lane[: lane.index(step) + 1], made)
        assert not set(lane[lane.index(step) + 1 :]) & set(made)

    @pytest.mark.parametrize(
        ("number", "step"),
        [
            (signal.SIGHUP, "pytest"),
            (signal.SIGINT, "pytest"),
            (signal.SIGTERM, "risingsearch policies"),
        ],
    )
    def test_a_signal_leaves_nothing_behind(self, start, calls, number, step, tmp_path):
        run = start(hanging=step)
        while step not in calls():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(number)
        run.communicate()  # returns when no process holds its output any more
        assert run.returncode == 128 + number
        assert calls()[-1] == "postgres stop"
        assert list((tmp_path / "tmp").iterdir()) == []

"""What ``import risingsearch`` offers, and that it costs nothing."""

import ast
import importlib.metadata
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import risingsearch
from risingsearch.errors import RisingSearchError

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ["numpy", "scipy", "sklearn", "torch", "optuna", "ray", "numba", "matplotlib"]


def run_python(code):
    """Run code in a fresh interpreter; return what it printed."""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(statement, modules):
    """Return those of ``modules`` that a statement loads in a fresh interpreter."""
    printed = run_python(
        "import sys\n"
        "before = set(sys.modules)\n"
        f"{statement}\n"
        f"print(*(set(sys.modules) - before) & set({modules!r}))\n"
    )
    return printed.split()


def names_for_type_checkers():
    """Return name -> module of the imports that only type checkers see."""
    tree = ast.parse(inspect.getsource(risingsearch))
    (block,) = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {alias.name: line.module for line in block.body for alias in line.names}


def test_the_three_lists_of_public_names_agree():
    assert names_for_type_checkers() == risingsearch._MODULES
    assert list(risingsearch._MODULES) == risingsearch.__all__


def test_public_names_are_sorted():
    def kind_and_name(name):
        return not name.isupper(), not name[0].isupper(), name

    assert risingsearch.__all__ == sorted(risingsearch.__all__, key=kind_and_name)


@pytest.mark.parametrize("name", risingsearch.__all__)
def test_every_public_name_resolves(name):
    public = getattr(risingsearch, name)
    assert name in dir(risingsearch)
    if inspect.isclass(public) or inspect.isfunction(public):
        assert public.__name__ == name
        assert inspect.getdoc(public)


def test_every_error_is_public():
    errors = {RisingSearchError.__name__}
    waiting = [RisingSearchError]
    while waiting:
        children = waiting.pop().__subclasses__()
        waiting.extend(children)
        errors |= {
            error.__name__
            for error in children
            if error.__module__ == "risingsearch.errors"
        }
    assert errors <= set(risingsearch.__all__)


def test_a_public_name_is_the_object_of_its_module():
    from risingsearch.arms import Budget

    assert risingsearch.Budget is Budget


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        risingsearch.Nothing  # noqa: B018


def test_the_version_is_the_one_that_is_installed():
    assert risingsearch.__version__ == importlib.metadata.version("risingsearch")


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import risingsearch", [*HEAVY, "typing"]) == []


def test_importing_the_command_line_loads_nothing_heavy():
    assert loaded_by("import risingsearch.cli.main", HEAVY) == []


@pytest.mark.parametrize(
    "module", ["policies", "scheduling.scheduler", "search.search", "plotting"]
)
def test_the_core_loads_numpy_alone(module):
    assert loaded_by(f"import risingsearch.{module}", HEAVY) == ["numpy"]


def test_without_scikit_learn_its_adapter_names_the_command():
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

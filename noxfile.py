"""What a release has to pass before it is tagged: ``nox`` runs all of it.

``nox -l`` lists the sessions; ``nox -s build "oldest(part='sklearn')"`` runs two. A
Python that is not installed is left out, and the summary at the end says so.
"""

from pathlib import Path
from typing import NamedTuple

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"

PYPROJECT = nox.project.load_toml("pyproject.toml")
PROJECT = PYPROJECT["project"]
PYTHONS = nox.project.python_versions(PYPROJECT)
OLDEST_PYTHON = PYTHONS[0]
DIST = Path("dist")
TOOLS = ("hypothesis", "pytest", "pytest-xdist")


class Part(NamedTuple):
    """Tests of one extra, what they import besides, and what its oldest version needs.

    ``None`` where no oldest version is tried.
    """

    tests: list[str]
    extra: str = ""
    besides: tuple[str, ...] = ()
    with_oldest: tuple[str, ...] | None = ()


PARTS = {
    "numpy": Part(
        [
            "tests/storage",
            "tests/scheduling/test_scheduler.py",
            "tests/search/test_search.py",
            "tests/search/test_workers.py",
        ]
    ),
    "sklearn": Part(["tests/integrations/sklearn/test_search_cv.py"], "sklearn"),
    "optuna": Part(
        [
            "tests/integrations/optuna/test_arms.py",
            "tests/integrations/optuna/test_pruner.py",
            "tests/integrations/optuna/test_results.py",
            "tests/integrations/optuna/test_sampler.py",
            "tests/integrations/optuna/test_view.py",
        ],
        "optuna",
        ("scikit-learn",),
    ),
    "ray": Part(
        [
            "tests/integrations/ray/test_fit.py",
            "tests/integrations/ray/test_reported.py",
            "tests/integrations/ray/test_scheduler.py",
        ],
        "ray",
        ("optuna", "scikit-learn", "tensorboard"),
        with_oldest=("pyarrow<26",),  # the next needs NumPy 2, and does not say so
    ),
    "dask": Part(
        [
            "tests/integrations/dask/test_chunks.py",
            "tests/integrations/dask/test_remote.py",
            "tests/integrations/dask/test_placement.py",
        ],
        "dask",
    ),
    # PyPI's builds for Linux bring gigabytes of CUDA, and those for CPUs, at
    # https://download.pytorch.org/whl/cpu, are pinned: the oldest was not tried.
    "torch": Part(
        [
            "tests/integrations/torch/test_batches.py",
            "tests/integrations/torch/test_snapshots.py",
            "tests/integrations/torch/test_trainable.py",
        ],
        besides=("torch==2.13.0+cpu; sys_platform == 'linux'", "scikit-learn"),
        with_oldest=None,
    ),
}


@nox.session(python=OLDEST_PYTHON)
def build(session: nox.Session) -> None:
    """Build what is published, and check its metadata and its content."""
    untracked = session.run("git", "status", "--porcelain", external=True, silent=True)
    if untracked:
        session.error(f"what is not committed would be built in:\n{untracked}")
    session.install("build", "check-wheel-contents", "twine")
    for left in DIST.glob("risingsearch-*"):
        left.unlink()
    session.run("python", "-m", "build", "--outdir", str(DIST))
    built = [str(path) for path in DIST.glob("risingsearch-*")]
    session.run("twine", "check", "--strict", *built)
    session.run("check-wheel-contents", str(_built(session, "*.whl")))


@nox.session(python=PYTHONS)
@nox.parametrize("kind", ["*.whl", "*.tar.gz"], ids=["wheel", "sdist"])
def installed(session: nox.Session, kind: str) -> None:
    """Install what is published where nothing else is, and search with it."""
    session.install(str(_built(session, kind)))
    session.run("python", "-I", ".ci/installed.py")
    session.run("risingsearch", "policies", silent=True)


@nox.session(python=OLDEST_PYTHON)
def demo(session: nox.Session) -> None:
    """Play the README's demo from the source distribution."""
    sdist = _built(session, "*.tar.gz").resolve().as_uri()
    session.install(f"risingsearch[plot,sklearn] @ {sdist}")
    session.chdir(session.create_tmp())
    session.run("risingsearch", "demo")


@nox.session(python=OLDEST_PYTHON)
def slow(session: nox.Session) -> None:
    """Run the tests that are marked slow, which .ci/run leaves out."""
    session.install("-e", ".[test]", "playwright>=1.49")
    session.run("python", "-m", "pytest", "-m", "slow", *session.posargs)


@nox.session(python=OLDEST_PYTHON)
@nox.parametrize(
    "part", [name for name, part in PARTS.items() if part.with_oldest is not None]
)
def oldest(session: nox.Session, part: str) -> None:
    """Run the tests of a dependency in the oldest version that is allowed."""
    extra = PROJECT["optional-dependencies"].get(PARTS[part].extra, [])
    bounds = [*PROJECT["dependencies"], *extra]
    oldest = [bound.replace(">=", "==") for bound in bounds]
    # Ray 2.49 leaves processes of its own to the garbage collector.
    leaks = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
    _test(session, PARTS[part], [*oldest, *(PARTS[part].with_oldest or ())], *leaks)


@nox.session(python=PYTHONS)
@nox.parametrize("part", list(PARTS))
def newest(session: nox.Session, part: str) -> None:
    """Run the tests of a dependency in its newest version."""
    _test(session, PARTS[part], [])


def _test(session: nox.Session, part: Part, bounds: list[str], *options: str) -> None:
    wheel = _built(session, "*.whl").resolve().as_uri()
    session.install(
        f"risingsearch[{part.extra}] @ {wheel}", *part.besides, *bounds, *TOOLS
    )
    session.run("python", "-m", "pytest", *options, *session.posargs, *part.tests)


def _built(session: nox.Session, pattern: str) -> Path:
    found = list(DIST.glob(f"risingsearch-{pattern}"))
    if len(found) != 1:
        session.error("there is nothing to install: run nox -s build first")
    return found[0]

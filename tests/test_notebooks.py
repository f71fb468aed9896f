"""The notebooks run from the first cell to the last, and are kept without outputs."""

import re
from pathlib import Path

import nbformat
import pytest
from ipykernel.kernelspec import get_kernel_dict
from jupyter_client import AsyncKernelManager
from jupyter_client.kernelspec import KernelSpec
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
BAR = "application/vnd.jupyter.widget-view+json"


class ThisPython(AsyncKernelManager):
    """Starts the Python that runs the tests, whatever kernels are installed."""

    kernel_spec = KernelSpec(**get_kernel_dict())


def read(name):
    return nbformat.read(NOTEBOOKS / name, as_version=nbformat.NO_CONVERT)


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Return a function: a notebook run in an empty folder, and what it shows."""
    for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))

    def run(name):
        notebook = read(name)
        NotebookClient(
            notebook,
            kernel_manager_class=ThisPython,
            resources={"metadata": {"path": str(tmp_path)}},
        ).execute()
        return [output for cell in code(notebook) for output in cell.outputs]

    return run


def shown(outputs, kind):
    """Return everything of a kind that cells show."""
    return [output.data[kind] for output in outputs if kind in output.get("data", {})]


def summaries(outputs):
    """Return the HTML of every search or result that shows its best arms."""
    pages = shown(outputs, "text/html")
    return [page for page in pages if '<div class="risingsearch">' in page]


def printed(outputs, stream):
    return "".join(output.text for output in outputs if output.get("name") == stream)


def test_the_tabular_notebook_shows_a_bar_and_tables(run):
    outputs = run("tabular.ipynb")
    assert printed(outputs, "stderr") == ""
    assert len(shown(outputs, BAR)) == 2  # one for the fit, one for more budget
    fitted, continued = summaries(outputs)
    assert "Pipeline" in fitted
    assert "120 epochs used" in fitted
    assert "160 epochs used" in continued
    assert any("report.html" in text for text in shown(outputs, "text/plain"))


@pytest.mark.slow
def test_the_pytorch_notebook_is_interrupted_and_ends_with_the_best_model(run):
    outputs = run("pytorch.ipynb")
    assert printed(outputs, "stderr") == ""
    assert len(shown(outputs, BAR)) == 2  # before and after the interrupt
    search, result = summaries(outputs)
    used = re.search(r"(\d+) epochs used of a budget of 60 epochs", search)[1]
    assert 30 <= int(used) < 60  # the job in which half is spent has ended
    assert "60 epochs used of a budget of 60 epochs" in result
    assert len(shown(outputs, "image/png")) == 1
    said = printed(outputs, "stdout")
    assert "Interrupted" in said
    best = re.search(r"Best accuracy <strong>([\d.]+)</strong>", result)[1]
    again = re.search(r"validates again at ([\d.]+)", said)[1]
    assert f"{float(again):.6g}" == best


@pytest.mark.parametrize("name", ["tabular.ipynb", "pytorch.ipynb"])
class TestWhatIsKept:
    def test_no_outputs_and_no_counts(self, name):
        for cell in code(read(name)):
            assert (cell.outputs, cell.execution_count) == ([], None)

    def test_the_format_is_valid(self, name):
        nbformat.validate(read(name))

    def test_nothing_of_whoever_wrote_it(self, name):
        notebook = read(name)
        assert set(notebook.metadata) == {"kernelspec", "language_info"}
        assert notebook.metadata.language_info == {"name": "python"}

    def test_prose_stands_before_every_cell_of_code(self, name):
        kinds = [cell.cell_type for cell in read(name).cells]
        assert kinds == ["markdown", "code"] * (len(kinds) // 2)


def test_these_are_all_notebooks():
    names = {path.name for path in NOTEBOOKS.iterdir()}
    assert names == {"tabular.ipynb", "pytorch.ipynb"}

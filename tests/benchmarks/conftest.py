import sys
from pathlib import Path

import pytest

# The benchmarks are run from a checkout; they are no part of what is installed.
sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(autouse=True)
def small_figures(monkeypatch):
    """Draw as few pixels as the files of a figure need to be there."""
    monkeypatch.setattr("benchmarks.shared.figures.DPI", 30)

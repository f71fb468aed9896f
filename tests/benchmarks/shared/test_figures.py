import numpy as np
import pytest

from benchmarks.shared import figures
from risingsearch.simulation import Comparison


@pytest.fixture
def comparison():
    regret = np.random.default_rng(0).uniform(1, 9, (1, 2, 3, 5))
    names = ["cure-ucb", "sw-ucb", "my-own"]
    return Comparison(names, ["here"], [10, 20], regret, regret)


def test_a_policy_looks_the_same_in_every_figure():
    few, many = figures.looks(["sw-ucb"]), figures.looks(["x", "sw-ucb", "y"])
    assert few["sw-ucb"] == many["sw-ucb"]
    assert len({many[name] for name in ("x", "sw-ucb", "y")}) == 3
    assert len(set(figures.LOOKS.values())) == len(figures.LOOKS)


def test_figures_are_png_and_svg_and_reproducible(comparison, tmp_path):
    shown = figures.regret(comparison, tmp_path)
    assert shown == "![regret](regret.png)"
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    first = (tmp_path / "regret.svg").read_bytes()
    figures.regret(comparison, tmp_path)
    assert (tmp_path / "regret.svg").read_bytes() == first


def test_legend_follows_the_ends_of_the_lines():
    figure, [ax] = figures.new(3, 2)
    for name, end in (("low", 1.0), ("high", 3.0), ("middle", 2.0)):
        ax.plot([0, 1], [0, end], label=name)
    figures.legend(figure, ax)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["high", "middle", "low"]


def test_bars_have_the_lowest_on_top():
    _, [ax] = figures.new(3, 2)
    figures.bars(ax, ["a", "b"], np.array([[1.0, 3.0], [5.0, 5.0]]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
    assert [bar.get_width() for bar in ax.patches] == [5.0, 2.0]

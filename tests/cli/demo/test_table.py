"""The table and the margins of the demo say what the runs say."""

import pytest

from risingsearch.cli.demo import table
from risingsearch.cli.demo.searches import OWN, DemoRun


def run(search, seed, score):
    return DemoRun(
        search, seed, [(1, 0.1), (9, score)], score - 0.1, 270, 10 + seed, 1.0
    )


@pytest.fixture
def found():
    own = [run(OWN, seed, score) for seed, score in enumerate((0.9, 0.8, 0.7))]
    return [*own, *(run("other", seed, 0.75) for seed in range(3))]


def test_a_row_has_the_median_and_the_range_of_the_seeds(found):
    own, other = table.rows(found)
    assert own == {
        "search": OWN,
        "score": "0.800 (0.700 to 0.900)",
        "test": "0.700 (0.600 to 0.800)",
        "epochs": 270,
        "tried": 11,
    }
    assert other["score"] == "0.750 (0.750 to 0.750)"


def test_the_columns_of_the_text_stand_below_each_other(found):
    head, *lines = table.as_text(table.rows(found)).splitlines()
    at = head.index("epochs")
    assert [line[at : at + 3] for line in lines] == ["270", "270"]


def test_the_margin_says_on_how_many_seeds_and_by_how_much(found):
    [line] = table.margins(found[::-1])
    assert str(line).startswith(f"{OWN} is above other on 2 of 3 seeds, by +0.0500 ± ")


def test_the_margin_on_the_test_rows_is_one_of_its_own(found):
    found[0] = found[0]._replace(test_score=0.1)
    [line] = table.margins(found, "test_score")
    assert str(line).startswith(f"{OWN} is above other on 1 of 3 seeds, by the test ")
    assert line.mean == pytest.approx((-0.55 + 0.05 - 0.05) / 3)

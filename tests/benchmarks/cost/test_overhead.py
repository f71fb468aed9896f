import csv

import pytest

from benchmarks.cost import overhead, pipelines


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    out = tmp_path_factory.mktemp("overhead")
    few = overhead.candidates("digits")[:2]
    with pytest.MonkeyPatch.context() as patch:
        tiny = overhead.Scale(arms=(2,), budget=30, repeats=1, rows=500)
        patch.setitem(overhead.SCALES, "quick", tiny)
        patch.setattr(overhead, "EPOCH_SECONDS", 0.001)
        patch.setattr(overhead, "PROBED", 12)
        patch.setattr(overhead, "candidates", lambda problem: few)
        overhead.run(out, scale="quick", seed=0)
    assert (out / "summary.md").read_text().startswith("# Overhead")
    with (out / "results.csv").open() as file:
        return list(csv.DictReader(file))


def test_every_policy_is_timed_that_needs_no_models(table):
    timed = {row["what"] for row in table if row["measure"] == "ms per epoch"}
    assert {"cure-ucb, 2 arms", "kl-ucb, 2 arms"} < timed
    assert "cto-sim, 2 arms" not in timed


def test_a_pipeline_is_transformed_at_most_as_often_as_in_a_randomized_search(table):
    counts = [row for row in table if "of RandomizedSearchCV" in row["measure"]]
    assert len(counts) == 3 * len(pipelines.SPACES)
    assert {row["verdict"] for row in counts} == {"holds"}


def test_time_is_held_against_its_bar(table):
    [row] = [row for row in table if "prepared rows" in row["measure"]]
    holds = float(row["value"]) <= float(row["bar"]) == 1.1
    assert row["verdict"] == ("holds" if holds else "does not hold")

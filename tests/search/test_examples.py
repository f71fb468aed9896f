"""Scores of single examples, that ``train`` may return."""

import numpy as np
import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.errors import SetupError

LEVELS = (0.6, 0.8, 0.82, 0.7)
CANDIDATES = [{"level": level} for level in LEVELS]


def start(params, seed):
    return {"rng": np.random.default_rng(seed), "epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    hits = state["rng"].random(200) < state["level"]
    return {"score": hits.mean(), "examples": hits, "loss": 1.0}


def search(train=train, **more):
    arguments = {"budget": 16, "max_epochs": 6, "seed": 0, **more}
    return RisingSearch(Functions(start, train), CANDIDATES, **arguments)


def test_examples_correct_the_best_score():
    result = search().run()
    assert result.corrected_source == "bootstrap of 200 examples"
    low, high = result.corrected_interval
    assert low < result.corrected_score < min(high, result.best_score)
    assert result.standing.startswith(f"arm {result.best_arm} is level with ")
    assert set(result.tied) <= {0, 1, 2, 3} - {result.best_arm}


def test_examples_are_no_metric():
    result = search().run()
    assert result.other_metrics == ["loss"]
    assert "examples" not in result.history[0]


def test_a_number_of_examples_is_a_metric():
    def counting(state):
        return {"score": 0.5, "examples": 1200}

    result = search(counting).run()
    assert result.history["examples"] == [1200] * 16
    assert "from epoch to epoch" in result.corrected_source


def test_a_search_that_was_stopped_and_resumed_has_the_same_verdict(tmp_path):
    whole = search().run()

    def stop_early(epoch):
        if epoch.number in (3, 9):
            epoch.stop()

    for _ in range(2):
        search(run_dir=tmp_path, callbacks=[stop_early]).run()
    result = search(run_dir=tmp_path).run()
    assert result.n_epochs == whole.n_epochs == 16
    saved = RisingSearch.saved_result(tmp_path)
    for each in (result, saved):
        assert each.evidence.verdict == whole.evidence.verdict
    files = sorted(path.name for path in (tmp_path / "examples").iterdir())
    best = {arm.arm: arm.best_epoch for arm in result.arms}
    assert files == [f"arm-{a:06d}-epoch-{e:06d}.npy" for a, e in best.items() if e]


def test_a_damaged_file_counts_as_absent(tmp_path):
    result = search(run_dir=tmp_path).run()
    other = next(arm.arm for arm in result.arms if arm.arm != result.best_arm)
    [file] = (tmp_path / "examples").glob(f"arm-{other:06d}-*")
    file.write_bytes(file.read_bytes()[:-3])
    saved = RisingSearch.saved_result(tmp_path)
    assert saved.corrected_source == "bootstrap of 200 examples of 3 of 4 arms"


def test_many_examples_are_kept_as_means_of_blocks(tmp_path):
    def training(state):
        scores = np.sort(state["rng"].random(30_001))
        return {"score": float(scores.mean()), "examples": scores}

    result = search(training, run_dir=tmp_path).run()
    assert result.corrected_source == "bootstrap of 2,000 examples"
    low, high = result.corrected_interval
    assert 0.005 < high - low < 0.012  # as of 30,000 rows, in any order
    sizes = [path.stat().st_size for path in (tmp_path / "examples").iterdir()]
    assert max(sizes) < 9_000


@pytest.mark.parametrize(
    "examples",
    [np.ones((4, 2)), [1.0, 0.0], ["a", "b"], [0.5], [np.nan, 1.0]],
    ids=["table", "another mean", "text", "single", "nan"],
)
def test_examples_that_are_no_scores_are_refused(examples):
    def training(state):
        return {"score": 0.9, "examples": examples}

    with pytest.raises(
        SetupError, match="an array with a score of each validation row"
    ):
        search(training).run()


def test_the_arms_are_printed_with_the_verdict():
    one = search()
    result = one.run()
    assert repr(one.explain()).splitlines()[-1] == result.standing
    assert result.standing in result._repr_html_()

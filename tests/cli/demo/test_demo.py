"""The demo prints its table, and writes its pictures and its report."""

import json
from concurrent.futures.process import BrokenProcessPool

import pytest

import risingsearch.cli.demo as demo
from risingsearch import Functions, RisingSearch
from risingsearch.cli.demo import table
from risingsearch.cli.demo.searches import OWN, DemoRun
from risingsearch.errors import InvalidParameterError, SearchFailedError


def network(width):
    size = {"width": width, "depth": 1}
    return {**size, "activation": "relu", "rate": 0.01}


@pytest.fixture
def found():
    """Return runs of two searches, one of them with its result."""

    def train(state):
        state["epochs"] += 1
        return 1 - 0.8 ** (state["epochs"] * state["width"] / 64)

    search = RisingSearch(
        Functions(lambda params, seed: {"epochs": 0, **params}, train),
        [network(width) for width in (16, 32, 64)],
        budget=20,
        max_epochs=10,
        seed=0,
    )
    result = search.run()
    best = [(1, 0.2), (20, result.best_score)]
    own = [DemoRun(OWN, seed, best, 0.8, 20, 3, 1.0, result) for seed in (0, 1)]
    return [*own, *(DemoRun("other", seed, best, 0.7, 20, 2, 1.0) for seed in (0, 1))]


def test_table_picture_and_report(found, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "run_all", lambda seeds: found)
    told = demo.run_demo(tmp_path / "new", seed=0)
    printed = capsys.readouterr().out
    assert f"{OWN} is above other on 0 of 2 seeds" in printed
    names = ["best-by-epochs.png", "report.html"]
    assert told["files"] == [str(tmp_path / "new" / name) for name in names]
    assert all((tmp_path / "new" / name).stat().st_size > 5_000 for name in names)
    assert [row["search"] for row in told["table"]] == [OWN, "other"]
    assert len(told["runs"]) == 4
    assert told["margins"][0]["on_seeds"] == 0
    json.dumps(told)


@pytest.mark.parametrize(
    ("out", "seed", "message"),
    [
        ("file", 0, r"file/best-by-epochs.png cannot be written"),
        ("out", 2**32, "must be at most 42949672"),
    ],
)
def test_what_would_fail_at_the_end_is_refused_first(
    monkeypatch, tmp_path, out, seed, message
):
    monkeypatch.delattr(demo, "run_all")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidParameterError, match=message):
        demo.run_demo(tmp_path / out, seed)


@pytest.mark.parametrize("error", [BrokenProcessPool("killed"), BrokenPipeError()])
def test_a_process_that_dies_ends_the_demo(monkeypatch, tmp_path, error):
    def die(*job):
        raise error

    monkeypatch.setattr(demo, "Parallel", lambda **options: die)
    with pytest.raises(SearchFailedError, match="has died"):
        demo.run_demo(tmp_path, 0)


def test_progress_is_counted_on_standard_error(found, capsys):
    assert list(demo._counted(iter(found), 4)) == found
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"{n} of 4 searches done" for n in (1, 2, 3, 4)]


def test_the_best_so_far_is_drawn_as_the_median_of_the_seeds(found):
    found[1] = found[1]._replace(best=[(1, 0.4), (20, 0.9)])
    [ax] = table.best_by_epochs(found).axes
    own = next(line for line in ax.get_lines() if line.get_label() == OWN)
    x, y = own.get_data()
    assert y[x == 19] == pytest.approx(0.3)

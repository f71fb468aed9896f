import csv
from functools import partial

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.papers.smooth import articles, sinusoid, suite
from benchmarks.papers.smooth.sinusoid import REFERENCES, instance
from risingsearch.curves.clicks import click_log, make_click_log
from risingsearch.simulation import Comparison


@pytest.fixture
def tiny(monkeypatch):
    much = suite.Scale(3, (2000, 6000), (2000, 4000), 3, (3000, 9000), 3)
    monkeypatch.setattr(suite, "SCALES", {"quick": much})
    monkeypatch.setattr(sinusoid, "REFERENCES", {2000: {"be-s": 50.0}})
    monkeypatch.setattr(
        suite, "make_click_log", partial(make_click_log, n_entries=5000)
    )


def comparison(regret, n_runs=30):
    """Return one whose policies have these mean regrets, by horizon."""
    rng = np.random.default_rng(0)
    rows = np.array(
        [
            [m + rng.uniform(-1, 1, n_runs) for m in of.values()]
            for of in regret.values()
        ]
    )[None]
    names = list(next(iter(regret.values())))
    return Comparison(names, ["sinusoid"], list(regret), rows, rows)


class TestSinusoid:
    def test_an_instance_is_the_same_at_every_horizon(self):
        short, long = (instance(horizon, 1.0, 3) for horizon in (10**4, 10**6))
        assert short.amplitude == long.amplitude
        assert short.mean(1, 1, 1234) == pytest.approx(long.mean(1, 1, 123_400))

    def test_bars_are_computed(self):
        def verdicts(changes):
            regret = {h: of | changes for h, of in REFERENCES.items()}
            return [row["verdict"] for row in sinusoid.bars(comparison(regret))]

        assert verdicts({}) == ["holds", "holds"]
        assert verdicts({"be-s": 290_000}) == ["does not hold", "does not hold"]

    def test_claims_are_computed(self):
        def verdicts(be_ns, be_s):
            return [
                claim.holds
                for claim in sinusoid.check(
                    comparison(
                        {
                            h: {"be-ns": h**be_ns, "be-s": h**be_s, "rexp3": h**0.7}
                            for h in REFERENCES
                        }
                    )
                )
            ]

        assert verdicts(0.69, 0.63) == [True] * 4
        assert verdicts(0.69, 0.71) == [False, True, False, False]


class TestClicks:
    def test_a_short_log_has_shorter_horizons(self):
        log = make_click_log(0, n_entries=2000, seconds=6400)
        study = articles.Study(log, 1, (), 1, 0, 1)
        assert 6300 < study.horizons[-1] <= 6400
        assert study.horizons[0] == study.horizons[-1] // 32


@pytest.mark.slow
@pytest.mark.usefixtures("tiny")
class TestSuite:
    def test_without_a_log_it_says_that_clicks_are_synthetic(self, tmp_path, capsys):
        main(["smooth", "--quick", "--out", str(tmp_path)])
        summary = (tmp_path / "smooth" / "summary.md").read_text()
        assert summary in capsys.readouterr().out
        assert "**The log is synthetic** (5,000 entries, 20 items" in summary
        for figure in ("sinusoid", "clicks", "click-rates", "instances"):
            assert (tmp_path / "smooth" / f"{figure}.png").stat().st_size > 10_000
        with (tmp_path / "smooth" / "results.csv").open() as lines:
            environments = {row["environment"] for row in csv.DictReader(lines)}
        assert environments == {
            "sinusoid, N(0, 1) noise",
            "sinusoid, Bernoulli noise",
            "clicks, counterfactual",
            "clicks, LOWESS-fitted",
        }

    def test_a_log_of_ones_own_is_played(self, tmp_path):
        made = make_click_log(5, n_items=4, n_entries=5000, seconds=9000)
        file = tmp_path / "mine.csv"
        with file.open("w", newline="") as lines:
            rows = csv.writer(lines)
            rows.writerow(["timestamp", "item", "click"])
            for when, item, click in zip(*made[:3], strict=True):
                rows.writerow([when, made.names[item], int(click)])
        assert np.array_equal(click_log(file).clicks, made.clicks)
        main(["smooth", "--quick", "--out", str(tmp_path), "--clicks", str(file)])
        summary = (tmp_path / "smooth" / "summary.md").read_text()
        assert "The log is `mine.csv`: 5,000 entries, 4 items, 2.5 hours" in summary
        assert "synthetic" not in summary

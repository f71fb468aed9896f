from functools import partial

import numpy as np
import pytest

from risingsearch.curves import load_curves
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import POLICIES
from risingsearch.simulation import compare, reports
from risingsearch.simulation.recorded_search import RecordedSearch
from risingsearch.simulation.reports import (
    RESTLESS,
    RISING,
    ROTTING,
    environment_lines,
    environment_report,
    recorded_lines,
    recorded_report,
    verdict,
)

NAMED = {
    "auto(kept_share=0.5)": ("auto", {"kept_share": 0.5}),
    "random": ("random", {}),
}


def made(score, best, typical):
    score = np.asarray(score, dtype=float)
    n_budgets, n_policies, _ = score.shape
    return RecordedSearch(
        ["asha", "random-search"][:n_policies],
        [10 * (i + 1) for i in range(n_budgets)],
        score,
        np.full(score.shape, 5),
        best,
        typical,
    )


@pytest.fixture
def interpreted(monkeypatch):
    """Let reports play without compiling."""
    recorded = reports.recorded_search
    for owner, name in (reports, "compare"), (recorded, "search_recorded"):
        play = partial(getattr(owner, name), compiled=False)
        monkeypatch.setattr(owner, name, play)


class TestEnvironments:
    def test_the_rows_are_those_of_compare(self, interpreted):
        report = environment_report("ltf", NAMED, [50, 200], 6, 3, 1, {"n_arms": 2})
        pairs = {
            "looks-then-slope(kept_share=0.5)": (
                "looks-then-slope",
                {"kept_share": 0.5},
            ),
            "random": "random",
        }
        result = compare(
            pairs, {"ltf": ("ltf", {"n_arms": 2})}, [50, 200], 6, 3, compiled=False
        )
        frame = result.to_frame().set_index(["horizon", "policy"])
        assert len(report["rows"]) == len(frame)
        for row in report["rows"]:
            expected = frame.loc[row["horizon"], row["policy"]]
            for name in ("mean_regret", "average_rank", "best_mean"):
                assert row[name] == pytest.approx(expected[name])
            assert row["low"] == pytest.approx(expected["low"], rel=0.01)
            assert row["high"] == pytest.approx(expected["high"], rel=0.01)

    @pytest.mark.parametrize(
        ("name", "suitable"),
        [("ltf", RISING), ("rotting-np", ROTTING), ("periodic", RESTLESS)],
    )
    def test_policies_and_horizons_that_suit(self, monkeypatch, name, suitable):
        def played(policies, environments, horizons, *_, progress):
            raise KeyboardInterrupt(list(policies), list(horizons))

        monkeypatch.setattr(reports, "compare", played)
        with pytest.raises(KeyboardInterrupt) as caught:
            environment_report(name, None, None, 1, 0, None, {})
        assert caught.value.args == (list(suitable), [10_000, 50_000])
        assert set(suitable) <= set(POLICIES)

    def test_what_is_wrong_is_told_before_anything_plays(self, monkeypatch):
        monkeypatch.setattr(reports, "compare", None)
        wrong = {"random": ("random", {}), "asha(et=3)": ("asha", {"et": 3})}
        with pytest.raises(InvalidParameterError, match="did you mean 'eta'"):
            environment_report("ltf", wrong, [50], 1, 0, None, {})
        wrong = {"random": ("random", {}), "asha(eta=1)": ("asha", {"eta": 1})}
        with pytest.raises(InvalidParameterError, match="eta must be"):
            environment_report("ltf", wrong, [50], 1, 0, None, {})

    def test_lines(self):
        row = {"policy": "random", "average_rank": 2.0}
        rows = [
            row | {"horizon": 10, "mean_regret": 1.234, "low": 1.0, "high": 1.5},
            row | {"horizon": 999, "mean_regret": 4567.8, "low": -9.9, "high": 9999.0},
        ]
        report = {"environment": "ltf", "reference": "dynamic", "n_runs": 5}
        lines = list(environment_lines(report | {"rows": rows}))
        assert lines[0] == "ltf: regret against the best arm of every round"
        assert "mean of 5 runs" in lines[1]
        assert "10 rounds" in lines[3]
        assert lines[4].split() == ["random", "1.23", "1.00", "to", "1.50", "2.00"]
        assert lines[7].split() == ["random", "4568", "-10", "to", "9999", "2.00"]
        assert max(map(len, lines)) < 80


class TestRecordedCurves:
    @pytest.fixture
    def report(self, tmp_path, interpreted):
        curves = np.array([[0.5, 0.6, 0.7], [0.9, 0.5, 0.5], [0.2, 0.3, np.nan]])
        np.savetxt(tmp_path / "a.csv", curves, delimiter=",")
        return recorded_report(
            str(tmp_path / "a.csv"),
            load_curves(tmp_path / "a.csv"),
            {"random-search": ("random-search", {})},
            [3, 8],
            4,
            0,
            1,
            noise=0.0,
            minimize=False,
            within=None,
        )

    def test_lines(self, report):
        lines = list(recorded_lines(report))
        assert lines[0].startswith("a.csv: one row per arm, 3 configurations of up to")
        assert "0.9000" in lines[1]
        assert "0.7000" in lines[1]
        start = lines.index(next(line for line in lines if line.startswith("8 epochs")))
        assert lines[start + 1].split() == [
            "random-search", "*", "0.9000", "0.0000", "0.0000", "8",
        ]  # fmt: skip
        assert " ".join(lines).endswith(report["verdict"])
        assert max(map(len, lines)) < 80

    @pytest.mark.parametrize(
        ("best", "typical", "shown"),
        [
            (0.9, 0.5, "0.9000"),
            (0.9, 0.88, "0.90000"),
            (0.9, 0.9, "0.90000"),
            (1234.5, 900.0, "1234.5"),
            (1e6, 2e6, "1000000"),
            (-3.25, -5.0, "-3.250"),
        ],
    )
    def test_figures_are_as_fine_as_the_differences(self, report, best, typical, shown):
        lines = list(recorded_lines(report | {"best": best, "typical": typical}))
        assert lines[1].startswith(f"best recorded score {shown};")


class TestVerdict:
    def test_a_budget_is_enough(self):
        found = made([[[0.8], [0.7]], [[0.98], [0.9]], [[0.99], [0.98]]], 1.0, 0.0)
        assert verdict(found, None) == (
            "asha with 20 epochs would have found 0.980 on average (best recorded "
            "1.000). random-search needs 30 epochs for that."
        )

    def test_random_search_may_not_get_there(self):
        found = made([[[0.99], [0.7]], [[0.99], [0.9]]], 1.0, 0.0)
        assert verdict(found, None).endswith(
            "random-search does not get there: 0.900 with 20 epochs."
        )

    def test_no_budget_is_enough(self):
        found = made([[[0.7]], [[0.8]]], 1.0, 0.0)
        assert verdict(found, 0.1) == (
            "No policy comes within 0.100 of the best recorded score, 1.000, on "
            "average. Nearest is asha with 20 epochs: 0.800."
        )

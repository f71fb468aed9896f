import csv
from functools import partial

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.hpo import bars, methods, parts, replay, suite
from benchmarks.hpo.decision_times import Decisions
from benchmarks.hpo.methods import Method
from benchmarks.hpo.parts import Part, Played
from benchmarks.hpo.replay import Outcome, Setting
from benchmarks.hpo.tasks import make_task
from risingsearch.simulation import simulate


def curves(seed):
    rng = np.random.default_rng(seed)
    ends, rates = rng.uniform(0.2, 0.9, (40, 1)), rng.uniform(1, 4, (40, 1))
    return ends * (1 - np.exp(-np.arange(1, 7) / rates))


@pytest.fixture
def tasks():
    table = curves(0)
    made = [
        make_task(family, name, table, cost=np.ones((40, 6)))
        for family, names in bars.TASKS.items()
        for name in names
    ]
    return [*made, make_task("lcdb", "x", table)]


def played(tasks, regret, seeds=range(30)):
    """Return a part in which methods have these mean regrets, the same everywhere."""
    rng = np.random.default_rng(0)
    made = [Method(name, "auto") for name in regret]
    part = Part("clean", tasks, made, Setting(), (1, 2), seeds)
    outcomes = np.zeros((len(regret), len(tasks), 2, len(seeds), len(Outcome._fields)))
    noise = rng.uniform(-0.01, 0.01, outcomes.shape[1:-1])
    for m, mean in enumerate(regret.values()):
        outcomes[m, ..., 0] = mean + noise + rng.uniform(-1e-3, 1e-3, noise.shape)
    return Played(part, outcomes)


def test_parts_cover_what_there_is(tasks):
    full = parts.SCALES["full"]
    plan = {part.name: part for part in parts.parts(tasks, full, 0)}
    assert list(plan) == [
        *("clean", "noise 0.01", "noise 0.03", "LCDB", "4 in flight", "16 in flight"),
        *("unknown", "seconds"),
    ]
    assert len(plan["clean"].tasks) == 21
    assert plan["clean"].seeds == range(30)
    assert [task.family for task in plan["LCDB"].tasks] == ["lcdb"]
    assert all(not method.plans_rounds for method in plan["seconds"].methods)
    only = {part.name: part for part in parts.parts(tasks[-1:], full, 0)}
    assert len(only["clean"].tasks) == 1
    assert "LCDB" not in only


def test_a_part_gives_what_another_has_too(tasks):
    all_of_it = played(tasks, {"auto": 0.2, "asha-3": 0.3}, range(5))
    other = all_of_it.part._replace(
        methods=all_of_it.part.methods[1:], multiples=(2,), seeds=range(1, 3)
    )
    found = all_of_it.where(other)
    assert found.names == ["asha-3"]
    assert np.array_equal(found.regret, all_of_it.regret[1:, :, 1:, 1:3])


def test_methods_have_names_of_their_own():
    names = [method.name for method in methods.everyone()]
    assert len(set(names)) == len(names)


class TestBars:
    def verdicts(self, rows):
        return {row["bar"]: row["verdict"] for row in rows}

    def test_the_reference_is_compared_on_its_own_tasks_alone(self, tasks):
        regret = {name: row.mean for name, row in bars.REFERENCE.items()}
        same = played(tasks[:-1], regret)
        assert bars.as_reference(same)
        assert not bars.as_reference(played(tasks, regret))
        assert not bars.as_reference(played(tasks[:-1], regret, range(10)))
        found = self.verdicts(bars.reproduced(same))
        assert set(found.values()) == {"holds"}
        line = bars.reference_table(same).splitlines()[2]
        assert "0.220 / 0.220" in line
        assert "/ 0.277" in line
        off = self.verdicts(
            bars.reproduced(played(tasks[:-1], regret | {"asha-3": 0.25}))
        )
        assert [bar for bar, holds in off.items() if holds != "holds"] == [
            "reproduced: asha-3 0.285 ± 0.011"
        ]

    @pytest.mark.parametrize(
        ("mean", "holds"), [(0.205, "holds"), (0.30, "does not hold")]
    )
    def test_the_default_against_the_bar_and_the_rivals(self, mean, holds, tasks):
        part = played(tasks, {"auto": mean, "asha-3": 0.27, "epsilon-greedy": 0.25})
        below = bars.below("mean", part, 0.22)
        assert below["verdict"] == holds
        assert "(here at 1x, 2x alone)" in below["bar"]
        assert bars.better(part, "asha-3")["verdict"] == holds

    def test_noise_allows_for_the_interval_of_the_difference(self, tasks):
        names = [method.name for method in methods.BASELINES]
        level = dict.fromkeys(names, 0.4)
        close = played(tasks, {"auto": 0.4} | level)
        worse = played(tasks, {"auto": 0.41} | level)
        verdict = bars.not_above_the_best
        assert verdict(0.01, worse)["verdict"] == "does not hold"
        assert "not above the best baseline" in verdict(0.01, close)["bar"]

    def test_four_jobs_may_cost_five_percent(self, tasks):
        one = played(tasks, {"auto": 0.2})
        for mean, holds in ((0.208, "holds"), (0.215, "does not hold")):
            four = played(tasks, {"auto": mean})
            assert bars.parallel(one, four)["verdict"] == holds

    def test_decisions_have_a_limit(self):
        assert bars.in_time(Decisions("auto", 200, 4.9, 9.0))["verdict"] == "holds"
        slow = bars.in_time(Decisions("auto", 2_000, 51.0, 60.0))
        assert slow["verdict"] == "does not hold"


def test_the_whole_suite_at_a_small_scale(tmp_path, monkeypatch, capsys):
    much = parts.Scale(2, 2, 2, 2, 2, (1, 2), 1)
    monkeypatch.setattr(suite, "SCALES", {"quick": much})
    monkeypatch.setattr(parts, "MULTIPLES", (1, 2))
    monkeypatch.setattr(methods, "BANDITS", methods.BANDITS[:1])
    monkeypatch.setattr(bars, "DECISION_BARS", {20: 5.0})
    monkeypatch.setattr(replay, "simulate", partial(simulate, compiled=False))
    for k, name in enumerate(("one/a", "one/b", "two/c", "lcdb/d")):
        path = tmp_path / f"{name}.npz"
        path.parent.mkdir(exist_ok=True)
        np.savez(path, valid=curves(k), cost=np.ones((40, 6)))
    data = ["--data-dir", str(tmp_path), "--jobs", "1"]
    main(["hpo", "--quick", "--out", str(tmp_path / "out"), *data])
    out = tmp_path / "out" / "hpo"
    text = (out / "summary.md").read_text()
    assert "Ours / the reference's" not in text
    assert text in capsys.readouterr().out
    for title in ("The bars", "Without noise", "Noise 0.03", "LCDB", "Jobs in flight"):
        assert f"## {title}\n" in text
    for name in ("regret", "ranks", "families", "allocation"):
        assert (out / f"{name}.png").exists()
        assert (out / f"{name}.svg").exists()
    with (out / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} >= {"clean", "unknown", "seconds", "LCDB"}
    assert all(0.0 <= float(row["regret"]) <= 1.0 for row in rows if row["regret"])


def test_processes_find_the_same(tasks):
    part = Part(
        "p", tasks[:2], [Method("a", "asha")], Setting(live=True), (1,), range(2)
    )
    here, there = (parts.play([part], jobs)["p"].outcomes for jobs in (1, 2))
    assert np.array_equal(here, there)

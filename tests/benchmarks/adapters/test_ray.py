import csv

from benchmarks.adapters import ray
from benchmarks.peers.jobs import Job, Task
from benchmarks.shared.problems import load


def task(seed, log):
    job = Job(ray.PROBLEM, [], [seed], str(log.parent))
    return Task(job, seed, log, *load(ray.PROBLEM))


def test_a_trial_goes_on_from_its_checkpoint(tmp_path):
    one = ray.Trial.__new__(ray.Trial)  # Ray's own part makes folders elsewhere
    one.setup({"candidate": 40}, task(0, tmp_path / "log"))
    one.step()
    one.save_checkpoint(str(tmp_path))
    expected = one.step()
    assert one.reset_config({"candidate": 0})
    assert one.step()["epoch"] == 1
    assert one.reset_config({"candidate": 40})
    one.load_checkpoint(str(tmp_path))
    assert one.step() == expected == {"score": expected["score"], "epoch": 2}


def test_suite_spends_the_budget_on_both_sides(monkeypatch, tmp_path, ray_address):
    for name in ("init", "shutdown"):  # the session of the tests is used
        monkeypatch.setattr(ray.ray, name, lambda **given: None)
    monkeypatch.setenv("TUNE_DISABLE_AUTO_CALLBACK_LOGGERS", "1")
    monkeypatch.setenv("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")
    monkeypatch.setitem(ray.SEEDS, "quick", 1)
    monkeypatch.setattr(ray, "BUDGET", 4)
    monkeypatch.setattr(ray, "order", lambda task: [0, 40])
    ray.run(tmp_path, scale="quick", seed=0)
    with (tmp_path / "results.csv").open() as file:
        [row] = csv.DictReader(file)
    assert row["audited epochs"] == row["own count"] == "4"
    assert float(row["score"]) > 0 < float(row["RisingSearch"])
    assert "within 0.005 of RisingSearch" in (tmp_path / "summary.md").read_text()

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

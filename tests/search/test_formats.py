"""What is on disk stays readable: a recorded run opens, and is written alike today."""

import json
import shutil

from example_search import CANDIDATES, RUN, TRAINABLE, write

from risingsearch import RisingSearch
from risingsearch.storage.checkpoints import Folder, Key, Store
from risingsearch.storage.journal import read
from risingsearch.storage.run_directory import JOURNAL, STATE

EVENTS = {"started", "result", "failed", "ended", "extended", "advanced", "resized"}
EVENTS |= {"died", "released", "stopped", "repeated"}


def shapes(folder):
    """Return what a run directory consists of, without the values."""
    recorded = read(folder / JOURNAL)
    events = {}
    for event in recorded.events:
        events.setdefault(event["event"], set()).update(event)
    digest, state = (folder / STATE).read_bytes().split(b"\n", 1)
    saved = json.loads(state)
    return {
        "header": {name: sorted(recorded.header[name] or ()) for name in ("settings",)},
        "names": sorted(recorded.header),
        "events": events,
        "state": [len(digest), sorted(saved), sorted(saved["scheduler"])],
        "checkpoints": sorted(path.name for path in (folder / "checkpoints").iterdir()),
    }


def test_a_run_is_written_as_the_recorded_one(tmp_path):
    """If a format has changed on purpose, record the run again: example_search.py."""
    write(tmp_path / "run")
    recorded = shapes(RUN)
    assert recorded["events"].keys() == EVENTS
    assert shapes(tmp_path / "run") == recorded


def test_the_recorded_run_opens_and_continues(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(RUN, folder)
    for has_state in (True, False):
        if not has_state:
            (folder / STATE).unlink()
        result = RisingSearch.saved_result(folder)
        assert result.candidates == CANDIDATES
        assert result.history["score"][0] == 0.25
        assert [arm.status for arm in result.arms][1] == "failed"
        assert result.budget.wall_seconds == 3660
    assert (
        Store(Folder(folder / "checkpoints")).load(Key(0, 1))[:1] == b"\x80"
    )  # pickle
    done = RisingSearch.resume(folder, TRAINABLE).run()
    assert done.curves[2] == [0.45, 0.675]
    assert done.best_state()["epochs"] == done.best_epoch == 2

"""Folders that are full, that change, or that hold what is not the search's."""

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir, nullcontext
from pathlib import Path

import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.errors import RunDirError
from risingsearch.search.following import RunReader


def begun(params, seed):
    return {"epochs": 0, "top": 1.0, **params}


def trained(state):
    state["epochs"] += 1
    return state["top"] * (1 - 1 / (1 + state["epochs"]))


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_a_state_that_cannot_be_saved_stops_the_search(tmp_path, pool):
    full = tmp_path / "full"
    full.touch()

    def save(state, path):
        Path(path).write_bytes(pickle.dumps(state))
        if full.exists() and state["epochs"] == 3:
            raise RuntimeError("file write failed: No space left on device")

    def load(path):
        return pickle.loads(Path(path).read_bytes())

    def made(executor):
        return RisingSearch(
            Functions(begun, trained, save, load),
            [{"top": top} for top in range(4)],
            budget=24,
            max_epochs=6,
            seed=0,
            run_dir=tmp_path / "run",
            executor=executor,
        )

    with nullcontext() if pool is None else pool(2) as executor:
        search = made(executor)
        for _ in range(2):
            with pytest.raises(RunDirError, match=r"cannot be written .*TMPDIR"):
                search.run()
        assert not search.result().failures
        full.unlink()
        assert search.run().n_epochs == 24
        assert made(executor).run().failures == []


def test_training_may_change_the_current_folder(tmp_path):
    folders = iter(range(99))

    def moves(state):
        folder = tmp_path / f"out{next(folders)}"
        folder.mkdir()
        os.chdir(folder)
        return trained(state)

    candidates = [{"top": top} for top in range(4)]
    options = {"max_epochs": 6, "seed": 0, "run_dir": "runs/a"}
    with chdir(tmp_path):
        search = RisingSearch(Functions(begun, moves), candidates, budget=9, **options)
        reader = RunReader("runs/a")
        search.run()
        assert reader.read().result.n_epochs == 9
        os.chdir(tmp_path)
        again = RisingSearch.resume("runs/a", Functions(begun, moves))
        again.extend(3)
        os.chdir("/")
        assert again.run().best_state()["epochs"] == again.result().best_epoch
    assert [path.parent for path in tmp_path.rglob("journal.jsonl")] == [
        tmp_path / "runs" / "a"
    ]


def test_a_file_of_the_user_is_not_replaced(tmp_path):
    (tmp_path / "state.json").write_text("mine")
    with (
        pytest.warns(RuntimeWarning, match="is damaged"),
        pytest.raises(RunDirError, match=r"state\.json is there, and"),
    ):
        RisingSearch(Functions(begun, trained), [{}], budget=1, run_dir=tmp_path)
    assert (tmp_path / "state.json").read_text() == "mine"

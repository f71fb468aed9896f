"""The files of a batch are there for as long as one of its slices is waited for."""

import json

import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts.slurm.batches import (
    Batch,
    LeftOpen,
    Outcome,
    Slice,
    counted,
    make_home,
)

DAMAGED = r"0\.json is damaged .* remove it, and resume"


@pytest.fixture
def home(tmp_path):
    return make_home(tmp_path / "my run (2)")


def part(arm, number=0):
    return Slice(arm, number, 70 + arm, {"lr": 0.1}, 0, 0, 2)


def facts(home):
    return {"arms": str(home.parent / "arms")}


def test_the_first_slice_is_still_waited_for_once_the_others_are_closed(home):
    batch = Batch.made(home, facts(home), [part(0), part(1), part(2)])
    for number in (2, 1):
        batch.close(number)
        assert list(batch.open_numbers()) == list(range(number))
    outcome = Outcome(1.5, [{"score": 0.1}], "training-x", startup=0.5)
    batch.leave(0, outcome)
    assert batch.outcome(0) == outcome
    batch.close(0)
    assert not batch.folder.exists()


def test_it_is_counted_how_far_the_slices_have_come(home):
    assert counted(home) == {}
    batch = Batch.made(home, facts(home), [part(arm) for arm in range(4)])
    Batch.made(home, facts(home), [part(4)])
    batch.note_begin(0)
    batch.note_begin(1)
    batch.leave(1, Outcome(1.5, [{"score": 0.1}], "training-x"))
    batch.close(2)
    assert counted(home) == {"training": 1, "back": 1, "waiting": 2}


def test_a_name_is_one_that_no_other_job_has(home):
    one, other = (Batch.made(home, facts(home), [part(0)]).name for _ in range(2))
    assert one != other
    assert one.startswith("my_run__2_-")


def test_what_was_left_is_claimed_once_and_what_is_known_is_dropped(home):
    batch = Batch.made(home, facts(home), [part(0), part(1), part(2, number=3)])
    left = LeftOpen(home)
    left.drop_told({0: 0, 1: 1, 2: 3})
    assert not batch.is_open(1)
    assert left.claim(part(1)) is None
    claimed, placed = left.claim(part(0))
    assert (claimed, placed.batch.name, placed.number) == (part(0), batch.name, 0)
    assert left.claim(part(0)) is None
    assert left.claim(part(2, number=3)._replace(to_epoch=5)) is None
    assert list(batch.open_numbers()) == [0]


def test_a_batch_that_was_not_written_to_its_end_is_removed(home):
    batch = Batch.made(home, facts(home), [part(0)])
    (batch.folder / "slices.json").unlink()
    assert LeftOpen(home).claim(part(0)) is None
    assert not batch.folder.exists()


def test_files_are_for_their_owner_alone(home):
    batch = Batch.made(home, facts(home), [part(0)])
    for path in (home, batch.folder, *batch.folder.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_what_is_left_is_looked_for_no_earlier_than_it_is_asked_for(home):
    left = LeftOpen(home)
    batch = Batch.made(home, facts(home), [part(0)])
    [(spec, *_)] = [batch.folder.glob("slices.json")]
    spec.rename(home / "kept")  # another process is writing it
    LeftOpen(home)
    (home / "kept").rename(spec)
    assert left.claim(part(0)) is not None


def test_of_a_directory_that_has_moved_only_what_is_trained_is_taken_in(home):
    trained = Outcome(1.5, [{"score": 0.1}], "training-x")
    batch = Batch.made(home, {"arms": "/elsewhere/run/arms"}, [part(0), part(1)])
    batch.leave(0, trained)
    left = LeftOpen(home)
    assert left.claim(part(0))[1].outcome == trained
    assert left.claim(part(1)) is None
    assert not batch.is_open(1)


@pytest.mark.parametrize(
    "content",
    [
        '{"outcome": {"seco',
        "[1]",
        '{"outcome": 3}',
        '{"outcome": {"x": 1}}',
        '{"outcome":' * 100_000,
    ],
)
def test_a_damaged_result_stops_the_search_and_says_which(home, content):
    batch = Batch.made(home, facts(home), [part(0)])
    batch.path(0).write_text(content)
    with pytest.raises(SetupError, match=DAMAGED):
        batch.outcome(0)


@pytest.mark.parametrize(
    "forged",
    [
        {"seconds": float("nan")},
        {"seconds": -1.0},
        {"startup": "soon"},
        {"work": "../../elsewhere"},
        {"work": ""},
        {"error": "KeyboardInterrupt"},
        {"message": 3},
        {"results": [3]},
        {"results": {}},
        {"results": [{}]},
        {"results": [{"score": "high"}]},
        {"results": [{"score": 10**400}]},
    ],
)
def test_a_result_that_no_job_writes_is_damaged(home, forged):
    batch = Batch.made(home, facts(home), [part(0)])
    outcome = Outcome(1.5, [{"score": 0.1}], "training-x", startup=0.5)
    batch.leave(0, outcome)
    assert batch.outcome(0) == outcome
    batch.leave(0, outcome._replace(**forged))
    with pytest.raises(SetupError, match=DAMAGED):
        batch.outcome(0)


@pytest.mark.parametrize("n_results", [0, 3])
def test_what_cannot_be_the_epochs_of_its_slice_is_damaged(home, n_results):
    batch = Batch.made(home, facts(home), [part(0)])
    batch.leave(0, Outcome(1.5, [{"score": 0.1}] * n_results, "training-x"))
    _, placed = LeftOpen(home).claim(part(0))
    with pytest.raises(SetupError, match=f"{n_results} epochs came of 1 to 2"):
        placed.check(part(0), placed.outcome)


@pytest.mark.parametrize("forged", [{}, {"arms": 3}, {"arms": "/run\0/arms"}])
def test_facts_that_no_search_writes_are_damaged(home, forged):
    batch = Batch.made(home, forged, [part(0)])
    with pytest.raises(SetupError, match=r"slices\.json is damaged"):
        batch.read()


@pytest.mark.parametrize(
    "change",
    [{"begin": "1"}, {"arm": None}, {"extra": 1}, {"begin": -5}, {"begin": 1}],
)
def test_a_slice_that_no_search_writes_is_damaged(home, change):
    batch = Batch.made(home, facts(home), [part(0)])
    spec = json.loads((batch.folder / "slices.json").read_text())
    spec["slices"][0] |= change
    (batch.folder / "slices.json").write_text(json.dumps(spec))
    with pytest.raises(SetupError, match=r"slices\.json is damaged"):
        batch.read()


def test_what_is_no_plain_file_is_damaged_and_no_folder_cannot_be_used(home):
    batch = Batch.made(home, facts(home), [part(0)])
    (batch.folder / "kept").symlink_to(batch.path(0))
    (batch.folder / "kept").rename(batch.path(0))
    with pytest.raises(SetupError, match="is damaged"):
        batch.outcome(0)
    home.parent.joinpath("other").mkdir()
    home.parent.joinpath("other", "slurm").touch()
    with pytest.raises(SetupError, match="cannot be used"):
        make_home(home.parent / "other")

"""The files of a batch exist while the search waits for one of its slices."""

import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts.slurm.batches import (
    LeftOpen,
    SliceOutcome,
    SlurmSlice,
    counted,
    made_batch,
    make_home,
    open_slices,
    read_batch,
)


@pytest.fixture
def home(tmp_path):
    return make_home(tmp_path / "my run (2)")


def part(arm, number=0):
    return SlurmSlice(arm, number, 70 + arm, {"lr": 0.1}, 0, 0, 2)


def facts(home):
    return {"arms": str(home.parent / "arms")}


def test_the_first_slice_is_still_waited_for_once_the_others_are_closed(home):
    submitted = made_batch(home, facts(home), [part(0), part(1), part(2)])
    for number in (2, 1):
        submitted[number].close()
        left = [each.number for _, each in open_slices(submitted[0].folder)]
        assert left == list(range(number))
    outcome = SliceOutcome(1.5, [{"score": 0.1}], "training-x", startup=0.5)
    submitted[0].leave(outcome)
    assert submitted[0].outcome == outcome
    submitted[0].close()
    assert not submitted[0].folder.exists()


def test_it_is_counted_how_far_the_slices_have_come(home):
    assert counted(home) == {}
    submitted = made_batch(home, facts(home), [part(arm) for arm in range(4)])
    made_batch(home, facts(home), [part(4)])
    submitted[0].note_begin()
    submitted[1].note_begin()
    submitted[1].leave(SliceOutcome(1.5, [{"score": 0.1}], "training-x"))
    submitted[2].close()
    assert counted(home) == {"training": 1, "back": 1, "waiting": 2}


def test_a_name_is_one_that_no_other_job_has(home):
    one, other = (
        made_batch(home, facts(home), [part(0)])[0].job_name for _ in range(2)
    )
    assert one != other
    assert one.startswith("my_run__2_-")


def test_what_was_left_is_claimed_once_and_what_is_known_is_dropped(home):
    submitted = made_batch(home, facts(home), [part(0), part(1), part(2, number=3)])
    left = LeftOpen(home)
    left.drop_told({0: 0, 1: 1, 2: 3})
    assert not submitted[1].is_open
    assert left.claim(part(1)) is None
    assert left.claim(part(0)) == (part(0), submitted[0])
    assert left.claim(part(0)) is None
    assert left.claim(part(2, number=3)._replace(to_epoch=5)) is None
    assert open_slices(submitted[0].folder) == [(part(0), submitted[0])]


def test_a_batch_that_was_not_written_to_its_end_is_removed(home):
    [submitted] = made_batch(home, facts(home), [part(0)])
    (submitted.folder / "slices.json").unlink()
    assert LeftOpen(home).claim(part(0)) is None
    assert not submitted.folder.exists()


def test_files_are_for_their_owner_alone(home):
    [submitted] = made_batch(home, facts(home), [part(0)])
    for path in (home, submitted.folder, *submitted.folder.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_what_is_left_is_looked_for_no_earlier_than_it_is_asked_for(home):
    left = LeftOpen(home)
    [submitted] = made_batch(home, facts(home), [part(0)])
    spec = submitted.folder / "slices.json"
    spec.rename(home / "kept")  # another process is writing it
    LeftOpen(home)
    (home / "kept").rename(spec)
    assert left.claim(part(0)) is not None


def test_of_a_directory_that_has_moved_only_what_is_trained_is_taken_in(home):
    trained = SliceOutcome(1.5, [{"score": 0.1}], "training-x")
    submitted = made_batch(home, {"arms": "/elsewhere/run/arms"}, [part(0), part(1)])
    submitted[0].leave(trained)
    left = LeftOpen(home)
    assert left.claim(part(0))[1].outcome == trained
    assert left.claim(part(1)) is None
    assert not submitted[1].is_open


def test_a_damaged_file_stops_the_search_and_is_named(home):
    [submitted] = made_batch(home, facts(home), [part(0)])
    submitted.leave(SliceOutcome(1.5, [{"score": 0.1}], "training-x"))
    for path in (submitted.path, submitted.folder / "slices.json"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SetupError, match=r"0\.json is damaged .* remove it"):
        _ = submitted.outcome
    with pytest.raises(SetupError, match=r"slices\.json is damaged"):
        read_batch(submitted.folder)


def test_a_file_in_the_place_of_the_folder_is_an_error(home):
    home.parent.joinpath("other").mkdir()
    home.parent.joinpath("other", "slurm").touch()
    with pytest.raises(SetupError, match="cannot be used"):
        make_home(home.parent / "other")

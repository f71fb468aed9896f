"""The folder of a slice exists while the search waits for it."""

import pytest

from risingsearch.errors import SetupError
from risingsearch.scripts.slurm import slices

TRAINED = slices.SliceOutcome(1.5, [{"score": 0.1}], "training-x", startup=0.5)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "my run (2)" / "slurm"


@pytest.fixture
def made(home):
    """Return a function: submit a slice of an arm."""
    facts = {"folder": str(home.parent / "arms")}
    return lambda arm, number=0: slices.made_slice(home, facts, part(arm, number))


def part(arm, number=0):
    return slices.SlurmSlice(arm, number, 70 + arm, {"lr": 0.1}, 0, 0, 2)


def test_an_outcome_is_left_for_a_slice_that_is_waited_for(made):
    submitted = made(0)
    submitted.note(outcome=TRAINED._asdict())
    assert submitted.outcome == TRAINED
    submitted.close()
    submitted.note(outcome=TRAINED._asdict())
    assert submitted.outcome is None
    assert not submitted.folder.exists()


def test_it_is_counted_how_far_the_slices_have_come(home, made):
    assert slices.counted(home) == {}
    submitted = [made(arm) for arm in range(5)]
    submitted[0].note()
    submitted[1].note()
    submitted[1].note(outcome=TRAINED._asdict())
    submitted[2].close()
    assert slices.counted(home) == {"training": 1, "back": 1, "waiting": 2}


def test_a_folder_has_a_name_for_one_job_and_is_for_its_owner_alone(made):
    one, other = made(0).folder, made(0).folder
    assert one.name != other.name
    assert one.name.startswith("my_run__2_-")
    for path in (one.parent, one, *one.iterdir()):
        assert path.stat().st_mode & 0o077 == 0


def test_what_was_left_is_claimed_and_the_rest_of_its_arm_is_dropped(home, made):
    same, other_arm, retried = made(0), made(1), made(2, number=3)
    assert slices.claimed(home, part(0)) == same
    assert slices.claimed(home, part(0, number=1)) is None
    assert slices.claimed(home, part(2, number=3)._replace(to_epoch=5)) is None
    assert not same.is_open
    assert not retried.is_open
    assert slices.slices_in(home) == [other_arm]


def test_of_a_directory_that_has_moved_only_what_is_trained_is_taken_in(home):
    facts = {"folder": "/elsewhere/run/arms"}
    one, other = (slices.made_slice(home, facts, part(arm)) for arm in range(2))
    one.note(outcome=TRAINED._asdict())
    assert slices.claimed(home, part(0)).outcome == TRAINED
    assert slices.claimed(home, part(1)) is None
    assert not other.is_open


def test_a_damaged_file_stops_the_search_and_is_named(made):
    submitted = made(0)
    path = submitted.folder / "slice.json"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SetupError, match=r"slice\.json is damaged .* remove it"):
        _ = submitted.outcome

import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.priors import earlier_searches, read_prior
from risingsearch.storage import lock


def test_run_directory_is_read_as_its_result_is(
    make_search, tmp_path, curves_by_params
):
    search = make_search(run_dir=tmp_path / "run", max_failures=1)
    [of_result] = earlier_searches(search.run())
    [earlier] = earlier_searches(tmp_path / "run")
    assert earlier.name == "run"
    assert earlier.max_epochs == 8
    assert curves_by_params(earlier) == curves_by_params(of_result)


def test_losses_are_turned_so_that_higher_is_better(make_search, tmp_path):
    make_search(run_dir=tmp_path / "run", direction="minimize").run()
    [earlier] = earlier_searches(tmp_path / "run")
    assert (earlier.scores[np.isfinite(earlier.scores)] < 0).all()
    assert earlier.direction == "minimize"


def test_a_direction_other_than_its_own_is_refused(make_search, tmp_path):
    result = make_search(run_dir=tmp_path / "run", direction="minimize").run()
    [earlier] = earlier_searches(result)
    for source in (tmp_path / "run", result, earlier):
        [said_twice] = earlier_searches(source, direction="minimize")
        np.testing.assert_array_equal(said_twice.scores, earlier.scores)
        both = "direction='maximize' was given, and its own direction is 'minimize'"
        with pytest.raises(InvalidParameterError, match=both):
            earlier_searches(source, direction="maximize")


def test_another_metric_can_be_the_score(make_search, tmp_path):
    result = make_search(run_dir=tmp_path / "run").run()
    for source in (result, tmp_path / "run"):
        [earlier] = earlier_searches(source, score="loss", direction="minimize")
        assert np.nanmax(earlier.scores) == pytest.approx(result.best_score - 1)
        with pytest.raises(
            InvalidParameterError, match=r"score must be one of .*'loss'; got 'x'"
        ):
            earlier_searches(source, score="x", direction="minimize")


def test_directory_in_use_and_torn_journal_are_read(make_search, tmp_path):
    make_search(run_dir=tmp_path / "run").run()
    [whole] = earlier_searches(tmp_path / "run")
    with lock.held(tmp_path / "run" / "lock"):
        [held] = earlier_searches(tmp_path / "run")
    assert held.params == whole.params
    journal = tmp_path / "run" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    before = journal.read_bytes()
    [torn] = earlier_searches(tmp_path / "run")
    assert sum(torn.epochs) <= sum(whole.epochs)
    assert journal.read_bytes() == before


def test_candidates_that_only_unpickling_would_tell_are_left_out(make_search, tmp_path):
    candidates = [{"top": 0.9, "kind": "a"}, {"top": 0.8, "kind": {1, 2}}]
    result = make_search(candidates, run_dir=tmp_path / "run", budget=10).run()
    for source in (result, tmp_path / "run"):
        [earlier] = earlier_searches(source)
        assert earlier.params == [{"top": 0.9, "kind": "a"}]
    none = [{"top": 0.9, "kind": {1}}, {"top": 0.8, "kind": {2}}]
    make_search(none, run_dir=tmp_path / "none", budget=10).run()
    with pytest.raises(InvalidParameterError, match="parameters that JSON can hold"):
        earlier_searches(tmp_path / "none")


def test_nothing_is_unpickled(make_search, tmp_path, monkeypatch):
    candidates = [{"top": 0.9, "kind": "a"}, {"top": 0.8, "kind": {1, 2}}]
    make_search(candidates, run_dir=tmp_path / "run", budget=10).run()
    monkeypatch.setattr("pickle.loads", lambda *_: pytest.fail("unpickled"))
    monkeypatch.setattr("pickle.load", lambda *_: pytest.fail("unpickled"))
    assert earlier_searches(tmp_path / "run")


def test_folder_of_run_directories_holds_a_search_each(make_search, tmp_path):
    for name in ("first", "second"):
        make_search(run_dir=tmp_path / name).run()
    names = [earlier.name for earlier in earlier_searches(tmp_path)]
    assert names == ["first", "second"]


def test_of_a_folder_those_that_share_parameters_are_taken(make_search, tmp_path):
    make_search(run_dir=tmp_path / "first").run()
    other = [{"depth": depth, "top": 0.5, "kind": "a"} for depth in range(6)]
    make_search(other, run_dir=tmp_path / "other").run()
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "journal.jsonl").write_bytes(b"{}\n")
    wanted = [{"top": k / 20} for k in range(20)]
    with pytest.warns(RuntimeWarning) as warned:
        [found] = read_prior(tmp_path, wanted)
    assert found.name == "first"
    torn, other = [str(one.message) for one in warned]
    assert "1 of its 3 searches are skipped" in torn
    assert "1 of its 2 searches are skipped: other: nothing of it can be" in other
    with pytest.warns(RuntimeWarning, match="1 of its 3 searches are skipped"):
        both = earlier_searches(tmp_path)
    assert [earlier.name for earlier in both] == ["first", "other"]
    foreign = [{"width": k} for k in range(20)]
    with (
        pytest.warns(RuntimeWarning, match="torn"),
        pytest.raises(InvalidParameterError, match="none of its 2 searches is usable"),
    ):
        read_prior(tmp_path, foreign)


@pytest.mark.parametrize("damage", [b"", b"{}\n", bytes(range(256))])
def test_damaged_journal_is_one_error(make_search, tmp_path, damage):
    (tmp_path / "journal.jsonl").write_bytes(damage)
    with pytest.raises(InvalidParameterError, match="cannot be read"):
        earlier_searches(tmp_path)


def test_damage_in_the_middle_and_links_are_errors(make_search, tmp_path):
    make_search(run_dir=tmp_path / "run").run()
    journal = tmp_path / "run" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([lines[0], *lines[2:]]))
    with pytest.raises(InvalidParameterError, match="lines are missing"):
        earlier_searches(tmp_path / "run")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "journal.jsonl").symlink_to(journal)
    with pytest.raises(InvalidParameterError, match="symbolic link"):
        earlier_searches(tmp_path / "other")

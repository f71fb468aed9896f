"""A directory that others own, or can write to, is not read as one's own."""

import os
from pathlib import Path

import pytest

from risingsearch.errors import RunDirError
from risingsearch.storage.checkpoints import Key
from risingsearch.storage.permissions import check_only_own
from risingsearch.storage.run_directory import (
    CHECKPOINTS,
    JOURNAL,
    STATE,
    RunDirectory,
)

CHECKPOINT = f"{CHECKPOINTS}/arm-000003-epoch-000001.ckpt"
READ = [".", JOURNAL, STATE, CHECKPOINTS, CHECKPOINT]


@pytest.fixture(params=[0o022, 0o002, 0o000], ids="umask {:03o}".format)
def run_dir(request, tmp_path):
    """Return a directory with all that a search reads."""
    before = os.umask(request.param)
    try:
        directory = RunDirectory(tmp_path / "my run")
        directory.open({"settings": {}})
        directory.checkpoints.save(Key(3, 1), b"weights")
        directory.save_state({})
    finally:
        os.umask(before)
    return directory.path


def opened_up(path, bits):
    path.chmod(path.stat().st_mode | bits)


def refused(run_dir):
    with pytest.raises(RunDirError) as caught:
        check_only_own(run_dir)
    return str(caught.value)


def test_what_a_search_has_made_is_its_own(run_dir):
    check_only_own(run_dir)
    found = [run_dir, *run_dir.rglob("*")]
    assert all(path.stat().st_mode & 0o077 == 0 for path in found)


def test_what_is_not_there_is_fine(tmp_path):
    check_only_own(tmp_path / "none" / "run")


@pytest.mark.parametrize("bits", [0o020, 0o002, 0o022])
@pytest.mark.parametrize("name", READ)
def test_what_others_can_write(run_dir, name, bits):
    opened_up(run_dir / name, bits)
    said = refused(run_dir)
    mode = (run_dir / name).stat().st_mode & 0o7777
    assert f"{run_dir / name} can be written by others (mode {mode:o})" in said
    assert f"chmod -R go-w '{run_dir}'" in said
    assert "trust_run_dir=True (--trust on the command line)" in said


@pytest.mark.parametrize("bits", [0o044, 0o055])
def test_what_others_can_only_read_is_fine(run_dir, bits):
    for name in READ:
        opened_up(run_dir / name, bits)
    check_only_own(run_dir)


def test_what_the_error_advises_is_enough(run_dir):
    for name in READ:
        opened_up(run_dir / name, 0o022)
    advice = refused(run_dir).split("run ")[-1].split(" if nobody")[0]
    assert os.system(advice) == 0
    check_only_own(run_dir)


@pytest.mark.parametrize("name", READ[1:])
def test_a_link_counts_as_what_it_points_to(run_dir, tmp_path, name):
    place = tmp_path / "elsewhere"
    (run_dir / name).rename(place)
    (run_dir / name).symlink_to(place)
    check_only_own(run_dir)
    opened_up(place, 0o020)
    assert f"chmod -R go-w {place} " in refused(run_dir)


def test_a_directory_by_a_link(run_dir, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(run_dir)
    check_only_own(link)
    opened_up(run_dir / JOURNAL, 0o020)
    assert f"chmod -R go-w '{run_dir}' " in refused(link)


def test_a_link_to_nothing_is_fine(run_dir, tmp_path):
    (run_dir / STATE).unlink()
    (run_dir / STATE).symlink_to(tmp_path / "gone")
    check_only_own(run_dir)


@pytest.mark.parametrize("me", [0, 1234])
@pytest.mark.parametrize("name", READ)
def test_what_another_user_owns_is_refused_for_root_as_well(
    run_dir, monkeypatch, name, me
):
    look = Path.stat

    def stat(path, **options):
        facts = list(look(path, **options))
        facts[4] = 4321 if path == run_dir / name else me
        return os.stat_result(facts)

    monkeypatch.setattr(os, "geteuid", lambda: me)
    monkeypatch.setattr(Path, "stat", stat)
    said = refused(run_dir)
    assert f"{run_dir / name} belongs to another user (uid 4321)" in said
    assert "trust_run_dir=True (--trust on the command line)" in said


def test_what_root_owns_is_refused_for_others(run_dir, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: run_dir.stat().st_uid + 1)
    assert "belongs to another user" in refused(run_dir)


def test_without_posix_nothing_is_known(run_dir, monkeypatch):
    opened_up(run_dir, 0o022)
    monkeypatch.setattr(os, "name", "nt")
    check_only_own(run_dir)

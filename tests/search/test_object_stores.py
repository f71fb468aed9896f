"""A search whose checkpoints are in an object store, here one that speaks S3."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import fsspec
import pytest
from kept_search import CrashError, Rising, crashing, facts, n_told
from object_search import CANDIDATES, Large, object_search
from s3_server import S3Server

from risingsearch.errors import InvalidParameterError, SearchFailedError, SetupError
from risingsearch.search.search import RisingSearch
from risingsearch.storage.journal import read
from risingsearch.storage.object_store import ObjectStore

HOUR = 3600


@pytest.fixture(scope="module")
def server():
    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def s3(server, monkeypatch):
    """Return the server, which this process reaches from now on, without objects."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    fsspec.get_filesystem_class("s3").clear_instance_cache()
    files = fsspec.filesystem("s3")
    if files.exists("bucket"):
        files.rm("bucket", recursive=True)
    files.mkdir("bucket")
    yield server
    server.on_upload = None


URL = "s3://bucket/runs/first"


def objects(url=URL):
    """Return the paths of all objects under a URL."""
    files, root = fsspec.core.url_to_fs(url)
    files.invalidate_cache()
    return files.find(root)


def unreachable(bucket, name):
    raise SetupError("not now")


def crashed(folder, at=9, trainable=None):
    search = object_search(folder, URL, trainable, callbacks=crashing(at))
    with pytest.raises(CrashError):
        search.run()


def whole(tmp_path):
    return object_search(tmp_path / "whole", None).run()


class TestKeeping:
    def test_checkpoints_are_there_and_not_in_the_directory(self, s3, folder, tmp_path):
        result = object_search(folder, URL).run()
        assert facts(result) == facts(whole(tmp_path))
        assert not (folder / "checkpoints").exists()
        assert objects()
        assert result.best_state()["epochs"] == result.best_epoch

    def test_a_store_that_cannot_be_read_has_nothing_trained_again(
        self, s3, folder, tmp_path, threads, monkeypatch
    ):
        search = object_search(folder, URL, trainable := Large(), executor=threads)
        with monkeypatch.context() as patch:
            patch.setattr(ObjectStore, "get", unreachable)
            with pytest.raises(SetupError, match="not now"):
                search.run()
        result = search.run()
        alone = object_search(tmp_path / "whole", None, executor=threads).run()
        assert facts(result) == facts(alone)
        assert len(trainable.trained) == 16


class TestAnotherMachine:
    def test_it_moves_there_and_back_without_losing_an_epoch(
        self, s3, folder, tmp_path
    ):
        here, cluster = tmp_path / "run", tmp_path / "cluster"
        crashed(here, at=5)
        shutil.copytree(here, cluster)
        with pytest.raises(CrashError):
            RisingSearch.resume(cluster, Large(), callbacks=crashing(10)).run()
        shutil.rmtree(here)
        shutil.copytree(cluster, here)
        back = Large()
        result = RisingSearch.resume(here, back).run()
        assert len(back.trained) == 16 - 10
        assert facts(result) == facts(whole(tmp_path))

    def test_the_objects_may_have_moved(self, s3, folder, tmp_path):
        crashed(folder)
        files = fsspec.filesystem("s3")
        for path in objects():
            files.mv(path, path.replace("runs/first", "archive"))
        with pytest.raises(SetupError, match="holds no checkpoints"):
            RisingSearch.resume(folder, Large())
        moved = Large()
        result = RisingSearch.resume(folder, moved, checkpoints="s3://bucket/archive")
        assert facts(result.run()) == facts(whole(tmp_path))
        assert len(moved.trained) == 16 - 9


class TestKilled:
    @pytest.mark.parametrize(
        ("at", "when"),
        [(1, "half-way"), pytest.param(6, "right after", marks=pytest.mark.slow)],
    )
    def test_in_an_upload(self, s3, folder, tmp_path, when, at):
        program = Path(__file__).with_name("object_search.py")
        child = subprocess.Popen(
            [sys.executable, program, folder, URL],
            stdin=subprocess.PIPE,
            env={**os.environ, **s3.environment},
        )
        seen = []

        def on_upload(path, receive, body):
            seen.append(Path(path).name)
            if len(seen) != at:
                return receive()
            answer = receive() if when == "right after" else [body.read(1000)]
            child.kill()
            child.wait(HOUR)
            return answer

        s3.on_upload = on_upload
        child.stdin.write(b"\n")
        child.stdin.close()
        assert child.wait(HOUR) == -signal.SIGKILL
        s3.on_upload = None
        n_before = n_told(folder)
        resumed = Large()
        result = object_search(folder, URL, resumed).run()
        assert facts(result) == facts(whole(tmp_path))
        assert len(resumed.trained) == 16 - n_before
        # Nothing that it has left behind is there any more.
        object_search(tmp_path / "again", f"{URL}/again").run()
        names = {Path(path).name for path in objects()}
        assert names == {Path(path).name for path in objects(f"{URL}/again")}


class TestDamage:
    def last_of(self, folder, arm):
        """Return the path of the last object of an arm."""
        return max(path for path in objects() if f"/arm-{arm:06d}-" in path)

    @pytest.fixture
    def stopped(self, s3, folder):
        crashed(folder)
        return folder

    @pytest.mark.parametrize("what", ["torn", "forged", "missing"])
    def test_what_was_trained_is_trained_again_and_not_charged(
        self, stopped, tmp_path, what
    ):
        files = fsspec.filesystem("s3")
        arms = {int(path.split("/arm-")[1][:6]) for path in objects()}
        for arm in sorted(arms)[1:]:  # an empty store would be refused
            path = self.last_of(stopped, arm)
            state = files.cat_file(path)
            if what == "torn":
                files.pipe_file(path, state[:1000])
            elif what == "forged":
                files.pipe_file(path, b"cos\nsystem\n(S'touch forged'\ntR.")
            else:
                files.rm_file(path)
        with pytest.warns(RuntimeWarning, match="which is not charged"):
            result = object_search(stopped, URL).run()
        assert facts(result)[0] == facts(whole(tmp_path))[0]
        assert not Path("forged").exists()


class TestRefused:
    def test_a_url_without_a_directory(self):
        with pytest.raises(InvalidParameterError, match="give both, or none"):
            RisingSearch(Rising(), CANDIDATES, budget=3, checkpoints=URL)

    def test_a_bucket_that_is_not_there_before_anything_is_trained(self, s3, folder):
        trainable = Large()
        with pytest.raises(SetupError, match="write probe under s3://none/first"):
            object_search(folder, "s3://none/first", trainable)
        assert not (folder / "journal.jsonl").exists()
        assert object_search(folder, URL, trainable).run().n_epochs == 16

    def test_what_cannot_be_uploaded_is_kept_until_it_can(self, s3, folder, tmp_path):
        def refuse(path, receive, body):
            raise ConnectionError

        search = object_search(folder, URL, trainable := Large())
        search.callbacks = [lambda epoch: setattr(s3, "on_upload", refuse)]
        with pytest.raises(SetupError, match="check that the store can be"):
            search.run()
        s3.on_upload = None
        search.callbacks = []
        assert facts(search.run()) == facts(whole(tmp_path))
        assert len(trainable.trained) == 16


class TestSecrets:
    def test_they_are_in_no_file_and_no_error(self, s3, folder, monkeypatch):
        crashed(folder)
        with pytest.raises(SetupError) as caught:
            object_search(folder.with_name("other"), "s3://none/first")
        for text in (caught.value, *(p.read_text() for p in folder.glob("j*"))):
            assert "secret-of-mine" not in str(text)
        header = read(folder / "journal.jsonl").header
        assert header["checkpoints"].rpartition("/")[0] == URL
        assert json.dumps(header["settings"]).count("s3://") == 0


def test_a_search_that_has_found_nothing_is_resumed(s3, folder):
    """Its store is empty, and nothing is missing there."""
    failing = Rising(**{f"arm_{arm}_epoch_1": ValueError("no") for arm in range(5)})
    with pytest.raises(SearchFailedError):
        object_search(folder, URL, failing, budget=5).run()
    assert objects() == []
    assert RisingSearch.resume(folder, failing).result().n_epochs == 5

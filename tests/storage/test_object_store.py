"""Objects by their names: what is a URL of them, and what an error may show."""

import builtins

import pytest

pytest.importorskip("fsspec")

import fsspec
from fsspec.implementations.memory import MemoryFileSystem

from risingsearch.errors import (
    InvalidParameterError,
    MissingDependencyError,
    RunDirError,
    SetupError,
)
from risingsearch.storage.object_store import ObjectStore, checked_url


@pytest.fixture
def objects():
    yield ObjectStore("memory://runs/first")
    fsspec.filesystem("memory").store.clear()


class TestObjects:
    def test_what_is_put_comes_back(self, objects):
        objects.put("one", b"\x00weights")
        objects.put("two", b"")
        assert objects.get("one") == b"\x00weights"
        assert objects.sizes() == {"one": 8, "two": 0}

    def test_what_is_removed_is_gone_and_may_have_been(self, objects):
        objects.put("one", b"weights")
        objects.remove(["one", "two"])
        assert objects.sizes() == {}
        with pytest.raises(RunDirError, match="first/one is missing"):
            objects.get("one")

    def test_checking_leaves_nothing(self, objects):
        objects.check()
        assert objects.sizes() == {}

    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("pipe_file", lambda objects: objects.put("one", b"weights")),
            ("cat_file", lambda objects: objects.get("one")),
            ("rm_file", lambda objects: objects.remove(["one"])),
            ("find", ObjectStore.sizes),
            ("pipe_file", ObjectStore.check),
        ],
    )
    def test_what_another_package_raises_is_one_error(
        self, objects, monkeypatch, name, call
    ):
        def refuse(*args, **kwargs):
            raise RuntimeError("403 for https://me:secret@host/one?token=secret")

        monkeypatch.setattr(MemoryFileSystem, name, refuse)
        with pytest.raises(SetupError) as caught:
            call(objects)
        assert "RuntimeError: 403 for https://***@host/one?***" in str(caught.value)
        assert caught.value.__suppress_context__


class TestURLs:
    @pytest.mark.parametrize(
        "url",
        [
            "s3://bucket/runs/first",
            "gs://bucket",
            "abfs://container@account.dfs.core.windows.net/runs",
            "memory://runs",
        ],
    )
    def test_these_are(self, url):
        assert checked_url(url) == checked_url(f"{url}/") == url

    @pytest.mark.parametrize(
        ("url", "problem"),
        [
            ("runs/first", "leave it out"),
            ("file:///runs/first", "leave it out"),
            (7, "give it as text"),
            ("simplecache::s3://bucket/runs", "one protocol"),
            ("S3 ://bucket", "one protocol"),
            ("s3://", "must be a name"),
            ("s3://bucket/../other", "must be a name"),
            ("s3://bucket//runs", "must be a name"),
            ("s3://bucket/ru\nns", "must be a name"),
        ],
    )
    def test_these_are_not(self, url, problem):
        with pytest.raises(InvalidParameterError, match=problem):
            checked_url(url)

    @pytest.mark.parametrize(
        "url",
        [
            "s3://me:secret@bucket/runs",
            "s3://me:with/secret@bucket/runs",
            "s3://bucket/runs?key=secret",
            "https://host/runs#secret",
        ],
    )
    def test_secrets_are_refused_and_not_shown(self, url):
        with pytest.raises(InvalidParameterError) as caught:
            checked_url(url)
        assert "credentials are taken from the environment" in str(caught.value)
        assert "secret" not in str(caught.value)

    def test_an_unknown_protocol(self):
        with pytest.raises(InvalidParameterError, match="cannot open nowhere://runs"):
            ObjectStore("nowhere://runs")


class TestPackages:
    def test_without_fsspec_the_error_says_what_to_install(self, monkeypatch):
        usual = builtins.__import__

        def without(name, *args, **kwargs):
            if name == "fsspec":
                raise ModuleNotFoundError(name=name)
            return usual(name, *args, **kwargs)

        monkeypatch.setattr(builtins, "__import__", without)
        with pytest.raises(MissingDependencyError, match=r"risingsearch\[object-store"):
            ObjectStore("memory://runs")

    def test_without_the_package_of_a_store_its_name_is_said(self, monkeypatch):
        def absent(protocol):
            raise ImportError("Install s3fs to access S3")

        monkeypatch.setattr(fsspec.core, "get_filesystem_class", absent)
        with pytest.raises(MissingDependencyError, match="Install s3fs to access S3"):
            ObjectStore("s3://bucket/runs")

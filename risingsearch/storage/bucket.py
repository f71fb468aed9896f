"""Objects under a URL, by their names, as the packages of ``fsspec`` reach them.

Who may read and write there is told by the environment, as those packages want it:
nothing of it is taken from a URL, and nothing that may be a secret is shown.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from risingsearch.errors import (
    CheckpointError,
    InvalidParameterError,
    MissingDependencyError,
    ObjectStoreError,
    missing,
)

EXAMPLE = "s3://bucket/runs/first"
PROBE = "probe"
"""An object that is written and removed, to see whether others can be."""
_LONGEST = 300  # characters of what another package says


class Bucket:
    """The objects whose names begin with a URL.

    Examples
    --------
    >>> bucket = Bucket("memory://runs/first")
    >>> bucket.put("weights", b"0.5")
    >>> bucket.get("weights"), bucket.names()
    (b'0.5', {'weights'})
    >>> bucket.remove(["weights"])
    """

    def __init__(self, url: str) -> None:
        self.url = checked_url(url)
        self._files, root = _file_system(self.url)
        self._root = root.rstrip("/")

    def __str__(self) -> str:
        return self.url

    def put(self, name: str, content: bytes) -> None:
        """Write an object; once this returns, all of it can be read."""
        with self._reached(f"write {name}"):
            self._files.pipe_file(self._path(name), content)

    def get(self, name: str) -> bytes:
        """Return an object; one that is missing is a CheckpointError."""
        with self._reached(f"read {name}"):
            try:
                content: bytes = self._files.cat_file(self._path(name))
            except FileNotFoundError:
                msg = f"{self.url}/{name} is missing"
                raise CheckpointError(msg) from None
        return content

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are fine."""
        with self._reached("remove objects"):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self._files.rm_file(self._path(name))

    def names(self) -> set[str]:
        """Return the names of all objects, as of now."""
        with self._reached("list objects"):
            self._files.invalidate_cache()
            try:
                found = self._files.find(self._root)
            except FileNotFoundError:  # as some say where nothing is there
                found = []
        return {path.removeprefix(f"{self._root}/") for path in found}

    def check(self) -> None:
        """Raise an ObjectStoreError unless objects can be written and removed."""
        self.put(PROBE, b"")
        self.remove([PROBE])

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextlib.contextmanager
    def _reached(self, what: str) -> Iterator[None]:
        """Turn what other packages raise into one error, without its secrets."""
        try:
            yield
        except CheckpointError:
            raise
        except Exception as error:
            msg = (
                f"it is not possible to {what} under {self.url} "
                f"({type(error).__name__}: {redacted(str(error))}); what is there is "
                "safe: see that the store can be reached, and that the credentials in "
                "the environment allow to read, write, list and remove, and resume"
            )
            raise ObjectStoreError(msg) from None  # its text may hold a secret


def checked_url(url: Any) -> str:
    """Return the URL of an object store without a slash at its end.

    Examples
    --------
    >>> checked_url("s3://bucket/runs/first/")
    's3://bucket/runs/first'
    """
    problem = _problem(url)
    if problem is not None:
        shown = redacted(repr(url))
        msg = f"checkpoints must be a URL such as {EXAMPLE}; got {shown}: {problem}"
        raise InvalidParameterError(msg)
    checked: str = url.rstrip("/")
    return checked


def _problem(url: Any) -> str | None:
    if not isinstance(url, str):
        return "give it as text"
    protocol, separator, rest = url.partition("://")
    if not separator or protocol in ("file", "local"):
        return "checkpoints in a folder are those of run_dir, so leave it out"
    if "::" in url or not re.fullmatch(r"[a-z][a-z0-9+.-]*", protocol):
        return "it has to begin with one protocol"
    if _SECRETS.search(url) or "?" in url or "#" in url:
        return (
            "it may hold no password, query or fragment, because it is written down; "
            "credentials are taken from the environment"
        )
    parts = rest.rstrip("/").split("/")
    if not url.isprintable() or {"", ".", ".."} & set(parts):
        return "each part between its slashes must be a name"
    return None


_SECRETS = re.compile(r"(?<=//)[^\s@]*:\S*@")  # user:password@
_QUERY = re.compile(r"(?<=\S)([?#])[^\s'\"<>)]+")


def redacted(text: str) -> str:
    """Return a text without the passwords and queries of the URLs in it.

    Examples
    --------
    >>> redacted("GET https://me:secret@host/one?signature=abc failed")
    'GET https://***@host/one?*** failed'
    """
    shown = _QUERY.sub(r"\1***", _SECRETS.sub("***@", text))
    return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."


def _file_system(url: str) -> tuple[Any, str]:
    """Return what reaches a URL, and the URL as a path there."""
    try:
        import fsspec
    except ModuleNotFoundError as error:
        raise missing("fsspec", "object-stores") from error
    protocol = url.partition("://")[0]
    try:
        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]
    except ImportError as error:
        msg = f"{protocol}:// needs a package of its own ({error})"
        raise MissingDependencyError(msg) from error
    except ValueError as error:
        msg = f"fsspec cannot open {url} ({redacted(str(error))})"
        raise InvalidParameterError(msg) from None

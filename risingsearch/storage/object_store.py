"""Files in an object store, as the packages of ``fsspec`` reach them by URL.

Credentials come from the environment, as those packages expect: a URL that holds any is
refused, and errors show none.
"""

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

from risingsearch.errors import (
    InvalidParameterError,
    MissingDependencyError,
    RunDirError,
    SetupError,
    needed,
)

EXAMPLE = "s3://bucket/runs/first"
PROBE = "probe"  # an object that is written and removed, to test the permissions
_LONGEST = 300  # characters of another package's message


class ObjectStore:
    """The objects whose names begin with a URL."""

    def __init__(self, url: str) -> None:
        self.url = checked_url(url)
        self._files, root = _file_system(self.url)
        self._root = root.rstrip("/")

    def __str__(self) -> str:
        return self.url

    def put(self, name: str, *parts: bytes) -> None:
        """Write an object; once this returns, it can be read as a whole."""
        with self._reached(f"write {name}"):
            self._files.pipe_file(f"{self._root}/{name}", b"".join(parts))

    def get(self, name: str) -> bytes:
        """Content of an object; a missing one is a RunDirError."""
        with self._reached(f"read {name}"):
            try:
                content: bytes = self._files.cat_file(f"{self._root}/{name}")
            except FileNotFoundError:
                raise RunDirError(f"{self.url}/{name} is missing") from None
        return content

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; those that are gone already are ignored."""
        with self._reached("remove objects"):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    self._files.rm_file(f"{self._root}/{name}")

    def sizes(self) -> dict[str, int]:
        """Sizes in bytes of all objects, as of now."""
        with self._reached("list objects"):
            self._files.invalidate_cache()
            try:
                objects = self._files.find(self._root, detail=True)
            except FileNotFoundError:  # raised by some stores if nothing is there
                objects = {}
            return {
                path.removeprefix(f"{self._root}/"): facts["size"]
                for path, facts in objects.items()
            }

    def check(self) -> None:
        """Raise a SetupError unless objects can be written and removed."""
        self.put(PROBE)
        self.remove([PROBE])

    @contextlib.contextmanager
    def _reached(self, what: str) -> Iterator[None]:
        """Convert errors of other packages into one kind, without their secrets."""
        try:
            yield
        except RunDirError:
            raise
        except Exception as error:
            raise SetupError(
                f"it is not possible to {what} under {self.url} "
                f"({type(error).__name__}: {redacted(str(error))}): check that the "
                "store can be reached, and that the credentials in the environment "
                "allow to read, write, list and remove, and resume"
            ) from None  # its text may hold a secret


def checked_url(url: Any) -> str:
    """URL of an object store without a slash at its end; else an error."""
    problem = _problem(url)
    if problem is not None:
        shown = redacted(repr(url))
        raise InvalidParameterError(
            f"checkpoints must be a URL such as {EXAMPLE}; got {shown}: {problem}"
        )
    checked: str = url.rstrip("/")
    return checked


def _problem(url: object) -> str | None:
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
    if not url.isprintable() or {"", ".", ".."} & set(rest.rstrip("/").split("/")):
        return "each part between its slashes must be a name"
    return None


_SECRETS = re.compile(r"(?<=//)[^\s@]*:\S*@")  # user:password@
_QUERY = re.compile(r"(?<=\S)([?#])[^\s'\"<>)]+")


def redacted(text: str) -> str:
    """Text without the passwords and queries of the URLs in it."""
    shown = _QUERY.sub(r"\1***", _SECRETS.sub("***@", text))
    if len(shown) <= _LONGEST:
        return shown
    return f"{shown[:_LONGEST]}..."


def _file_system(url: str) -> tuple[Any, str]:
    """File system of fsspec for a URL, and the path of the URL in it."""
    with needed("fsspec", "object-stores"):
        import fsspec
    protocol = url.partition("://")[0]
    try:
        return fsspec.core.url_to_fs(url)  # type: ignore[no-any-return]
    except ImportError as error:
        raise MissingDependencyError(
            f"{protocol}:// requires another package ({error})"
        ) from error
    except ValueError as error:
        raise InvalidParameterError(
            f"fsspec cannot open {url} ({redacted(str(error))})"
        ) from None

"""Checkpoints in an object store: written first, then referred to by the journal.

Every object has a name that no other has had, so none is ever overwritten. The event of
its job then names it, with its size and its checksum: an object that no event names
does not count, and one that is not as it was written is not used.

A name begins with the number of the event that was to be written, and the checksum of
the line before it. That tells apart what a killed process has left, which is removed,
from what the same search has written elsewhere, which is not.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from risingsearch.errors import CheckpointError, ObjectStoreError, RunDirError
from risingsearch.storage.bucket import Bucket, checked_url
from risingsearch.storage.checkpoints import Key, Room
from risingsearch.storage.journal import Recorded
from risingsearch.storage.tail import Known

OBJECTS = "objects"
"""In an event: the checkpoints of its job. In a header: where those of a search are."""
_NAME = re.compile(
    r"event-(\d{6,15})-([0-9a-f]{8})-arm-(\d{6,15})-epoch-(\d{6,15})-[0-9a-f]{16}"
)
_FOLDER = re.compile(r"[0-9a-f]{16}")
_SHA256 = re.compile(r"[0-9a-f]{64}")

Facts = dict[str, Any]


class Reference(NamedTuple):
    """What the journal says of an object."""

    name: str
    n_bytes: int
    sha256: str

    @property
    def key(self) -> Key:
        """Which state it is."""
        named = _NAME.fullmatch(self.name)
        assert named is not None
        return Key(int(named[3]), int(named[4]))

    def to_json(self) -> Facts:
        """Return what is written in an event."""
        return {"name": self.name, "bytes": self.n_bytes, "sha256": self.sha256}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Reference:
        """Return what ``to_json`` wrote; anything else is a ValueError."""
        match facts:
            case {"name": str(name), "bytes": int(n_bytes), "sha256": str(sha256)}:
                if _NAME.fullmatch(name) and _SHA256.fullmatch(sha256):
                    return cls(name, n_bytes, sha256)
        msg = f"{facts!r:.200} refers to no checkpoint"
        raise ValueError(msg)


class ObjectStore:
    """The checkpoints that a journal refers to, under a URL that nobody else uses.

    ``journal`` says how far the journal has come. Opening it takes one look at what is
    there. An object that was replaced, or that no event names, is removed once the
    journal is past its event.
    """

    def __init__(
        self,
        bucket: Bucket,
        recorded: Recorded,
        journal: Callable[[], Known],
        max_bytes: int | None = None,
    ) -> None:
        self.bucket = bucket
        self._journal = journal
        named = {reference.key: reference for reference in _named(recorded.events)}
        bucket.check()
        found = bucket.names()
        kept = {key: one for key, one in named.items() if one.name in found}
        if not kept and any("best" in event for event in recorded.events):
            msg = (
                f"{bucket} holds none of the {len(named)} checkpoints that the journal "
                "names: restore them, or give the URL where they are as checkpoints; "
                "RisingSearch.saved_result shows what was found so far"
            )
            raise ObjectStoreError(msg)
        self._references = kept
        self._left = self._unnamed(found, recorded.checksums)  # by name, its event
        self._room = Room({key: one.n_bytes for key, one in kept.items()}, max_bytes)

    @property
    def n_bytes(self) -> int:
        """How large all checkpoints are together."""
        return self._room.n_bytes

    def keys(self) -> Set[Key]:
        """Return what is kept."""
        return self._references.keys()

    def has_room(self, key: Key, state: bytes) -> bool:
        """Return whether a state can be kept within ``max_bytes``."""
        return self._room.has(key, len(state))

    def save(self, key: Key, state: bytes) -> Facts:
        """Write a state, and return what the next event says of it.

        If it cannot be written, that is an ObjectStoreError, or a CheckpointError where
        it would take more than ``max_bytes`` with all others; what was there before is
        as it was.
        """
        self._room.check(str(self.bucket), key, len(state))
        known = self._journal()
        name = (
            f"event-{known.events + 1:06d}-{known.checksum}-"
            f"arm-{key.arm:06d}-epoch-{key.epoch:06d}-{secrets.token_hex(8)}"
        )
        reference = Reference(name, len(state), hashlib.sha256(state).hexdigest())
        self.bucket.put(name, state)
        self._references[key] = reference
        self._room.take(key, len(state))
        return reference.to_json()

    def load(self, key: Key) -> bytes:
        """Return a state that was saved.

        An object that is missing, or not the one that the journal names, is a
        CheckpointError; where none can be read, that is an ObjectStoreError.
        """
        reference = self._references.get(key)
        if reference is None:
            msg = (
                f"{self.bucket} has no checkpoint of arm {key.arm} at epoch {key.epoch}"
            )
            raise CheckpointError(msg)
        state = self.bucket.get(reference.name)
        if hashlib.sha256(state).hexdigest() != reference.sha256:
            msg = (
                f"{self.bucket}/{reference.name} is damaged: it does not fit the "
                "checksum in the journal"
            )
            raise CheckpointError(msg)
        return state

    def drop(self, key: Key) -> None:
        """Remove a state, and what was left by a process that was killed."""
        n_events = self._journal().events
        over = [name for name, number in self._left.items() if number <= n_events]
        self.bucket.remove([self._references[key].name, *over])
        for name in over:
            del self._left[name]
        del self._references[key]
        self._room.free(key)

    def _unnamed(self, found: Set[str], checksums: Sequence[str]) -> dict[str, int]:
        """Return the objects that no event names, with the event that was to come.

        Where the journal has not been what a name says, it has gone on elsewhere.
        """
        named = {reference.name for reference in self._references.values()}
        left = {}
        for name in found - named:
            if match := _NAME.fullmatch(name):
                number = int(match[1])
                if checksums[number - 1 : number] != [match[2]]:
                    raise self._went_on(name)
                left[name] = number
        return left

    def _went_on(self, name: str) -> RunDirError:
        return RunDirError(
            f"the search has gone on from another copy of its run_dir, which wrote "
            f"{self.bucket}/{name}: go on with that copy; or, if it is lost, remove "
            "this object and others like it, and what they brought is trained again"
        )


def new_place(url: str) -> Facts:
    """Return where the objects of a new search are to be: in a folder of its own.

    A URL where nothing can be written is an ObjectStoreError.
    """
    place = {"url": checked_url(url), "folder": secrets.token_hex(8)}
    bucket_at(place).check()
    return place


def bucket_at(place: Mapping[str, Any], url: str | None = None) -> Bucket:
    """Return the objects of a search, under another URL if they have moved."""
    folder = place["folder"]
    if not _FOLDER.fullmatch(folder):
        msg = f"{folder!r:.200} is no folder of a search"
        raise ValueError(msg)
    return Bucket(f"{checked_url(url or place['url'])}/{folder}")


def _named(events: Sequence[Mapping[str, Any]]) -> Iterator[Reference]:
    for event in events:
        for facts in event.get(OBJECTS, ()):
            yield Reference.from_json(facts)

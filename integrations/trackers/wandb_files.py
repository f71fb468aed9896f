"""What Weights & Biases has written to this machine: the steps of a run.

The files are logs as LevelDB writes them, after a header of their own: blocks of 32 KiB
with records in up to as many parts. A crash leaves a part at the end.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEADER = b":W&B"
BLOCK = 1 << 15
PART = struct.Struct("<IHB")  # checksum, length, kind
FULL, LAST = 1, 4


def steps_in(folder: Path, run_id: str) -> set[int]:
    """Return the steps that the files of a run hold."""
    return {step for step, _ in history(folder, run_id)}


def history(folder: Path, run_id: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield what was logged at every step of a run, in the order written."""
    for path in sorted(folder.glob(f"wandb/*run-*/run-{run_id}.wandb")):
        yield from _steps(path.read_bytes())


def _steps(content: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    from wandb.proto.wandb_internal_pb2 import Record

    for data in _records(content):
        record = Record.FromString(data)
        if record.WhichOneof("record_type") == "history":
            values = {
                item.key or ".".join(item.nested_key): json.loads(item.value_json)
                for item in record.history.item
            }
            yield int(values.pop("_step", record.history.step.num)), values


def _records(content: bytes) -> Iterator[bytes]:
    """Yield the whole records of a file, up to where it ends or is torn."""
    at = PART.size  # the header is as long as that of a part
    if not content.startswith(HEADER):
        return
    data = b""
    while at + PART.size <= len(content):
        left = BLOCK - at % BLOCK
        if left < PART.size:
            at += left
            continue
        _, length, kind = PART.unpack_from(content, at)
        at += PART.size + length
        if kind == 0 or at > len(content):
            return
        data += content[at - length : at]
        if kind in (FULL, LAST):
            yield data
            data = b""

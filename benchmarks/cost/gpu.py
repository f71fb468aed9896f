"""What a paused run costs on a GPU: its bits, its memory, its time."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from benchmarks.shared import report
from risingsearch.integrations.torch import TorchRun, TorchTrainable

NO_GPU = "torch sees no GPU here, so nothing was measured."
BATCH, STEPS, LAYERS = 256, 10, 3
EPOCHS = 3  # of every arm

Row = dict[str, Any]

# cuBLAS reads it when it starts; older releases of torch ask for it.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


class Scale(NamedTuple):
    """How much is measured."""

    arms: int
    width: int  # of the layers of their networks
    widths: tuple[int, ...]  # of networks that are paused by the clock
    repeats: int


SCALES = {
    "quick": Scale(20, 1024, (512, 2048), 3),
    "default": Scale(20, 2048, (512, 2048, 8192), 5),
    "full": Scale(20, 4096, (512, 2048, 8192, 12288), 10),
}


def run(out: Path, *, scale: str, seed: int) -> None:
    """Measure on the first GPU, or say that there is none."""
    if not torch.cuda.is_available():
        report.write_summary(out, "GPU", [NO_GPU])
        return
    torch.use_deterministic_algorithms(True)
    report.write(
        out,
        f"GPU: {torch.cuda.get_device_name()}, torch {torch.__version__}",
        list(measured(torch.device("cuda", 0), SCALES[scale], seed)),
        [
            f"- Networks of {LAYERS} layers, AdamW and a schedule; an epoch is {STEPS} "
            f"batches of {BATCH} rows, made on the device. All algorithms are "
            "deterministic.",
            "- Memory: what torch has allocated, above what it had before the first "
            "run; `reserved` is what other processes cannot have.",
            "- Leaving the device is a copy to memory; coming back builds the objects "
            "again and copies their states into them. Medians.",
        ],
    )


def measured(device: torch.device, size: Scale, seed: int) -> Iterator[Row]:
    """Yield every figure; those of memory are NaN where the device is the CPU."""
    warm_up(device, size.width)
    for figures in (differences, peaks, left_by_a_pause, times):
        yield from map(judged, figures(device, size, seed))


def judged(row: Row) -> Row:
    """Return a row with the verdict on its bar, where it has one."""
    if "bar" not in row:
        return row | {"bar": "", "verdict": ""}
    return row | {"verdict": "holds" if row["value"] <= row["bar"] else "does not hold"}


# ------------------------------------------------------------------------- the training


def build(params: dict[str, Any], device: torch.device) -> dict[str, Any]:
    """Return a network of equal layers with what trains it."""
    width = params["width"]
    layers = [
        layer for _ in range(LAYERS) for layer in (nn.Linear(width, width), nn.ReLU())
    ]
    model = nn.Sequential(*layers).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    return {"model": model, "optimizer": optimizer, "schedule": schedule}


def train_epoch(run: TorchRun) -> None:
    """Take some steps on rows drawn anew."""
    for _ in range(STEPS):
        loss = loss_on(torch.randn(BATCH, run.params["width"], device=run.device), run)
        loss.backward()
        run.optimizer.step()
        run.optimizer.zero_grad()
    run.schedule.step()


def validate(run: TorchRun) -> float:
    """Return the loss on rows that are always the same."""
    rows = torch.linspace(-1, 1, BATCH * run.params["width"], device=run.device)
    with torch.no_grad():
        return -float(loss_on(rows.reshape(BATCH, -1), run))


def loss_on(rows: torch.Tensor, run: TorchRun) -> torch.Tensor:
    """Return how far the network is from returning what it is given."""
    return nn.functional.mse_loss(run.model(rows), rows)


def trainable(device: torch.device, **limits: int) -> TorchTrainable:
    """Return the loop on a device."""
    return TorchTrainable(build, train_epoch, validate, device=device, **limits)


def started(own: TorchTrainable, n_arms: int, width: int, seed: int) -> list[TorchRun]:
    """Return runs that have seen nothing."""
    return [own.start({"width": width}, seed + arm) for arm in range(n_arms)]


def in_turns(own: TorchTrainable, runs: list[TorchRun]) -> list[list[float]]:
    """Train one epoch of every run after the other; return the scores of each run."""
    scores: list[list[float]] = [[] for _ in runs]
    for _ in range(EPOCHS):
        for told, run in zip(scores, runs, strict=True):
            told.append(own.train(run))
    return scores


# -------------------------------------------------------------------------- the figures


def warm_up(device: torch.device, width: int) -> None:
    """Have torch allocate what it keeps for itself."""
    own = trainable(device, max_resident=1)
    in_turns(own, started(own, 1, width, 0))


def differences(device: torch.device, size: Scale, seed: int) -> Iterator[Row]:
    """Compare runs that give way to each other with runs that are never paused."""
    paused, whole = trainable(device, max_resident=1), trainable(device)
    runs = started(paused, 3, size.width, seed)
    scores = in_turns(paused, runs)
    n_different = 0
    for arm, run in enumerate(runs):
        [other] = started(whole, 1, size.width, seed + arm)
        n_different += in_turns(whole, [other]) != [scores[arm]]
        ours, theirs = run.model.state_dict(), other.model.state_dict()
        n_different += sum(not ours[name].equal(theirs[name]) for name in theirs)
    yield {
        "what": "runs paused after every epoch, and runs never paused",
        "measure": "scores and weights that differ in a bit",
        "value": n_different,
        "bar": 0,
    }


def peaks(device: torch.device, size: Scale, seed: int) -> Iterator[Row]:
    """Compare many arms of which two are resident with two arms, and with all."""
    of_two = peak(device, 2, 2, size, seed)
    limited = peak(device, size.arms, 2, size, seed)
    of_all = peak(device, size.arms, size.arms, size, seed)
    limit = f"{size.arms} arms, max_resident=2"
    yield {
        "what": limit,
        "measure": "peak memory / that of 2 arms",
        "value": limited / of_two,
        "bar": 1.05,
    }
    yield {"what": limit, "measure": "peak, MB", "value": limited / 1e6}
    everything = f"{size.arms} arms, all resident"
    yield {"what": everything, "measure": "peak, MB", "value": of_all / 1e6}


def peak(
    device: torch.device, n_arms: int, max_resident: int, size: Scale, seed: int
) -> float:
    """Return the most bytes that some arms have had on the device at a time."""
    before = allocated(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    own = trainable(device, max_resident=max_resident)
    in_turns(own, started(own, n_arms, size.width, seed))
    if device.type != "cuda":
        return math.nan
    return torch.cuda.max_memory_allocated(device) - before


def left_by_a_pause(device: torch.device, size: Scale, seed: int) -> Iterator[Row]:
    """Measure what stays on the device after a run has left it."""
    before = allocated(device)
    own = trainable(device, max_resident=0)
    [run] = started(own, 1, size.width, seed)
    own.train(run)
    pause = "a run with max_resident=0, after its epoch"
    yield {
        "what": pause,
        "measure": "bytes left on the device",
        "value": allocated(device) - before,
        "bar": 0,
    }
    is_cuda = device.type == "cuda"
    reserved = torch.cuda.memory_reserved(device) if is_cuda else math.nan
    yield {"what": pause, "measure": "still reserved, MB", "value": reserved / 1e6}


def allocated(device: torch.device) -> float:
    """Return how many bytes torch has in use on a GPU."""
    gc.collect()
    return torch.cuda.memory_allocated(device) if device.type == "cuda" else math.nan


def times(device: torch.device, size: Scale, seed: int) -> Iterator[Row]:
    """Time an epoch, and what a pause adds to it."""
    for width in size.widths:
        own = trainable(device, max_resident=1)
        [run] = started(own, 1, width, seed)
        n_weights = sum(weights.numel() for weights in run.model.parameters())
        parts = {"an epoch": lambda run=run, own=own: own.train(run)}
        parts |= {
            "leaving the device": lambda run=run: run.resume_from(run.checkpoint()),
            "coming back": run.revive,
        }
        seconds: dict[str, list[float]] = {part: [] for part in parts}
        for _ in range(size.repeats):
            for part, does in parts.items():
                seconds[part].append(timed(does, device))
        for part, taken in seconds.items():
            yield {
                "what": f"{n_weights / 1e6:.3g} M weights",
                "measure": f"{part}, ms",
                "value": 1e3 * sorted(taken)[len(taken) // 2],
            }


def timed(does: Callable[[], object], device: torch.device) -> float:
    """Return the seconds that something takes, until the device is done."""
    begin = time.perf_counter()
    does()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin

"""Long searches with failures and kills: what they use, from their first epoch on."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.cost.soak import promises
from benchmarks.cost.soak.fleeting import ENDING, NOT_FINITE, RAISING
from benchmarks.cost.soak.process import MAX_EPOCHS, N_WORKERS, Part, command
from benchmarks.shared import figures, report

ROOT = Path(__file__).parents[3]

WORKERS = {
    "in process": "#0072B2",
    "threads": "#D55E00",
    "processes": "#009E73",
}
KEPT = {"in memory": "-", "run_dir": "--"}


class Scale(NamedTuple):
    """How long the searches are."""

    epochs: int
    arms: int
    kills: int  # of a search with a run_dir
    samples: int  # of a search that is not killed


SCALES = {
    "quick": Scale(2000, arms=400, kills=2, samples=20),
    "default": Scale(20_000, arms=4000, kills=4, samples=40),
    "full": Scale(100_000, arms=20_000, kills=8, samples=50),
}

Sample = dict[str, Any]
Cell = tuple[str, str]  # workers, where the search is kept


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Play every search; write results, a figure and a summary.

    By default one after the other: searches that share processors and a disk take
    longer.
    """
    size = SCALES[scale]
    cells = list(product(WORKERS, KEPT))
    with ThreadPoolExecutor(jobs or 1) as pool:
        found = pool.map(lambda cell: played(*cell, size, seed, out), cells)
    samples = dict(zip(cells, found, strict=True))
    report.write_results(out, list(long_form(samples)))
    report.write_summary(
        out,
        "Soak",
        [
            report.table([claim.row("promise") for claim in promises.all_of(samples)]),
            report.table(list(search_rows(samples))),
            "\n".join(f"- {line}" for line in notes(size)),
            draw(out, samples),
        ],
    )


# ------------------------------------------------------------------------ the searches


def played(workers: str, kept: str, size: Scale, seed: int, out: Path) -> list[Sample]:
    """Play a search in as many processes as its kills ask for; return all samples."""
    with tempfile.TemporaryDirectory(dir=out) as folder:
        file = Path(folder, "samples.jsonl")
        for kill_at in [*kills(size, seed, kept), None]:
            part = Part(
                epochs=size.epochs,
                arms=size.arms,
                seed=seed,
                workers=workers,
                every=size.epochs // size.samples,
                samples=str(file),
                run_dir=str(Path(folder, "run")) if kept == "run_dir" else None,
                kill_at=kill_at,
            )
            run_part(part)
        return [json.loads(line) for line in file.read_text().splitlines()]


def kills(size: Scale, seed: int, kept: str) -> list[int]:
    """Return after how many epochs the process of a search is killed, again and again.

    Not in the last tenth, where the kill could come too late.
    """
    if kept != "run_dir":
        return []
    rng = random.Random(seed)
    return sorted(rng.sample(range(1, size.epochs * 9 // 10), size.kills))


def run_part(part: Part) -> None:
    """Play a part in a process of its own; its workers end with it, even if killed."""
    process = subprocess.Popen(command(part), cwd=ROOT, start_new_session=True)
    code = process.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    expected = 0 if part.kill_at is None else -signal.SIGKILL
    if code != expected:
        msg = f"{part} ended with code {code}, and {expected} was expected"
        raise RuntimeError(msg)


# ------------------------------------------------------------------------ what is shown


def long_form(samples: dict[Cell, list[Sample]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``results.csv``, one per sample."""
    for (workers, kept), found in samples.items():
        for sample in found:
            more = {"start": "", "ended": "", "digest": ""}
            yield {"workers": workers, "kept": kept, **more, **sample}


def search_rows(samples: dict[Cell, list[Sample]]) -> Iterator[dict[str, Any]]:
    """Yield what every search has used, its first tenth beside its last."""
    for (workers, kept), found in samples.items():
        first, last = promises.ends(found)
        end = found[-1]
        starts = [sample["start"] for sample in found if "start" in sample]
        yield {
            "workers": workers,
            "kept": kept,
            "kills": len(starts) - 1,
            "s": sum(sample["seconds"] for sample in found),
            "slowest start, s": max(starts),
            "ms per epoch": _both(promises.ms_per_epoch, first, last),
            "CPU ms per epoch": _both(promises.cpu_ms_per_epoch, first, last),
            "MB": _both(promises.most_mb, first, last),
            "descriptors": max(sample["descriptors"] for sample in found),
            "threads": max(sample["threads"] for sample in found),
            "journal, MB": end["journal"] / 1e6,
            "state.json, MB": end["state"] / 1e6,
            "checkpoints at most": max(sample["checkpoints"] for sample in found),
            "their MB at most": max(s["checkpoint bytes"] for s in found) / 1e6,
            "failed epochs": end["failed epochs"],
            "ended arms": end["finished arms"],
        }


def _both(measure: Any, first: list[Sample], last: list[Sample]) -> str:
    return f"{measure(first):.3g}, {measure(last):.3g}"


def notes(size: Scale) -> Iterator[str]:
    """Yield how it was measured."""
    yield (
        f"{size.epochs:,} epochs over {size.arms:,} arms with {MAX_EPOCHS} epochs at "
        f"most, policy and proposer `auto`; {N_WORKERS} threads or processes. An epoch "
        f"costs nothing; {RAISING:.1%} of them raise, {NOT_FINITE:.1%} score NaN and "
        f"{ENDING:.1%} end their arm; failures retire theirs."
    )
    yield (
        f"With a `run_dir` the searching process is killed {size.kills} times, within "
        "10 ms after epochs drawn from the seed, and the search goes on in a new one."
    )
    yield (
        "Two figures in a cell: the first and the last tenth of the epochs. "
        "Descriptors and threads are those of the searching process and its workers, "
        "memory is that of the searching process. Journal and checkpoints: on the disk "
        "of `--out`, waiting for it."
    )


def draw(out: Path, samples: dict[Cell, list[Sample]]) -> str:
    """Draw what every search uses against its epochs."""
    figure, axes = figures.new(12.0, 6.4, 3, 2)
    may_train = samples["in process", "run_dir"]
    axes[4].plot(
        [sample["epochs"] for sample in may_train],
        [2 * sample["arms that may train on"] for sample in may_train],
        color="#8C8C8C",
        linewidth=0.8,
        label="two per arm that may train on",
    )
    panels = {
        "resident memory (MB)": lambda sample: sample["MB"],
        "descriptors, workers included": lambda sample: sample["descriptors"],
        "threads, workers included": lambda sample: sample["threads"],
        "journal (MB)": lambda sample: sample["journal"] / 1e6,
        "checkpoints": lambda sample: sample["checkpoints"],
        "ms per epoch": lambda sample: promises.ms_per_epoch([sample]),
    }
    for ax, (label, measure) in zip(axes, panels.items(), strict=True):
        for (workers, kept), found in samples.items():
            shown = [sample for sample in found if sample["new epochs"]]
            ax.plot(
                [sample["epochs"] for sample in shown],
                [measure(sample) for sample in shown],
                color=WORKERS[workers],
                linestyle=KEPT[kept],
                linewidth=1.2,
                label=f"{workers}, {kept}",
            )
        ax.set_xlabel("epochs")
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
        figures.thousands(ax)
    figures.legend(figure, axes[4])
    return figures.save(figure, out, "soak")

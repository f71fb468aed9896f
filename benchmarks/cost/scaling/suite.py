"""What one controller can drive: workers, arms, decisions per second, memory, disk.

The real ``Scheduler`` drives a simulated, asynchronous cluster. Its cost is the CPU
time of its process, which other processes on the machine hardly affect.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter
from numpy.typing import NDArray

from benchmarks.cost.scaling.cluster import MAX_EPOCHS, Run
from benchmarks.cost.scaling.runs import (
    ANY_LENGTH,
    CLOCK_EPOCHS_PER_ARM,
    CLOCK_SECONDS,
    EPOCHS_PER_ARM,
    FULL_TRAININGS,
    POLICIES,
    SCALES,
    START_ARMS,
    START_SECONDS,
    START_WORKERS,
    Cell,
    Row,
    Scale,
    by_the_clock,
    disk,
    kept,
    percent,
    regrets,
    simulated,
    slow_starts,
    start_budget,
    timed,
    waits,
)
from benchmarks.shared import figures, report
from benchmarks.shared.figures import Look
from benchmarks.shared.results import half_width

BAR, BAR_WORKERS = 0.95, 1000
LOOKS = {
    "auto": Look("#D55E00", "-", "o"),
    "asha": Look("#0072B2", "--", "s"),
}


def run(out: Path, *, scale: str, seed: int, jobs: int | None = None) -> None:
    """Simulate and measure; write results, a figure and a summary."""
    effort = SCALES[scale]
    with ProcessPoolExecutor(jobs or os.cpu_count()) as pool:
        runs = simulated(pool, effort, seed)
        costs = timed(pool, effort, seed)
        regret = regrets(pool, effort, seed)
        by_clock = by_the_clock(pool, effort, seed)
        started = slow_starts(pool, effort, seed)
        states = kept(pool)
    with tempfile.TemporaryDirectory(dir=out) as folder:
        writes = [*disk(Path(folder), effort.lines), *waits()]
    tables = {
        "cluster": list(cluster_rows(runs)),
        "decisions": costs,
        "asynchrony": list(regret_rows(regret)),
        "by the clock": list(clock_rows(by_clock)),
        "slow starts": list(start_rows(started)),
        "kept": states,
        "around": writes,
    }
    report.write_results(out, list(long_form(tables)))
    report.write_summary(
        out,
        "Scaling",
        [
            "\n".join(f"- {line}" for line in verdicts(runs)),
            *(report.table(rows) for rows in tables.values()),
            "\n".join(f"- {line}" for line in notes(effort)),
            draw(out, runs, costs, regret),
        ],
    )


def cluster_rows(runs: dict[Cell, dict[str, Run]]) -> Iterator[Row]:
    """Yield where the workers' time has gone, cluster by cluster."""
    for (policy, (n_workers, n_arms)), by_charge in runs.items():
        paid, gratis = by_charge["measured"], by_charge["free"]
        yield {
            "policy": policy,
            "workers": n_workers,
            "arms": n_arms,
            "played": percent(paid.n_epochs / (EPOCHS_PER_ARM * n_arms)),
            "utilisation": percent(paid.share(paid.training)),
            "waiting for the controller": percent(paid.share(paid.waiting)),
            "without work": percent(paid.share(paid.without_work)),
            "down": percent(paid.share(paid.down)),
            "utilisation while there is work": percent(paid.utilisation_at_work),
            "utilisation, free controller": (
                percent(gratis.share(gratis.training)) if gratis.finished else ""
            ),
            "ms per job": 1e3 * paid.decision,
            "slowest request, ms": 1e3 * paid.slowest,
            "jobs per second": 1 / paid.decision,
            "epochs per job": paid.n_epochs / paid.n_jobs,
            "failures": paid.n_failures,
        }


def verdicts(runs: dict[Cell, dict[str, Run]]) -> Iterator[str]:
    """Hold the cluster of 1,000 workers against the bar, policy by policy."""
    for (policy, (n_workers, n_arms)), by_charge in runs.items():
        if n_workers == BAR_WORKERS:
            paid = by_charge["measured"]
            held = paid.utilisation_at_work >= BAR and paid.decision < 1e-3
            yield (
                f"{policy}, {n_workers:,} workers, {n_arms:,} arms, 1 s epochs: "
                f"{percent(paid.utilisation_at_work)} utilisation while there is work "
                f"(bar {BAR:.0%}), {1e3 * paid.decision:.2f} ms a job (bar 1 ms): "
                f"{'holds' if held else 'does not hold'}"
                f"{'' if paid.finished else ', in a search that was cut off'}."
            )


def regret_rows(found: dict[tuple[str, int], list[Run]]) -> Iterator[Row]:
    """Yield the regret by workers, and what it is above that of one worker."""
    for (policy, n_workers), runs in found.items():
        own = _regrets(runs)
        lost = own - _regrets(found[policy, 1])
        alone = statistics.mean(run.seconds for run in found[policy, 1])
        yield {
            "policy": policy,
            "workers": n_workers,
            "regret": f"{own.mean():.4f}",
            "lost to asynchrony": f"{lost.mean():+.4f} ± {float(half_width(lost)):.4f}",
            "times as fast as 1": alone / statistics.mean(run.seconds for run in runs),
            "utilisation": percent(
                statistics.mean(run.share(run.training) for run in runs)
            ),
        }


def clock_rows(found: dict[tuple[str, int], list[Run]]) -> Iterator[Row]:
    """Yield the regret when the time is over, and how busy the workers were."""
    for (policy, n_workers), runs in found.items():
        own = _regrets(runs)
        difference = own - _regrets(found["asha", n_workers])
        yield {
            "policy": policy,
            "workers": n_workers,
            "regret": f"{own.mean():.4f} ± {float(half_width(own)):.4f}",
            "above asha": f"{difference.mean():+.4f} ± {half_width(difference):.4f}",
            "busy": percent(statistics.mean(run.busy for run in runs)),
            "least busy": percent(min(run.busy for run in runs)),
            "seconds": statistics.mean(run.seconds for run in runs),
        }


def start_rows(found: dict[tuple[str, str], list[Run]]) -> Iterator[Row]:
    """Yield the regret by the length of the jobs, and what the budget went for."""
    for (unit, length), runs in found.items():
        own = _regrets(runs)
        above = own - _regrets(found[unit, ANY_LENGTH])
        budget = start_budget(unit)
        yield {
            "what": f"{START_SECONDS:g} s a start, {budget}",
            "jobs": length,
            "regret": f"{own.mean():.4f} ± {half_width(own):.4f}",
            "above the policy's own": f"{above.mean():+.4f} ± {half_width(above):.4f}",
            "epochs per job": sum(r.n_epochs for r in runs)
            / sum(r.n_jobs for r in runs),
            "arms opened": statistics.mean(run.n_opened for run in runs),
            "epochs": statistics.mean(run.n_epochs for run in runs),
            "spent": percent(
                statistics.mean(run.spent for run in runs) / budget.amount
            ),
        }


def _regrets(runs: list[Run]) -> NDArray[np.float64]:
    return np.array([run.regret for run in runs])


def long_form(tables: dict[str, list[Row]]) -> Iterator[Row]:
    """Yield the rows of ``results.csv``, one per figure."""
    names = ("policy", "workers", "arms", "what", "jobs")
    for title, rows in tables.items():
        for row in rows:
            of = {name: row.get(name, "") for name in names}
            for measure, value in row.items():
                if measure not in names:
                    yield {"table": title, **of, "measure": measure, "value": value}


def notes(effort: Scale) -> Iterator[str]:
    """Yield how it was measured."""
    yield (
        "Cluster: epochs of 1 s (median), 5 % of the workers three times slower, one "
        f"epoch in 1,000 lost with its worker for 10 s; {EPOCHS_PER_ARM} epochs per "
        f"arm to spend, {MAX_EPOCHS} at most for one. The controller is one core: its "
        "CPU time passes on the virtual clock, and requests queue."
    )
    yield (
        f"A timed search is cut off after {effort.cpu_seconds:g} s of the controller's "
        "CPU time; `played` is the share of the budget by then."
    )
    yield (
        "A free controller costs nothing; its figure is left out where the search was "
        "cut off, since its virtual clock has hardly advanced by then."
    )
    yield (
        "Without work: the policy waits for results, or nothing is left of the budget "
        "while the last jobs end. While there is work: training / (training + waiting "
        "for the controller)."
    )
    yield (
        f"Decision by decision: one worker, a budget of {effort.budget:,} epochs, so "
        "most of the arms are never opened, but all are considered."
    )
    yield (
        f"Asynchrony: {effort.regret_arms:,} arms, {5 * effort.regret_arms:,} epochs, "
        f"{effort.seeds} seeds, a controller that costs nothing. Regret is 0 for the "
        "best arm at its end and 1 for the typical one, without noise."
    )
    yield (
        f"By the clock: {CLOCK_SECONDS:g} s, one arm for every {CLOCK_EPOCHS_PER_ARM} "
        "epochs that the workers can train in it, a controller that costs nothing. "
        "Busy: share of the workers' time, until one epoch before the end, in training."
    )
    yield (
        f"Slow starts: `auto`, {START_WORKERS} workers, {START_ARMS} arms, time for "
        f"{FULL_TRAININGS} full trainings, their starts included, a controller that "
        "costs nothing."
    )
    yield "Journal and checkpoints: wall time, on the disk of `--out`; else CPU time."


def draw(
    out: Path,
    runs: dict[Cell, dict[str, Run]],
    costs: list[Row],
    regret: dict[tuple[str, int], list[Run]],
) -> str:
    """Draw utilisation, the cost of a decision, and regret."""
    figure, [left, middle, right] = figures.new(12.0, 3.8, 3)
    for policy in POLICIES:
        color, line, marker = LOOKS[policy]
        look: dict[str, Any] = {
            "color": color,
            "linestyle": line,
            "marker": marker,
            "label": policy,
        }
        rows = [row for row in costs if row["policy"] == policy]
        middle.plot(
            [row["arms"] for row in rows],
            [row["ask and tell, ms per job"] for row in rows],
            **look,
        )
        own = [by_charge for (name, _), by_charge in runs.items() if name == policy]
        if own:
            left.plot(
                [by_charge["measured"].n_workers for by_charge in own],
                [100 * by_charge["measured"].utilisation_at_work for by_charge in own],
                **look,
            )
            workers = [n_workers for name, n_workers in regret if name == policy]
            samples = np.array([_regrets(regret[policy, w]) for w in workers])
            figures.band(right, workers, samples, policy, LOOKS[policy])
    for ax in (left, middle, right):
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(EngFormatter(sep=""))
    left.axhline(100 * BAR, color="#8C8C8C", linewidth=0.8)
    left.set_ylim(0, 103)
    left.set_xlabel("workers, 1 s epochs, 10 to 100 arms each")
    left.set_ylabel("utilisation while there is work (%)")
    middle.set_yscale("log")
    middle.set_xlabel("arms")
    middle.set_ylabel("CPU ms per job: ask and tell")
    right.set_xlabel("workers, the same budget")
    right.set_ylabel("normalised regret")
    figures.legend(figure, middle)
    return figures.save(figure, out, "scaling")

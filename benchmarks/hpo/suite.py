"""Which epoch scheduler finds the best model: searches replayed on recorded curves.

A task is a table of learning curves, one per configuration. A search gets a budget of
``b * R`` epochs (``R``: the 90 % quantile of the lengths of the curves), may open
configurations in a random order that is the same for all methods, and is judged by the
configuration and epoch with the highest score it saw. Its *normalised regret* is

    (best - score) / (best - typical), cut to 0 .. 1

where ``best`` is the highest score of the table, ``typical`` the median over
configurations of their highest scores, and ``score`` the recorded one, also where
noise was added to what the search saw. Means are over orders, then tasks of a family,
then families; over the budgets last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.hpo import (
    bars,
    figures,
    left_out,
    methods,
    reference,
    tables,
    tools,
)
from benchmarks.hpo.decision_times import Decisions, measure
from benchmarks.hpo.draws import FIRST_SEED
from benchmarks.hpo.parts import (
    CLEAN,
    JOBS,
    LCDB,
    NOISES,
    SCALES,
    SECONDS,
    SETTINGS,
    SURROGATE,
    TOOLS,
    UNKNOWN,
    Played,
    noisy_name,
    parallel_name,
    parts,
    play,
    settings_part,
    tools_parts,
)
from benchmarks.hpo.tasks import Task, load_tasks
from benchmarks.shared import report

DRAWN = "imdb_patch32_GRU128_bs128"
"""The task whose allocations are drawn, if it is there."""
IN_SAMPLE = (
    "The constants of `auto` were chosen on tasks like these, so its figures here are "
    "in-sample: they flatter it. `--leave-family-out` gives others."
)
LEFT_OUT = (
    "`auto` is judged by leaving families out: {} settings were tried, and on every "
    "family it is the setting that was best on all others. `auto, in-sample` is the "
    "setting that is best on all, which flatters it."
)


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    jobs: int | None = None,
    data_dir: Path | None = None,
    leave_family_out: bool = False,
) -> None:
    """Search all tasks with all methods; write tables, bars and figures."""
    left_out_files: list[str] = []
    tasks = load_tasks(data_dir, left_out_files)
    times = decision_times(tasks)  # before other processes compete
    size, default, chosen = SCALES[scale], methods.shipped(), None
    if leave_family_out:
        tried = play([settings_part(tasks, size, seed)], jobs)
        chosen = left_out.choose(tried[SETTINGS])
        default = chosen.distinct
    plan = list(parts(tasks, size, seed, default))
    absent: list[str] = []
    if scale == "full":
        found, absent = tools.installed(out / "environments")
        plan += tools_parts(tasks, seed, default, found)
    played = play(plan, jobs)
    if chosen is not None:
        played = {name: chosen.as_default(part) for name, part in played.items()}
    rows = [row for name, part in played.items() for row in tables.rows(name, part)]
    report.write_results(out, rows)
    report.write_summary(
        out,
        "Epoch schedulers on recorded learning curves",
        [
            setting(played[CLEAN]),
            IN_SAMPLE if chosen is None else LEFT_OUT.format(chosen.n_tried),
            "## The bars",
            report.table([*bars.bars(played, times)]),
            *left_out_parts(chosen, played[CLEAN]),
            *clean_parts(played[CLEAN]),
            *other_parts(played),
            *absent,
            *(f"Left out: {reason}." for reason in left_out_files),
            "## Decision time",
            tables.decisions(times),
            *figure_parts(played, tasks, out),
        ],
    )


def decision_times(tasks: Sequence[Task]) -> list[Decisions]:
    """Time the decisions of the methods of our own, on the largest table."""
    largest = max(tasks, key=lambda task: len(task.curves))
    return [
        measure(largest, method, n_arms)
        for n_arms in bars.DECISION_BARS
        for method in (*methods.own(methods.shipped()), *methods.BASELINES)
    ]


def setting(clean: Played) -> str:
    """Return what is measured, in words."""
    part = clean.part
    return "\n\n".join(
        [
            "Normalised regret: (best - score) / (best - typical), from 0 to 1; best "
            "is the highest score of the table, typical the median of the "
            "configurations' highest scores, score the recorded one of the epoch that "
            "looked best. Budgets are multiples of R epochs, R the 90 % quantile of "
            "the lengths of the curves; curves of 100 epochs or more are thinned to "
            "about 50, and no configuration trains for more than R. A budget that a "
            "table does not hold is left out there. Every method meets the "
            f"configurations in the same {len(part.seeds)} random orders (generators "
            f"{FIRST_SEED + part.seeds.start} to {FIRST_SEED + part.seeds.stop - 1}).",
            "Means are over tasks of a family, then over families, then over budgets. "
            "± is half the 95 % interval over the orders (the tasks are what they "
            "are); *over tasks* is a bootstrap 95 % interval, tasks drawn anew within "
            "their families. Rank: among the methods of the table, over tasks and "
            "budgets.",
            "Successive halving gets 15 B / R configurations, epsilon-greedy, CURE-UCB "
            "(eps 1/4, sigma 0) and R-ed-UCB (eps 1/4, sigma 0.01) 12.5 B / R, as in "
            "the reference; all others as many as their own rule recommends. Rows "
            "named after a parameter are `looks-then-slope` with that one "
            "changed. No policy is told where a curve ends before its limit R. The "
            "oracle knows all curves and opens configurations one by one, an epoch "
            "each, up to the one that gets the rest of the budget: no search that "
            "opens them in this order can do better. `dyhpo` is DyHPO's rule, rebuilt: "
            "one Gaussian process over configuration and epoch, and one epoch at a "
            "time where it expects the largest improvement, among all configurations. "
            "It is left out where a task's configurations are not recorded. "
            "`one-epoch` is i-Epoch's: half of the budget opens configurations, an "
            "epoch each, and the best of them train to the end. Both are left out "
            "under all other conditions.",
        ]
    )


def left_out_parts(chosen: left_out.Chosen | None, clean: Played) -> Iterator[str]:
    """Yield what was chosen without each family, and what became of it there."""
    if chosen is None:
        return
    yield "## In-sample and left out"
    yield left_out.by_family(chosen, clean)
    yield f"On all families: {chosen.everywhere.name}."
    yield left_out.by_budget(clean)


def clean_parts(clean: Played) -> Iterator[str]:
    """Yield the tables of the searches without noise."""
    if (public := reference.public(clean)) is not None:
        yield "## Ours / the reference's"
        yield reference.reference_table(public)
    yield "## Without noise"
    yield tables.regrets(clean)
    yield "`auto` against each, differences below 0 in its favour:"
    yield tables.against(clean)
    budgets = ", ".join(f"{multiple}x" for multiple in clean.part.multiples)
    yield (
        f"What the searches do, at {budgets}: share of the epochs that the picked "
        "configuration got, changes from one that could train on to another, "
        "configurations opened, share of the budget used. In vain: share of the epochs "
        "of configurations that had two or more already, and that from then on never "
        "exceed the best score that any had before."
    )
    yield tables.behaviour(clean)


def other_parts(played: Mapping[str, Played]) -> Iterator[str]:
    """Yield the tables of all other conditions."""
    for name in (*(noisy_name(noise) for noise in NOISES), LCDB, SURROGATE):
        if name in played:
            yield f"## {name[0].upper()}{name[1:]}"
            yield tables.regrets(played[name])
            yield tables.against(played[name])
    yield "## Jobs in flight"
    yield (
        "The same budget in epochs; every epoch takes one unit of time, and jobs come "
        "back when they end. Idle: the share of the workers' time in which they wait."
    )
    several = {n_jobs: played[parallel_name(n_jobs)] for n_jobs in JOBS}
    yield tables.in_flight(played[CLEAN].where(several[JOBS[0]].part), several)
    yield "## Budget unknown"
    yield (
        "R epochs at first, extended by factors of 1.5; the search is broken off when "
        "the true budget is spent. Methods that can do that, with the whole table to "
        "open from."
    )
    yield tables.regrets(played[UNKNOWN])
    if SECONDS in played:
        yield "## Budgets in seconds"
        yield (
            "Tasks whose epochs have a recorded cost: b R times the average cost. What "
            "comes after the last second does not count. Methods that plan their "
            "rounds beforehand cannot do that."
        )
        yield tables.regrets(played[SECONDS])
    if TOOLS in played:
        yield "## Other tools"
        yield (
            "Optuna's TPE with Hyperband, and Syne Tune's MOBSTER and DyHPO, on the "
            "first task of every family; every configuration of a table is a "
            "candidate. TPE suggests features, and the nearest configuration that is "
            "new trains; what it trains a second time is lost."
        )
        yield tables.regrets(played[TOOLS])
        yield tables.against(played[TOOLS])


def figure_parts(
    played: Mapping[str, Played], tasks: Sequence[Task], out: Path
) -> Iterator[str]:
    """Draw all figures."""
    yield "## Figures"
    yield figures.regret(played, out)
    yield figures.ranks(played[CLEAN], out)
    yield figures.families(played[CLEAN], out)
    real = played[CLEAN].part.tasks
    task = next((task for task in real if task.name == DRAWN), real[0])
    yield figures.allocations(task, figures.shown_allocations(), out)

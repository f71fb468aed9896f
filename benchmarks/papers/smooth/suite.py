"""Smooth non-stationary bandits: section 7 of the paper of Jia et al."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from benchmarks.papers.smooth import articles, sinusoid
from benchmarks.shared import report, results
from risingsearch.curves.clicks import ClickLog, click_log, make_click_log
from risingsearch.errors import needed


class Scale(NamedTuple):
    """How much is measured."""

    instances: int
    horizons: tuple[int, ...]
    bernoulli_horizons: tuple[int, ...]
    click_runs: int
    fitted_horizons: tuple[int, ...]
    fitted_runs: int


# Three per decade.
GRID = (
    1_000_000,
    2_150_000,
    4_640_000,
    10_000_000,
    21_500_000,
    46_400_000,
    100_000_000,
)
SCALES = {
    "quick": Scale(40, GRID[:4], GRID[:3], 20, GRID[:3], 2),
    "default": Scale(100, GRID[:4], GRID[:4], 50, GRID[:4], 4),
    "full": Scale(100, GRID, GRID[:4], 100, GRID[::2], 4),
}


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    jobs: int | None = None,
    clicks: Path | None = None,
) -> None:
    """Play the sinusoids and the clicks."""
    with needed("statsmodels", "bench"):
        import statsmodels  # noqa: F401 - the last part needs it, long after the first
    log = click_log(clicks) if clicks else make_click_log(seed)
    size = SCALES[scale]
    sinusoids = sinusoid.Study(
        size.instances, size.horizons, size.bernoulli_horizons, seed, jobs
    )
    article_clicks = articles.Study(
        log, size.click_runs, size.fitted_horizons, size.fitted_runs, seed, jobs
    )
    gaussian, bernoulli = (sinusoids.play(noise) for noise in (1.0, "bernoulli"))
    counterfactual, fitted = map(article_clicks.play, articles.EXPERIMENTS)
    parts = [
        "## The bars",
        report.table([*sinusoid.bars(gaussian), *sinusoid.costs(sinusoids)]),
        "## The one-armed sinusoid (section 7.2)",
        setting(size),
        *sinusoid.parts(gaussian, bernoulli, out, seed),
        "## Clicks on articles (section 7.3)",
        source(log, clicks),
        *articles.parts(log, counterfactual, fitted, out),
    ]
    report.write_results(
        out,
        [
            row
            for found in (gaussian, bernoulli, counterfactual, fitted)
            for row in results.rows("main", found)
        ],
    )
    report.write_summary(out, "Smooth non-stationary bandits paper, section 7", parts)


def setting(scale: Scale) -> str:
    """Return what is played, in words."""
    return (
        f"{scale.instances} instances, the same at every horizon T from "
        f"{scale.horizons[0]:,} to {scale.horizons[-1]:,}; regret against the better "
        "arm of every round. BE knows the reward of the constant arm, which the paper "
        "calls 0 and makes A in its experiment; all constants of `E` and `B` are 1, "
        "`L` is 1, Rexp3 has a variation budget of 0.05. The paper does not state the "
        "noise; its theory has 1-sub-Gaussian rewards, so it is N(0, 1) here, of which "
        "Rexp3 sees what is left after clipping to [0, 1]; Bernoulli rewards stand "
        "beside. The 0.001 in the law of A is read as a standard deviation."
    )


def source(log: ClickLog, clicks: Path | None) -> str:
    """Return where the clicks come from, in words."""
    hours = (log.timestamps[-1] - log.timestamps[0]) / 3600
    size = (
        f"{len(log.clicks):,} entries, {len(log.names)} items, {hours:.1f} hours, "
        f"click rate {log.clicks.mean():.3f}"
    )
    if clicks:
        return f"The log is `{clicks.name}`: {size}."
    return (
        f"**The log is synthetic** ({size}): the paper's, Yahoo! R6B, may not be "
        "passed on. Click rates swing once or twice a day around levels of their own. "
        "With a log at hand, give `--clicks FILE`: CSV with the columns timestamp (in "
        "seconds), item, click. The figures below say nothing about the paper's."
    )

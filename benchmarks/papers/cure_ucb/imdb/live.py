"""Online learners trained live on the IMDB reviews: how they fare, and the policies."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.cure_ucb.imdb import figures, text
from benchmarks.papers.cure_ucb.imdb.arms import (
    ARMS,
    PUBLISHED,
    SCIKIT_LEARN,
    TORCH,
)
from benchmarks.papers.cure_ucb.imdb.game import Game, Played, live_policies, play_all
from benchmarks.papers.cure_ucb.imdb.settings import (
    BATCH,
    HORIZON,
    Found,
    bar_row,
    has_curves,
    recorded_curves,
)
from benchmarks.shared import report, results
from benchmarks.shared.results import means
from risingsearch.curves.rising import IMDB_ARMS
from risingsearch.simulation import Comparison

ACCURACIES = {"lr0003": 0.829, "ogd01": 0.840}
TOLERANCE = 0.015
LONG, CHANCE = 10_000, 0.6
"""A network right less often than that after so many reviews has learned nothing."""
TIMED = 5000
LIMIT = 600


class Scale(NamedTuple):
    """How much is measured."""

    orders: int
    single: int  # reviews of the game with one per pull
    batches: int  # reviews of the games with many


SCALES = {
    "quick": Scale(2, 500, 1000),
    "default": Scale(3, TIMED, 10_000),
    "full": Scale(5, HORIZON, HORIZON),
}

RULES = Game(PUBLISHED, ("lr0003", "ogd01", "ada005"), 1, HORIZON, 5, searched=False)


def games(scale: Scale) -> list[Game]:
    """Return what is played; PyTorch only where it is installed."""
    more = (*IMDB_ARMS, "ada005")
    libraries = [SCIKIT_LEARN, TORCH] if find_spec("torch") else [SCIKIT_LEARN]
    return [
        RULES,
        Game(PUBLISHED, IMDB_ARMS, 1, scale.single, scale.orders),
        *(Game(one, more, BATCH, scale.batches, scale.orders) for one in libraries),
    ]


class Study(NamedTuple):
    """The reviews, and how much is measured on them."""

    features: Path
    data_dir: Path | None
    scale: Scale
    seed: int = 0
    jobs: int | None = None


def measure(study: Study, out: Path) -> Found:
    """Play and draw."""
    _, data_dir, scale, seed, jobs = study
    begin = time.perf_counter()
    played = play_all(games(scale), seed, study.features, jobs)
    seconds = time.perf_counter() - begin
    searched = {game: found for game, found in played.items() if game.searched}
    compared = [comparison(game, found) for game, found in searched.items()]
    curves = recorded_curves(data_dir, [*ARMS]) if has_curves(data_dir) else {}
    learners = [row for g, f in played.items() for row in learner_rows(g, f, curves)]
    parts = [
        setting(data_dir, searched),
        "### Learners alone",
        report.table(learners),
        silent_networks(played),
        "### Searches",
        *search_parts(searched, compared),
        "### Figures of the searches",
        figures.alone({g.name: by_review(g, f) for g, f in searched.items()}, out),
        figures.bars(compared, out),
    ]
    rows = [row for c in compared for row in results.rows("live, search", c)]
    rows += [{"part": "live, alone"} | row for row in learners]
    return Found(rows, [*bars(played, scale, seconds)], parts)


def comparison(game: Game, found: list[Played]) -> Comparison:
    """Return the regrets of a game in reviews, one run per order."""
    regret = game.batch * np.array([one.regret for one in found]).T[None, None]
    return Comparison(
        policies=[*live_policies(game.batch)],
        environments=[game.name],
        horizons=[game.reviews],
        regret=regret,
        best_mean=np.full_like(regret, np.nan),
    )


def by_review(game: Game, found: list[Played]) -> dict[str, NDArray[np.float64]]:
    """Return what each learner scored alone, of shape (n_orders, n_reviews)."""
    alone = np.repeat([one.alone for one in found], game.batch, axis=-1)
    return {code: alone[:, arm] for arm, code in enumerate(game.arms)}


def setting(data_dir: Path | None, searched: Collection[Game]) -> str:
    """Return what is played, in words."""
    words = (
        "the first 1,000 words of the data set's vocabulary, as published"
        if text.has_vocabulary(data_dir)
        else "their 1,000 most frequent words (the published list was not at hand)"
    )
    played = [
        f"- {game.name}: {len(game.arms)} arms, {game.reviews:,} reviews, "
        f"{game.orders} orders"
        for game in searched
    ]
    if TORCH not in [game.library for game in searched]:
        played.append(f"- {TORCH}: not measured, it is not installed")
    listed = "\n".join(played)
    return (
        f"The {HORIZON:,} labelled reviews as raw counts of {words}. A pull predicts "
        "the next reviews of the arm's own random order, then learns them one by one; "
        "its reward is the share of right predictions. `RisingSearch` decides which "
        "arm is next, with the settings of the replay; "
        "`auto` is the product's default. Regret: what the best learner gets right "
        "alone, on the same reviews, less what the search got right.\n\n"
        f"{listed}\n\n"
        '"As published": logistic regression (step 0.003), gradient descent (0.1) and '
        "Adagrad (0.05) in numpy, networks by scikit-learn. The libraries' own models "
        "have the same settings. To predict and learn one review alone costs a network "
        f"of scikit-learn 0.3 milliseconds, among {BATCH} reviews half of that: "
        f"hence the pulls of {BATCH}, which change when a learner predicts, not what "
        "it learns."
    )


def bars(
    played: Mapping[Game, list[Played]], scale: Scale, seconds: float
) -> Iterator[dict[str, str]]:
    """Yield what is to come out, what did, and whether it holds."""
    last, found = HORIZON // 10, played[RULES]
    for code, expected in ACCURACIES.items():
        arm = RULES.arms.index(code)
        right = float(np.mean([one.alone[arm, -last:].mean() for one in found]))
        yield bar_row(
            f"{ARMS[code].name}, right on the last {last:,} of {HORIZON:,} reviews, "
            f"mean of {len(found)} orders: within {TOLERANCE} of {expected:.3f}",
            f"{right:.4f}",
            abs(right - expected) <= TOLERANCE,
        )
    if scale.single == TIMED:
        worked = sum(one.seconds for found in played.values() for one in found)
        yield bar_row(
            f"live, T = {TIMED:,}, all games and orders: within {LIMIT // 60} minutes",
            f"{seconds:.0f} s; {worked:.0f} s of processor time",
            seconds <= LIMIT,
        )


def learner_rows(
    game: Game, found: list[Played], curves: Mapping[str, NDArray[np.float64]]
) -> Iterator[dict[str, Any]]:
    """Yield how often each learner is right alone, beside the recorded curve."""
    last = game.reviews // 10
    for code, right in by_review(game, found).items():
        ends = right[:, -last:].mean(axis=1)
        row = {
            "game": game.name,
            "learner": ARMS[code].name,
            "reviews": f"{game.reviews:,}",
            "right": f"{right.mean():.3f}",
            "recorded": "",
            "last tenth": f"{ends.mean():.3f}",
            "its orders": " ".join(f"{end:.2f}" for end in sorted(ends)),
            "recorded then": "",
        }
        if code in curves:
            curve = curves[code][: game.reviews]
            row["recorded"] = f"{curve.mean():.3f}"
            row["recorded then"] = f"{curve[-last:].mean():.3f}"
        yield row


def silent_networks(played: Mapping[Game, list[Played]]) -> str:
    """Return how many networks have learned nothing, in words."""
    ends = [
        right[-len(right) // 10 :].mean()
        for game, found in played.items()
        for code, orders in by_review(game, found).items()
        for right in orders
        if ARMS[code].rule == "network" and game.reviews >= LONG
    ]
    if not ends:
        return f"No network here has had {LONG:,} reviews: most are still at the start."
    silent = sum(end < CHANCE for end in ends)
    return (
        f"Of {len(ends)} networks with {LONG:,} reviews or more, {silent} end with "
        f"less than {CHANCE:.0%} right: one or two hidden units can fall silent for "
        "good, and then nothing is learned any more. A recorded curve is a mean over "
        "both kinds, which no single network follows; live, the best arm depends on "
        "the order and on the weights drawn."
    )


def search_parts(
    searched: Mapping[Game, list[Played]], compared: Iterable[Comparison]
) -> Iterator[str]:
    """Yield per game what the policies collected, and whether arms are the same."""
    for (game, found), one in zip(searched.items(), compared, strict=True):
        best = ", ".join(ARMS[game.arms[order.best]].name for order in found)
        yield f"{game.name}; the best learner alone, by order: {best}."
        yield report.table([*policy_rows(game, found, one)])
    orders = [order for found in searched.values() for order in found]
    same, total = sum(o.same for o in orders), sum(len(o.rewards) for o in orders)
    yield (
        f"In {same} of {total} searches every arm scored, pull by pull, what it scores "
        "alone."
    )


def policy_rows(
    game: Game, found: list[Played], one: Comparison
) -> Iterator[dict[str, str]]:
    """Yield what a policy lost, got right, and how often it pulled the best arm."""
    for policy in means(one, game.reviews):
        p = one.policies.index(policy)
        right = np.mean([order.rewards[p] for order in found]) / game.n_pulls
        best = np.mean([order.pulls[p, order.best] for order in found]) / game.n_pulls
        yield {
            "policy": policy,
            "regret": results.with_interval(one.regret[0, 0, p]),
            "right": f"{right:.3f}",
            "pulls of the best arm": f"{best:.0%}",
        }

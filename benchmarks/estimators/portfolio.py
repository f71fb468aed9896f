"""Learn good starts: ``python -m benchmarks.estimators.portfolio --minutes 22``.

Every estimator of ``MODELS`` is trained with its default and with draws of its curated
space on tables that learn. The starts are chosen one after the other, each the one that
lowers the mean loss of the best of them most. ``--check`` compares them with as many
draws on the other tables.
"""

from __future__ import annotations

import json
import time
import warnings
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from xgboost import XGBClassifier

from benchmarks.estimators.tables import Table, tables
from risingsearch import space_of
from risingsearch.arms import Params
from risingsearch.integrations.sklearn.folds import configured
from risingsearch.space import Space
from risingsearch.space.by_name import known_estimators, learnt_starts

STARTS = Path(__file__).parents[2] / "risingsearch/space/starts.json"
N_STARTS = 8
N_DRAWN = 40
SEEDED = {"random_state": 0}
TREES: dict[str, Any] = {
    "HistGradientBoostingClassifier": HistGradientBoostingClassifier(**SEEDED),
    "LGBMClassifier": LGBMClassifier(verbose=-1, n_jobs=1, **SEEDED),
    "XGBClassifier": XGBClassifier(n_jobs=1, **SEEDED),
    "RandomForestClassifier": RandomForestClassifier(**SEEDED),
    "ExtraTreesClassifier": ExtraTreesClassifier(**SEEDED),
    "GradientBoostingClassifier": GradientBoostingClassifier(**SEEDED),
}
SCALED: dict[str, Any] = {
    "MLPClassifier": MLPClassifier(max_iter=60, **SEEDED),
    "SGDClassifier": SGDClassifier(loss="log_loss", **SEEDED),
    "SVC": SVC(max_iter=100_000, **SEEDED),
    "LogisticRegression": LogisticRegression(max_iter=300),
    "KNeighborsClassifier": KNeighborsClassifier(),
}


def main() -> None:
    """Learn the starts of all estimators and write them, or check those that are."""
    parser = ArgumentParser(description="Learn good starts.")
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--check", action="store_true", help="on tables that learn not")
    parser.add_argument("--models", nargs="+", choices=TREES | SCALED)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = [table for table in tables() if table.learns != given.check]
    np.random.default_rng(0).shuffle(chosen)  # type: ignore[arg-type]
    models = {name: (TREES | SCALED)[name] for name in given.models or TREES | SCALED}
    seconds = 60.0 * given.minutes / len(models)
    starts = dict(learnt_starts())
    for name, model in models.items():
        default = known_estimators()[name].default
        drawn = Space.of(space_of(name)).draw(N_DRAWN, np.random.default_rng(0))
        if given.check:
            candidates = [default, *starts[name], *drawn[:N_STARTS]]
            losses = losses_of(name, model, candidates, chosen, seconds)
            report_check(name, losses)
            continue
        candidates = [default, *map(rounded, drawn)]
        losses = losses_of(name, model, candidates, chosen, seconds)
        best = greedy(relative(losses))
        starts[name] = [candidates[k] for k in best]
        print(name, f"{len(losses)} tables, regret", *portfolio_regrets(losses, best))
        STARTS.write_text(as_text(starts))


def report_check(name: str, losses: NDArray[np.float64]) -> None:
    """Print how often the best start is better than the best of as many draws."""
    default = losses[:, 0]
    best_start = losses[:, : N_STARTS + 1].min(axis=1)
    best_draw = losses[:, [0, *range(N_STARTS + 1, losses.shape[1])]].min(axis=1)
    better = np.mean(best_start < best_draw) + 0.5 * np.mean(best_start == best_draw)
    print(
        f"{name}, {len(losses)} tables: loss to that of the default, in the median, "
        f"{np.median(best_start / default):.3f} with {N_STARTS} starts, "
        f"{np.median(best_draw / default):.3f} with as many draws; "
        f"starts are better on {better:.0%}"
    )


def losses_of(
    name: str,
    model: Any,
    candidates: Sequence[Params],
    learning: Sequence[Table],
    seconds: float,  # of the processor
) -> NDArray[np.float64]:
    """Return the loss of every candidate on as many tables as the time is for."""
    begin = time.process_time()
    rows = []
    for table in learning:
        rows.append([loss_of(name, model, params, table) for params in candidates])
        spent = time.process_time() - begin
        if spent * (1.0 + 1.0 / len(rows)) > seconds:
            break
    return np.array(rows)


def loss_of(name: str, model: Any, params: Params, table: Table) -> float:
    """Return the log loss of half of the rows, or the error without probabilities."""
    estimator = configured(model, params)
    if name in SCALED:
        estimator = make_pipeline(StandardScaler(), estimator)
    train, test, y_train, y_test = train_test_split(
        table.rows, table.y, test_size=0.5, random_state=0, stratify=table.y
    )
    try:
        estimator.fit(train, y_train)
        if not hasattr(estimator, "predict_proba"):
            return 1.0 - float(accuracy_score(y_test, estimator.predict(test)))
        return float(log_loss(y_test, estimator.predict_proba(test)))
    except ValueError:  # such as more neighbours than rows
        return np.inf


def relative(losses: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return losses by table: 0 of the best, 1 of the median and all worse."""
    best = losses.min(axis=1, keepdims=True)
    spread = np.median(losses, axis=1, keepdims=True) - best
    differs = spread[:, 0] > 1e-3 * best[:, 0]
    regrets = (losses - best)[differs] / spread[differs]
    return np.minimum(regrets, 1.0)


def greedy(regrets: NDArray[np.float64]) -> list[int]:
    """Return the candidates beside the default, which is the first of all."""
    chosen = [0]
    while len(chosen) <= N_STARTS:
        best = regrets[:, chosen].min(axis=1)
        means = np.minimum(regrets, best[:, None]).mean(axis=0)
        means[chosen] = np.inf
        chosen.append(int(np.argmin(means)))
    return chosen[1:]


def portfolio_regrets(losses: NDArray[np.float64], chosen: Sequence[int]) -> list[str]:
    """Return the mean regret of the default, and of it with more and more starts."""
    regrets = relative(losses)
    counts = (0, 1, 2, 4, 8)
    return [f"{regrets[:, [0, *chosen[:n]]].min(axis=1).mean():.3f}" for n in counts]


def rounded(params: Params) -> Params:
    """Return a configuration with numbers of three digits."""
    return {
        name: float(f"{value:.3g}") if isinstance(value, float) else value
        for name, value in params.items()
    }


def as_text(starts: dict[str, list[Params]]) -> str:
    """Return the starts as JSON, one on a line."""
    blocks = []
    for name, configurations in starts.items():
        lines = ",\n".join(f"    {json.dumps(each)}" for each in configurations)
        blocks.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    main()

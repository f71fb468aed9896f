"""Settings of the default chosen without a family, and judged on that family."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.hpo.bars import rivals
from benchmarks.hpo.methods import DEFAULT, Method
from benchmarks.hpo.parts import Played
from benchmarks.hpo.statistics import balanced, overall, per_task
from benchmarks.hpo.tables import three
from benchmarks.shared import report
from risingsearch.errors import InvalidParameterError

IN_SAMPLE = "auto, in-sample"


class Chosen(NamedTuple):
    """The settings that were chosen, among so many."""

    n_tried: int
    everywhere: Method  # on all families: in-sample
    without: Mapping[str, Method]  # by the family that had no say

    @property
    def distinct(self) -> list[Method]:
        """All settings that were chosen, each once."""
        return [
            *{
                one.name: one for one in (self.everywhere, *self.without.values())
            }.values()
        ]

    def as_default(self, played: Played) -> Played:
        """Return a part with two methods in place of the settings.

        ``DEFAULT`` is, on every family, the setting that was chosen without it, and
        ``IN_SAMPLE`` the one that was chosen on all. A family that had no say in any
        choice has the latter as both.
        """
        names = [one.name for one in self.distinct]
        methods, outcomes = played.part.methods, played.outcomes
        everywhere = played.names.index(self.everywhere.name)
        left_out = [
            played.names.index(self.without.get(family, self.everywhere).name)
            for family in played.families
        ]
        rest = [m for m, name in enumerate(played.names) if name not in names]
        two = outcomes[left_out, np.arange(len(left_out))], outcomes[everywhere]
        made = [Method(DEFAULT, DEFAULT), self.everywhere._replace(name=IN_SAMPLE)]
        part = played.part._replace(methods=[*made, *(methods[m] for m in rest)])
        return Played(part, np.concatenate([np.stack(two), outcomes[rest]]))


def choose(settings: Played) -> Chosen:
    """Choose a setting on all families, and one for each on all but that.

    Raises
    ------
    InvalidParameterError
        If there are fewer than two families.
    """
    families = [str(family) for family in np.unique(settings.families)]
    if len(families) < 2:
        msg = (
            f"one family cannot be left out of {len(families)}: there must be recorded "
            "curves of at least 2 families"
        )
        raise InvalidParameterError(msg)
    without = {family: best_setting(settings, family) for family in families}
    return Chosen(len(settings.names), best_setting(settings), without)


def best_setting(settings: Played, left_out: str = "") -> Method:
    """Return the setting with the lowest mean regret on all families but one."""
    kept = settings.families != left_out
    means = [
        overall(regret[kept], settings.families[kept]).mean()
        for regret in settings.regret
    ]
    return settings.part.methods[int(np.argmin(means))]


def by_family(chosen: Chosen, played: Played) -> str:
    """Return mean regret per family beside the baselines', and what was chosen."""
    lines = []
    for family in np.unique(played.families):
        own = played.families == family
        line = {"family": family, "chosen without it": chosen.without[family].name}
        for name in (IN_SAMPLE, DEFAULT, *rivals(played)):
            line[heading(name)] = three(per_task(played.of(name)[own]).mean())
        lines.append(line)
    return report.table(lines)


def by_budget(played: Played) -> str:
    """Return mean regret per budget, and over all, beside the baselines'."""
    names = (IN_SAMPLE, DEFAULT, *rivals(played))
    means = [balanced(played.of(name), played.families).mean(axis=-1) for name in names]
    lines = []
    for b, multiple in enumerate(played.part.multiples):
        figures = {
            heading(name): three(mean[b])
            for name, mean in zip(names, means, strict=True)
        }
        lines.append({"budget": f"{multiple}x", **figures})
    figures = {
        heading(name): three(mean.mean())
        for name, mean in zip(names, means, strict=True)
    }
    return report.table([*lines, {"budget": "mean", **figures}])


def heading(name: str) -> str:
    """Return what a column is called."""
    return {IN_SAMPLE: "in-sample", DEFAULT: "left out"}.get(name, name)

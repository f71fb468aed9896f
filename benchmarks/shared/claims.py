"""What a paper says, and whether a ``Comparison`` bears it out.

Every function looks at the one environment of the comparison and returns a ``Claim``:
the verdict is computed, never written down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks.shared.results import at, average_ranks, means, paired_p_value
from risingsearch.simulation import Comparison

LEVEL = 0.05
"""A difference is beyond chance where the p-value of a paired t-test is below this."""


class Claim(NamedTuple):
    """A statement of a paper, how it is read, what came out, and the verdict."""

    claim: str
    reading: str
    ours: str
    holds: bool

    def row(self, source: str = "the paper") -> dict[str, Any]:
        """Return a row of the table of claims, which come from that source."""
        return {
            source: self.claim,
            "read as": self.reading,
            "came out": self.ours,
            "verdict": "holds" if self.holds else "does not hold",
        }


def lowest_everywhere(comparison: Comparison, policy: str, claim: str) -> Claim:
    """Check that a policy has the lowest mean regret at every horizon."""
    unsure: list[str] = []
    lower: dict[str, list[int]] = {}
    for horizon in comparison.horizons:
        first, second = list(means(comparison, horizon))[:2]
        if first != policy:
            lower.setdefault(first, []).append(horizon)
        elif _p_value(comparison, horizon, policy, second) >= LEVEL:
            unsure.append(f"{horizon:,} ({second})")
    n, n_lower = len(comparison.horizons), sum(map(len, lower.values()))
    parts = [f"lowest at {n - n_lower} of {n} horizons"]
    if unsure:
        parts.append(f"not beyond chance at {', '.join(unsure)}")
    for rival, horizons in lower.items():
        last, mean = horizons[-1], means(comparison, horizons[-1])
        parts.append(
            f"{rival} lower at {_horizons_text(horizons, comparison.horizons)}: "
            f"{mean[rival]:,.0f} against {mean[policy]:,.0f} at {last:,} "
            f"({_p_text(_p_value(comparison, last, policy, rival))})"
        )
    reading = "lowest mean regret at every horizon"
    return Claim(claim, reading, "; ".join(parts), not lower)


def best_average_rank(
    comparison: Comparison, policy: str, horizons: Sequence[int], claim: str
) -> Claim:
    """Check that a policy has the best average rank at some horizons."""
    parts, holds = [], True
    for horizon in horizons:
        ranks = average_ranks(comparison, horizon)
        others = [(name, rank) for name, rank in ranks.items() if name != policy]
        holds &= ranks[policy] < others[0][1]
        parts.append(
            f"at {horizon:,} {ranks[policy]:.2f}, the best other {others[0][0]} "
            f"{others[0][1]:.2f}"
        )
    return Claim(claim, "average rank below all others", "; ".join(parts), holds)


def wins_most(
    comparison: Comparison, policy: str, horizons: Sequence[int], claim: str
) -> Claim:
    """Check that a policy has less regret than each other one in most runs."""
    parts, holds = [], True
    for horizon in horizons:
        shares = comparison.wins(comparison.environments[0], horizon).loc[policy]
        shares = shares.drop(policy)
        holds &= bool(shares.min() > 0.5)
        parts.append(
            f"at {horizon:,} at least {100 * shares.min():.0f} % ({shares.idxmin()})"
        )
    reading = "wins more than half of the runs against each"
    return Claim(claim, reading, "; ".join(parts), holds)


def far_ahead(
    comparison: Comparison,
    policy: str,
    other: str,
    horizons: Sequence[int],
    claim: str,
    factor: float = 2.0,
) -> Claim:
    """Check that another policy has several times the regret of this one."""
    parts, holds = [], True
    for horizon in horizons:
        mean = means(comparison, horizon)
        holds &= mean[other] > factor * mean[policy]
        parts.append(
            f"at {horizon:,} {mean[other]:,.0f} against {mean[policy]:,.0f} of {policy}"
        )
    reading = f"{other} has more than {factor:g} times the regret of {policy}"
    return Claim(claim, reading, "; ".join(parts), holds)


def never_above(
    comparison: Comparison, policy: str, other: str, claim: str, slack: float = 1e-6
) -> Claim:
    """Check that a policy has no more regret than another in every single run."""
    first, second = (comparison.policies.index(name) for name in (policy, other))
    excess = comparison.regret[0, :, first] - comparison.regret[0, :, second]
    above = excess > slack
    ours = f"above in {above.sum():,} of {above.size:,} runs"
    if above.any():
        ours += f", by {excess.max():,.1f} at most"
    reading = f"{policy} never above {other}, in any run at any horizon"
    return Claim(claim, reading, ours, not above.any())


def order_changes(
    comparison: Comparison, policy: str, short: int, long: int, claim: str
) -> Claim:
    """Check that the order of all other policies differs between two horizons."""
    orders = [
        [name for name in average_ranks(comparison, horizon) if name != policy]
        for horizon in (short, long)
    ]
    moved = [
        name for name in orders[0] if orders[0].index(name) != orders[1].index(name)
    ]
    ours = f"{len(moved)} of {len(orders[0])} baselines change places"
    if moved:
        far = max(moved, key=lambda name: abs(_move(orders, name)))
        places = " to ".join(str(order.index(far) + 1) for order in orders)
        ours += f", most of all {far}, from place {places}"
    reading = (
        f"another order of the baselines by average rank at {short:,} and {long:,}"
    )
    return Claim(claim, reading, ours, bool(moved))


def group_ahead(
    comparison: Comparison,
    group: Sequence[str],
    others: Sequence[str],
    horizon: int,
    claim: str,
) -> Claim:
    """Check that every policy of a group ranks better than every one of another."""
    ranks = average_ranks(comparison, horizon)
    worst = max(group, key=ranks.__getitem__)
    best = min(others, key=ranks.__getitem__)
    ours = f"worst of these {worst} {ranks[worst]:.2f}, best of those {best} "
    ours += f"{ranks[best]:.2f}"
    reading = f"average ranks at {horizon:,}: all of the ones below all of the others"
    return Claim(claim, reading, ours, ranks[worst] < ranks[best])


def second_to(comparison: Comparison, policy: str, best: str, claim: str) -> Claim:
    """Check that at every horizon only one policy has less mean regret than this."""
    places: dict[int, list[int]] = {}
    holds = True
    for horizon in comparison.horizons:
        order = list(means(comparison, horizon))
        place = order.index(policy) + 1
        places.setdefault(place, []).append(horizon)
        holds &= place == 1 or (place == 2 and order[0] == best)
    ours = "; ".join(
        f"place {place} at {_horizons_text(horizons, comparison.horizons)}"
        for place, horizons in sorted(places.items())
    )
    reading = f"mean regret below all but {best}'s at every horizon"
    return Claim(claim, reading, ours, holds)


def flattens(comparison: Comparison, policy: str, claim: str) -> Claim:
    """Check that regret hardly grows from the last horizon but one to the last."""
    before, last = (means(comparison, h) for h in comparison.horizons[-2:])
    growth = {name: last[name] - before[name] for name in comparison.policies}
    own = growth.pop(policy)
    others = sum(growth.values()) / len(growth)
    ours = (
        f"from {before[policy]:,.0f} to {last[policy]:,.0f}: {own:+,.0f}, the others "
        f"{others:+,.0f} on average"
    )
    span = " to ".join(f"{horizon:,}" for horizon in comparison.horizons[-2:])
    reading = f"from {span}, a tenth of the others' average growth or less"
    return Claim(claim, reading, ours, own <= 0.1 * others)


def _horizons_text(horizons: Sequence[int], grid: Sequence[int]) -> str:
    """Return horizons in words, those in a row as a range."""
    first = list(grid).index(horizons[0])
    if len(horizons) > 2 and list(grid[first : first + len(horizons)]) == list(
        horizons
    ):
        return f"{horizons[0]:,} to {horizons[-1]:,}"
    return ", ".join(f"{horizon:,}" for horizon in horizons)


def _p_value(comparison: Comparison, horizon: int, policy: str, other: str) -> float:
    regret = at(comparison, horizon)
    first, second = (regret[comparison.policies.index(n)] for n in (policy, other))
    p = paired_p_value(first, second)
    return 1.0 if math.isnan(p) else p


def _p_text(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def _move(orders: Sequence[Sequence[str]], name: str) -> int:
    return orders[1].index(name) - orders[0].index(name)

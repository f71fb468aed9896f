"""Problems that are cast by the dozen: kinds of spaces and curves, constants drawn.

A kind is one difficulty; its four problems differ in constants that a generator draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.spaces.problems import (
    EPOCHS,
    Category,
    N,
    Number,
    Params,
    Problem,
    Whole,
    exact,
    logs,
)
from risingsearch.space import Space

Floats = NDArray[np.float64]
Rng = np.random.Generator
PER_KIND = 4
CHANCE = 0.1  # the score of a model that has learnt nothing


class Places:
    """A drawn space of numbers, and the places of configurations in it, 0 to 1.

    The first number is a learning rate by name in half of the problems.
    """

    def __init__(self, rng: Rng, n: int, n_categories: int = 0) -> None:
        self.names = [f"x{k}" for k in range(n)]
        self.distributions: dict[str, Any] = {}
        if rng.random() < 0.5:
            self.names[0] = "learning_rate"
            self.distributions["learning_rate"] = logs(1e-5, 1.0)
        for name in self.names[len(self.distributions) :]:
            low = 10.0 ** rng.uniform(-6.0, -2.0)
            kinds = [
                Number(0.0, 1.0),
                logs(low, low * 1e4),
                Whole(1, 64, log=True),
            ]
            self.distributions[name] = kinds[int(rng.integers(3))]
        for k in range(n_categories):
            self.distributions[f"c{k}"] = Category(["a", "b", "c"][: 2 + k % 2])
        self._space = Space.of([self.distributions])

    def of(self, params: Params) -> Floats:
        """Return the places of the numbers of a configuration."""
        return np.asarray(self._space.to_unit(params)[: len(self.names)], dtype=float)


def saturating(end: float, tau: float, start: float = CHANCE) -> Floats:
    """Return a curve that comes near its end as an exponential does."""
    return end - (end - start) * np.exp(-N / max(tau, 0.05))


def delayed(end: float, tau: float, delay: float, start: float = CHANCE) -> Floats:
    """Return a curve that stays at its start for some epochs."""
    moved = np.maximum(0.0, N - delay)
    return end - (end - start) * np.exp(-((moved / max(tau, 0.05)) ** 1.5))


def optimum(rng: Rng, n: int) -> Floats:
    """Return a point that is not at an edge."""
    return rng.uniform(0.15, 0.85, n)


def weights(rng: Rng, n: int) -> Floats:
    """Return how much each parameter matters; a few matter most."""
    drawn = rng.exponential(1.0, n)
    return np.asarray(drawn / drawn.sum())


def hill(at: Floats, top: Floats, weight: Floats, width: float) -> float:
    """Return 1 at the top, and less by the weighted distance from it."""
    square = float((weight * (at - top) ** 2).sum())
    return 1.0 / (1.0 + square / width**2)


def peaks(rng: Rng) -> Problem:
    """Return one smooth peak."""
    n = int(rng.integers(2, 7))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    width, tau = rng.uniform(0.13, 0.3), rng.uniform(1.0, 6.0)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        end = CHANCE + 0.82 * hill(at, top, weight, width)
        return saturating(end, tau * (0.5 + abs(at[-1] - top[-1])))

    return problem(places, curve, noise=0.003)


def valleys(rng: Rng) -> Problem:
    """Return a narrow valley that runs across the parameters."""
    n = int(rng.integers(3, 7))
    places, top = Places(rng, n), optimum(rng, n)
    turned = np.linalg.qr(rng.standard_normal((n, n)))[0]
    steep = 10.0 ** np.linspace(0.0, -1.5, n)
    bend, tau = rng.uniform(-1.0, 1.0), rng.uniform(1.0, 5.0)

    def curve(p: Params) -> Floats:
        at = places.of(p) - top
        along = turned @ at
        along[0] += bend * along[-1] ** 2
        end = 0.92 - 0.25 * math.log1p(20.0 * float((steep * along**2).sum()))
        slow = 1.0 + 2.0 * abs(along[-1])
        return end - (end - CHANCE) * (1.0 + N / (tau * slow)) ** -1.2

    return problem(places, curve, noise=0.003)


def basins(rng: Rng) -> Problem:
    """Return three basins: the widest ends lowest."""
    n = int(rng.integers(2, 6))
    places = Places(rng, n)
    tops = rng.uniform(0.1, 0.9, (3, n))
    widths, heights = (0.5, 0.25, 0.16), (0.7, 0.82, 0.92)
    taus = rng.permutation([1.5, 3.0, 6.0])

    def curve(p: Params) -> Floats:
        at = places.of(p)
        squares = ((at - tops) ** 2).mean(axis=1)
        ends = np.array(heights) * np.exp(-squares / np.array(widths) ** 2)
        best = int(ends.argmax())
        return saturating(CHANCE + float(ends[best]) * 0.9, taus[best])

    return problem(places, curve, noise=0.004)


def many(rng: Rng) -> Problem:
    """Return ten to thirty parameters of all kinds, of which a few matter."""
    n = int(rng.integers(10, 25))
    n_relevant = int(rng.integers(3, 6))
    places, top = Places(rng, n, n_categories=4), optimum(rng, n)
    weight = np.zeros(n)
    chosen = {0, *rng.permutation(n)[:n_relevant].tolist()}
    weight[sorted(chosen)] = weights(rng, len(chosen))
    bonus, tau = rng.uniform(0.01, 0.08), rng.uniform(1.5, 5.0)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        end = CHANCE + 0.75 * hill(at, top, weight, 0.25) + bonus * (p["c0"] == "b")
        return saturating(end, tau * 2.0 ** (at[0] - top[0]))

    return problem(places, curve, noise=0.004)


def interactions(rng: Rng) -> Problem:
    """Return pairs of parameters whose best values depend on each other."""
    n = 2 * int(rng.integers(2, 4))
    places, top = Places(rng, n), optimum(rng, n)
    sign = rng.choice([-1.0, 1.0], n // 2)
    tau = rng.uniform(1.0, 5.0)

    def curve(p: Params) -> Floats:
        at = places.of(p) - top
        crossed = at[::2] + sign * at[1::2]
        own = 0.1 * float((at**2).sum())
        end = CHANCE + 0.82 / (1.0 + 12.0 * float((crossed**2).mean()) + own)
        return saturating(end, tau * (0.5 + abs(at[0])))

    return problem(places, curve, noise=0.004)


def conditions(rng: Rng) -> Problem:
    """Return three optimizers with parameters of their own."""
    low = 10.0 ** rng.uniform(-6.0, -4.0)
    names = ("sgd", "adam", "lion")
    parts = [
        {
            "optimizer": Category([name]),
            "lr": logs(low, low * 1e5),
            "dropout": Number(0.0, 0.8),
            f"{name}_beta": Number(0.0, 0.999),
            f"{name}_decay": logs(1e-6, 1e-1),
        }
        for name in names
    ]
    rates = dict(zip(names, rng.uniform(0.2, 0.9, 3), strict=True))
    tops = dict(zip(names, rng.uniform(0.78, 0.93, 3), strict=True))
    betas = dict(zip(names, rng.uniform(0.3, 0.95, 3), strict=True))
    taus = dict(zip(names, rng.uniform(1.0, 6.0, 3), strict=True))
    dropout = rng.uniform(0.1, 0.5)

    def curve(p: Params) -> Floats:
        name = p["optimizer"]
        rate = math.log10(p["lr"] / low) / 5.0 - rates[name]
        beta = p[f"{name}_beta"] - betas[name]
        decay = (math.log10(p[f"{name}_decay"]) + 3.5) / 5.0
        if rate > 0.35:
            return np.full(EPOCHS, CHANCE)
        bad = 8.0 * rate**2 + beta**2 + decay**2 + 0.8 * (p["dropout"] - dropout) ** 2
        end = CHANCE + (tops[name] - CHANCE) / (1.0 + bad)
        return saturating(end, taus[name] * 10.0 ** (-1.2 * rate))

    return Problem("", parts, lambda p, seed: exact(curve(p)), noise=0.004)


def crossing(rng: Rng) -> Problem:
    """Return curves that lead early and end low, and others that do the reverse."""
    n = int(rng.integers(3, 8))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    k, strength = int(rng.integers(n)), rng.uniform(0.1, 0.35)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        end = 0.45 + 0.45 * hill(at, top, weight, 0.25)
        held = at[k]  # as a regularization: slow, and high in the end
        end -= strength * (1.0 - held) + 0.3 * max(0.0, held - 0.85)
        rise = 1.0 - np.exp(-N / (0.5 + 9.0 * held**2))
        falls = strength * (1.0 - held) * (N / EPOCHS) * 0.8
        return CHANCE + (end + strength * (1.0 - held) - CHANCE) * rise - falls

    return problem(places, curve, noise=0.006)


def slow(rng: Rng) -> Problem:
    """Return curves that stay at chance for some epochs, the better the longer."""
    n = int(rng.integers(2, 7))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    longest, width = rng.uniform(2.0, 7.0), rng.uniform(0.12, 0.3)
    k = int(rng.integers(n))

    def curve(p: Params) -> Floats:
        at = places.of(p)
        height = hill(at, top, weight, width)
        delay = longest * (0.3 + 0.7 * at[k])
        return delayed(CHANCE + 0.82 * height, 3.0, delay)

    return problem(places, curve, noise=0.015)


def overfitting(rng: Rng) -> Problem:
    """Return curves that fall after their peak, the sooner the faster they rise."""
    n = int(rng.integers(3, 7))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    strength = rng.uniform(0.1, 0.4)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        speed = 10.0 ** (1.2 * (at[0] - 0.5))
        top_score = CHANCE + 0.8 * hill(at, top, weight, 0.3)
        rise = 1.0 - np.exp(-N * speed / 4.0)
        falls = strength * np.maximum(0.0, N * speed / 12.0 - 0.5)
        return np.maximum(CHANCE, CHANCE + (top_score - CHANCE) * rise - falls)

    return problem(places, curve, noise=0.005)


def jumps(rng: Rng) -> Problem:
    """Return schedules: scores jump where the learning rate falls, late or soon."""
    n = int(rng.integers(3, 6))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    k, size = int(rng.integers(n)), rng.uniform(0.1, 0.3)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        when = 2.0 + 14.0 * at[k]
        before = 0.35 + 0.25 * hill(at, top, weight, 0.3) - 0.1 * at[k]
        jumped = size * (0.3 + 0.7 * at[k]) * (when < N)
        return saturating(before, 2.5) + jumped

    return problem(places, curve, noise=0.005)


def needles(rng: Rng) -> Problem:
    """Return a space of which most never leaves chance."""
    n = int(rng.integers(2, 5))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    radius, tau = rng.uniform(0.15, 0.3), rng.uniform(1.0, 6.0)

    def curve(p: Params) -> Floats:
        distance = math.sqrt(float((weight * (places.of(p) - top) ** 2).sum()))
        if distance > radius:
            return np.full(EPOCHS, CHANCE)
        return saturating(CHANCE + 0.3 + 0.5 * (1.0 - distance / radius), tau)

    return problem(places, curve, noise=0.01)


def failing(rng: Rng) -> Problem:
    """Return failures next to the best: at once by size, later by the rate."""
    n = int(rng.integers(3, 7))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    at_once, later = rng.uniform(0.0, 0.5), rng.uniform(0.2, 0.5)
    edge = np.clip(top[1] + rng.uniform(0.03, 0.1), 0.3, 1.0 - 0.3 * at_once)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        if at[1] > edge + 0.2 * abs(at[0] - top[0]):
            return np.full(1, math.nan)
        end = CHANCE + 0.82 * hill(at, top, weight, 0.2)
        scores = saturating(end, 1.0 + 4.0 * (1.0 - at[0]))
        if at[0] > top[0] + later * 0.5:
            scores[int(3 + 6 * (1.0 - at[0])) :] = math.nan
        return scores

    return problem(places, curve, noise=0.004)


def unlucky(rng: Rng) -> Problem:
    """Return failures by chance, at any epoch, of up to 60 % of the trainings."""
    n = int(rng.integers(2, 6))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    share, salt = rng.uniform(0.1, 0.6), rng.uniform(1e3, 1e4)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        scores = saturating(CHANCE + 0.8 * hill(at, top, weight, 0.2), 3.0)
        luck = math.modf(abs(math.sin(float(at.sum()) * salt) * 1e4))[0]
        if luck < share:
            scores[int(luck / share * 8) :] = math.nan
        return scores

    return problem(places, curve, noise=0.004)


def noisy(rng: Rng) -> Problem:
    """Return noise that is larger than what most epochs gain."""
    n = int(rng.integers(2, 7))
    places, top, weight = Places(rng, n), optimum(rng, n), weights(rng, n)
    tau = rng.uniform(2.0, 6.0)

    def curve(p: Params) -> Floats:
        at = places.of(p)
        return saturating(CHANCE + 0.7 * hill(at, top, weight, 0.25), tau)

    return problem(places, curve, noise=rng.uniform(0.03, 0.08))


def rates(rng: Rng) -> Problem:
    """Return SGD on a noisy quadratic: rate, batch, momentum, decay; it diverges."""
    curvature = 1.0 / np.arange(1, 41) ** rng.uniform(0.8, 1.4)
    n_rows = int(10.0 ** rng.uniform(3.0, 4.0))
    sharp, best_decay = rng.uniform(0.5, 2.0), rng.uniform(-4.0, -1.5)
    space = {
        "lr": logs(1e-4, 10.0),
        "batch_size": Whole(8, 512, log=True),
        "momentum": Number(0.0, 0.98),
        "weight_decay": logs(1e-6, 1.0),
        "schedule": Category(["constant", "cosine"]),
    }

    def curve(p: Params) -> Iterator[float]:
        moments = np.ones(40)
        n_steps = max(1, n_rows // p["batch_size"])
        for epoch in range(EPOCHS):
            rate = p["lr"]
            if p["schedule"] == "cosine":
                rate *= 0.5 * (1.0 + math.cos(math.pi * epoch / EPOCHS))
            if p["lr"] * sharp > 2.0 * (1.0 + p["momentum"]):
                yield CHANCE
                continue
            step = rate / (1.0 - p["momentum"])
            kept = np.minimum((1.0 - np.minimum(step * curvature, 1.0)) ** 2, 1 - 1e-9)
            drift = step * rate * curvature * 4.0 / p["batch_size"]
            left = kept**n_steps
            moments = left * moments + drift * (1.0 - left) / (1.0 - kept)
            loss = 0.5 * float((curvature * moments).sum())
            gap = 0.05 * (math.log10(p["weight_decay"]) - best_decay) ** 2 / 4.0
            yield max(CHANCE, CHANCE + 0.82 / (1.0 + 3.0 * math.sqrt(loss)) - gap)

    return Problem("", [space], lambda p, seed: exact(curve(p)), noise=0.004)


def architectures(rng: Rng) -> Problem:
    """Return whole numbers and categories alone, some of which go together."""
    space: dict[str, Any] = {f"op{k}": Category(list("abcde")) for k in range(4)}
    space |= {"depth": Whole(1, 12), "width": Whole(8, 512, log=True)}
    worth = rng.standard_normal((4, 5)) * 0.5
    pairs = rng.standard_normal((5, 5)) * 0.4
    depth, width = rng.uniform(3.0, 10.0), rng.uniform(4.0, 8.0)

    def curve(p: Params) -> Floats:
        ops = ["abcde".index(p[f"op{k}"]) for k in range(4)]
        total = sum(worth[k][op] for k, op in enumerate(ops)) + pairs[ops[0]][ops[1]]
        total -= 0.05 * (p["depth"] - depth) ** 2 / 4.0
        total -= 0.2 * (math.log2(p["width"]) - width) ** 2 / 4.0
        end = CHANCE + 0.82 / (1.0 + math.exp(-total))
        return saturating(end, 0.5 + 0.4 * p["depth"])

    return Problem("", [space], lambda p, seed: exact(curve(p)), noise=0.006)


def problem(
    places: Places, curve: Callable[[Params], Floats], *, noise: float
) -> Problem:
    """Return the problem of a curve in drawn places."""
    return Problem(
        "", [places.distributions], lambda p, seed: exact(curve(p)), noise=noise
    )


KINDS: tuple[Callable[[Rng], Problem], ...] = (
    peaks,
    valleys,
    basins,
    many,
    interactions,
    conditions,
    crossing,
    slow,
    overfitting,
    jumps,
    needles,
    failing,
    unlucky,
    noisy,
    rates,
    architectures,
)


def cast(kind: Callable[[Rng], Problem]) -> Iterator[Problem]:
    """Yield the problems of a kind."""
    for k in range(PER_KIND):
        yield kind(np.random.default_rng([2026, KINDS.index(kind), k]))

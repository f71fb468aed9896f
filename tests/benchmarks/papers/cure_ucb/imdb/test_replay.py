from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.cure_ucb.imdb import replay
from benchmarks.papers.cure_ucb.imdb.replay import BATCHES, GAMES, HORIZON, SINGLE
from risingsearch.curves.rising import IMDB_ARMS, IMDB_FILE
from risingsearch.simulation import Comparison

TINY = replay.Scale(4, 3, (10_000, HORIZON), beyond=True)


@pytest.fixture
def data_dir(tmp_path):
    """Write curves in the format of the recorded ones: straight lines."""
    codes = [*IMDB_ARMS, *(f"more{i}" for i in range(22))]
    ends = np.linspace(0.9, 0.6, len(codes))
    mean = np.linspace(0.5, ends, HORIZON, axis=1).astype(np.float32)
    (tmp_path / IMDB_FILE).parent.mkdir()
    np.savez(tmp_path / IMDB_FILE, codes=codes, names=codes, mean=mean)
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """Let ``compare`` draw the regrets, the first policy's the lowest."""
    calls = []

    def compare(policies, environments, horizons, n_runs, seed, jobs):
        calls.append((environments, horizons, n_runs))
        rng = np.random.default_rng(seed)
        shape = (1, len(horizons), len(policies), n_runs)
        regret = rng.uniform(100, 101, shape) * np.arange(1, len(policies) + 1)[:, None]
        names = list(policies), list(environments), list(horizons)
        return Comparison(*names, regret, regret)

    def simulate(policy, environment, horizon, n_runs, seed, **parameters):
        pulls = np.full((n_runs, 4), horizon // 20)
        pulls[: n_runs // 2, 0] = 17 * horizon // 20
        pulls[n_runs // 2 :, 0] = 3 * horizon
        return SimpleNamespace(pulls=pulls)

    monkeypatch.setattr(replay, "compare", compare)
    monkeypatch.setattr(replay, "simulate", simulate)
    return calls


def test_leaves_rows_bars_report_and_figures(asked, data_dir, tmp_path):
    study = replay.Study(data_dir, TINY)
    found = replay.measure(study, tmp_path)
    kinds = ("main", "ties", "sweep", "beyond")
    assert {row["part"] for row in found.rows} == {f"replay, {kind}" for kind in kinds}
    assert len(found.bars) == 3
    text = "\n\n".join(found.paragraphs)
    for name in ("curves", "regret", "regret-all-arms"):
        assert f"({name}.png)" in text
        assert (tmp_path / f"{name}.svg").is_file()
    for game in GAMES:
        assert f"{game.name}:" in text
    assert "cure-ucb in 50% with single reviews" in text


def test_batches_are_told_pulls_and_reported_in_reviews(asked, data_dir):
    study = replay.Study(data_dir, TINY)
    single, batches = (study.play(game, None, (10_000,)) for game in (SINGLE, BATCHES))
    assert [horizons for _, horizons, _ in asked] == [[10_000], [100]]
    assert single.horizons == batches.horizons == [10_000]
    np.testing.assert_allclose(batches.regret, 100 * single.regret)


def played(**means):
    """Return a comparison with these mean regrets, and a spread of about 1."""
    rng = np.random.default_rng(0)
    base = {"cure-ucb": 1, "r-ed-ucb": 1, "sw-ucb": 1, "round-robin": 1} | means
    regret = np.array([*base.values()])[:, None] + rng.normal(size=(len(base), 20))
    regret = regret[None, None]
    return Comparison([*base], ["here"], [HORIZON], regret, regret)


def test_bars_follow_the_regrets():
    good = played(**{"cure-ucb": 3500, "r-ed-ucb": 3900})
    half = played(**{"cure-ucb": 400, "round-robin": 900})
    verdicts = [b["verdict"] for b in replay.bars({SINGLE: good, BATCHES: half})]
    assert verdicts == ["holds"] * 3
    far = played(**{"cure-ucb": 1900, "r-ed-ucb": 6000})
    more = played(**{"cure-ucb": 500, "round-robin": 900})
    verdicts = [b["verdict"] for b in replay.bars({SINGLE: far, BATCHES: more})]
    assert verdicts == ["does not hold"] * 3


def test_claims_follow_the_regrets():
    near = played(**{"cure-ucb": 10.0, "r-ed-ucb": 10.4, "sw-ucb": 20.0})
    assert all(claim.holds for claim in replay.check(SINGLE, near))
    far = played(**{"cure-ucb": 20.0, "r-ed-ucb": 10.0, "sw-ucb": 5.0})
    assert not any(claim.holds for claim in replay.check(SINGLE, far))

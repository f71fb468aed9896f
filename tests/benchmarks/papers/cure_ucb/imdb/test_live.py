import numpy as np
import pytest

from benchmarks.papers.cure_ucb.imdb import live
from benchmarks.papers.cure_ucb.imdb.game import Played

TINY = live.Scale(2, 20, 100)


@pytest.fixture
def study(monkeypatch, tmp_path):
    """Let a few random reviews take the place of the published ones."""
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (300, 20)).astype(np.uint16)
    labels = (counts @ rng.normal(size=20) > 0).astype(np.uint8)
    features = tmp_path / "features.npz"
    np.savez(features, counts=counts, labels=labels)
    rules = live.RULES._replace(reviews=300, orders=2)
    monkeypatch.setattr(live, "RULES", rules)
    monkeypatch.setattr(live, "HORIZON", 300)
    return live.Study(features, None, TINY, jobs=1)


def test_leaves_rows_bars_report_and_figures(study, tmp_path):
    found = live.measure(study, tmp_path)
    parts = [row["part"] for row in found.rows]
    assert parts.count("live, search") == 15
    assert parts.count("live, alone") == 3 + 7 + 8 + 8
    assert len(found.bars) == 2
    text = "\n\n".join(found.paragraphs)
    assert "In 30 of 30 searches every arm scored" in text
    for name in ("alone", "live-regret"):
        assert f"({name}.png)" in text
        assert (tmp_path / f"{name}.svg").is_file()


def finished(alone):
    """Return a game in which no policy has played."""
    return Played(alone, np.empty(0), np.empty((0, len(alone))), 0, 1.0)


@pytest.mark.parametrize(
    ("right", "verdict"), [(0.83, "holds"), (0.8, "does not hold")]
)
def test_bars_follow_the_last_tenth(right, verdict):
    n_arms, n = len(live.RULES.arms), live.HORIZON
    alone = np.zeros((n_arms, n))
    alone[:, -n // 10 :] = right
    played = {live.RULES: [finished(alone)]}
    bars = list(live.bars(played, TINY, 0.0))
    assert [bar["verdict"] for bar in bars] == [verdict] * 2

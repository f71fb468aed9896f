import numpy as np
import pytest

from benchmarks.papers.cure_ucb.imdb import game as imdb_game
from benchmarks.papers.cure_ucb.imdb.arms import PUBLISHED, SCIKIT_LEARN, TORCH


@pytest.fixture(scope="module")
def features(tmp_path_factory):
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (600, 20)).astype(np.uint16)
    labels = (counts @ rng.normal(size=20) > 0).astype(np.uint8)
    path = tmp_path_factory.mktemp("imdb") / "features.npz"
    np.savez(path, counts=counts, labels=labels)
    return path


@pytest.mark.parametrize(
    ("library", "batch", "reviews"),
    [(PUBLISHED, 1, 30), (SCIKIT_LEARN, 100, 500), (TORCH, 100, 500)],
)
def test_arms_score_in_a_search_what_they_score_alone(
    library, batch, reviews, features
):
    game = imdb_game.Game(library, ("lr0003", "nn2"), batch, reviews, 1)
    played = imdb_game.play(game, 3, features)
    policies = imdb_game.live_policies(batch)
    assert played.same == len(policies)
    assert played.alone.shape == (2, game.n_pulls)
    assert played.pulls.sum(axis=1).tolist() == [game.n_pulls] * len(policies)
    expected = [
        sum(played.alone[arm, :n].sum() for arm, n in enumerate(pulls))
        for pulls in played.pulls
    ]
    np.testing.assert_allclose(played.rewards, expected)
    best = played.alone.sum(axis=1).max()
    np.testing.assert_allclose(played.regret, best - np.array(expected))

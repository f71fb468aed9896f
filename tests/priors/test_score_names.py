"""What scores are called, and which of their values are then better."""

import pytest

from risingsearch.errors import PriorError
from risingsearch.priors import earlier_searches
from risingsearch.priors.score_names import direction_of, is_score


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        ("auc", "maximize"),
        ("val_accuracy", "maximize"),
        ("test/acc1", "maximize"),
        ("neg_log_loss", "maximize"),
        ("loss", "minimize"),
        ("Validation Loss", "minimize"),
        ("rmse", "minimize"),
        ("train_error", "minimize"),
        ("value", None),
        ("glossary", None),
        ("reward_error", None),
    ],
)
def test_a_direction_is_known_by_words(name, direction):
    assert direction_of(name) == direction


def test_a_score_is_called_by_nothing_else():
    assert all(map(is_score, ("loss", "val_acc", "roc_auc", "neg_log_loss", "test/f1")))
    assert not any(map(is_score, ("loss_weight", "val", "alpha", "mapping", "")))


@pytest.mark.parametrize(
    ("header", "best"), [("alpha,eta0,loss", -0.1), ("alpha,eta0,val_auc", 0.4)]
)
def test_the_one_column_that_is_called_as_scores_are_is_the_score(
    tmp_path, header, best
):
    path = tmp_path / "runs.csv"
    path.write_text(f"{header}\n1,2,0.1\n3,4,0.4\n")
    [found] = earlier_searches(path)
    assert found.parameter_names == ["alpha", "eta0"]
    assert found.scores.max() == best


def test_of_several_one_is_asked_for_with_what_to_write(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("alpha,loss,val_accuracy\n1,2,0.1\n3,4,0.4\n")
    with pytest.raises(PriorError) as caught:
        earlier_searches(path)
    for words in (
        "of 'loss', 'val_accuracy'",
        "from risingsearch.priors import earlier_searches",
        "earlier_searches(..., score='loss')",
        "an item of prior with path and score",
    ):
        assert words in str(caught.value)

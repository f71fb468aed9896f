"""What scores are called, and which of their values are then better."""

from __future__ import annotations

import re

DIRECTIONS = {
    "maximize": frozenset(
        [
            "acc",
            "accuracy",
            "auc",
            "auroc",
            "bleu",
            "dice",
            "f1",
            "iou",
            "map",
            "ndcg",
            "precision",
            "r2",
            "recall",
            "return",
            "reward",
            "score",
        ]
    ),
    "minimize": frozenset(
        [
            "error",
            "logloss",
            "loss",
            "mae",
            "mape",
            "mse",
            "nll",
            "perplexity",
            "ppl",
            "rmse",
            "rmsle",
        ]
    ),
}
"""The words that scores are called by, in lower case."""
NEGATED = ("neg", "negative")
"""Words that turn a loss around, as scikit-learn's scorers do."""
_PARTS = frozenset(
    [
        "absolute",
        "balanced",
        "best",
        "dev",
        "eval",
        "final",
        "log",
        "mean",
        "micro",
        "macro",
        "roc",
        "squared",
        "test",
        "train",
        "val",
        "valid",
        "validation",
        "weighted",
    ]
)
_KNOWN: frozenset[str] = frozenset().union(*DIRECTIONS.values())
_WORD = re.compile(r"[a-z]+[0-9]*|[0-9]+")


def direction_of(name: str) -> str | None:
    """Return which values of a score are better by its name, None where that is open.

    Examples
    --------
    >>> direction_of("val_acc"), direction_of("test/RMSE"), direction_of("quality")
    ('maximize', 'minimize', None)
    >>> direction_of("neg_log_loss"), direction_of("error_score")
    ('maximize', None)
    """
    words = _words(name)
    if words.intersection(NEGATED):
        return "maximize"
    found = [which for which, known in DIRECTIONS.items() if words & known]
    return found[0] if len(found) == 1 else None


def is_score(name: str) -> bool:
    """Return whether a column is called as scores are, and by nothing else.

    Examples
    --------
    >>> [is_score(name) for name in ("loss", "val_accuracy", "loss_weight")]
    [True, True, False]
    """
    words = _words(name) - _PARTS
    return bool(words & _KNOWN) and words <= _KNOWN.union(NEGATED)


def _words(name: str) -> set[str]:
    """Return the words of a name; a number behind one that is none, as in acc1, not."""
    found = _WORD.findall(name.lower())
    return {word if word in _KNOWN else word.rstrip("0123456789") for word in found}

"""What a trial of a study says of itself: which epochs of which arm it trains."""

from __future__ import annotations

from typing import NamedTuple

from optuna.trial import FrozenTrial

# User attributes, so that they are seen on the dashboard, and copied by whatever
# retries a trial. A trial that opens an arm gets ARM when the objective asks for it.
ARM = "rising:arm"
FROM_EPOCH = "rising:from_epoch"
N_EPOCHS = "rising:n_epochs"
CHECKPOINT = "rising:checkpoint"
AGAIN = "rising:again"  # from which epoch a slice trains what was trained before it
FINAL = "rising:final"
LAST = "rising:last"  # the sampler that proposes arms has said that there are no more
BY_PRIOR = "rising:by_prior"  # opened for what earlier searches say
FIXED = "fixed_params"  # Optuna's system attribute for what was enqueued
GIVEN_UP = "rising:given_up"  # by others, who took it for dead before it was decided


class Slice(NamedTuple):
    """The epochs of an arm that a trial was given."""

    arm: int  # number of the trial that opened it
    from_epoch: int
    n_epochs: int | None  # None before it was decided; 0: nothing to train
    asked: bool  # whether the objective can go on with the arm
    n_again: int = 0  # epochs before ``from_epoch`` that it trains once more

    @classmethod
    def of(cls, trial: FrozenTrial) -> Slice | None:
        """Return the trial's slice, or None for one that is no part of the search."""
        attrs = trial.user_attrs
        if N_EPOCHS not in attrs and trial.state.is_finished():
            return None
        from_epoch = attrs.get(FROM_EPOCH, 0)
        slice_, epoch = attrs.get(AGAIN, (from_epoch, from_epoch))
        return cls(
            attrs.get(ARM, trial.number),
            from_epoch,
            attrs.get(N_EPOCHS, 0 if GIVEN_UP in attrs else None),
            asked=ARM in attrs,
            n_again=from_epoch - epoch if slice_ == from_epoch else 0,
        )


def curve(trial: FrozenTrial) -> list[float]:
    """Return what the trial and the slices before it have reported, by step."""
    return [value for _, value in sorted(trial.intermediate_values.items())]

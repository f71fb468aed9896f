"""Batches resume where they stopped, with any source of the shuffling."""

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from risingsearch.integrations.torch import Batches, TorchTrainable
from risingsearch.integrations.torch.random_states import (
    kept_random_states,
    random_states,
    set_random_states,
)


class Noisy(Dataset):
    """Rows that draw from the global random state when they are read."""

    def __len__(self):
        return 11

    def __getitem__(self, row):
        return row + torch.rand(())


def make_loader(own_generator):
    generator = torch.Generator().manual_seed(5) if own_generator else None
    return DataLoader(Noisy(), batch_size=3, shuffle=True, generator=generator)


def taken(batches, n_slices):
    return [batch.tolist() for _ in range(n_slices) for batch in batches]


@pytest.mark.parametrize("own_generator", [True, False])
@pytest.mark.parametrize("before", [0, 1, 3, 4, 5, 9])
def test_a_resumed_pass_gives_the_batches_it_would_have_given(before, own_generator):
    with kept_random_states():
        torch.manual_seed(0)
        whole = Batches(make_loader(own_generator), 1)
        expected = taken(whole, 13)

        torch.manual_seed(0)
        first = Batches(make_loader(own_generator), 1)
        given = taken(first, before)
        state, now = first.state_dict(), random_states()

        torch.manual_seed(99)
        second = Batches(make_loader(own_generator), 1)
        set_random_states(now)
        second.load_state_dict(state)
        given += taken(second, 13 - before)
    assert given == expected


def test_a_search_may_count_steps_instead_of_epochs(tmp_path):
    def build(params, device):
        return {"batches": Batches(make_loader(True), 2), "seen": torch.zeros(0)}

    def train_epoch(run):
        for batch in run.batches:
            run.seen = torch.cat([run.seen, batch])

    own = TorchTrainable(build, train_epoch, lambda run: len(run.seen), device="cpu")
    whole, paused = own.start({}, 0), own.start({}, 0)
    for _ in range(5):
        own.train(whole)
        own.save(paused, str(tmp_path / "run.pt"))
        paused = own.load(str(tmp_path / "run.pt"))
        own.train(paused)
    assert torch.equal(whole.seen, paused.seen)
    assert len(whole.seen) == 28  # three passes of 3, 3, 3 and 2 rows, less 5

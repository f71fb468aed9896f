"""All that build returns resumes bit for bit, or is refused by name."""

import copy
import enum
import itertools
import random
import sys
import weakref
from collections import OrderedDict, defaultdict, deque
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    TensorDataset,
)
from tqdm import tqdm

from risingsearch import RisingSearch
from risingsearch.errors import SetupError
from risingsearch.integrations.torch import Batches, TorchTrainable
from risingsearch.integrations.torch.random_states import GENERATORS, generator_state

X = torch.linspace(-1, 1, 24).reshape(-1, 2)


def told(build, train_epoch, validate, n_epochs=4, folder=None):
    """Return the scores of a run, saved and loaded before every epoch or never."""
    own = TorchTrainable(
        lambda params, device: build(), train_epoch, validate, device="cpu"
    )
    run = own.start({}, 0)
    scores = []
    for _ in range(n_epochs):
        if folder is not None:
            own.save(run, str(folder / "run.pt"))
            run = own.load(str(folder / "run.pt"))
        scores.append(own.train(run))
    return scores


def check_goes_on(folder, *parts, **options):
    whole = told(*parts, **options)
    assert told(*parts, folder=folder, **options) == whole
    return whole


def step(model, *optimizers):
    model(X).square().sum().backward()
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad()


def loss(run):
    with torch.no_grad():
        return run.model(X).square().sum().item()


def make_adam(weights):
    return torch.optim.Adam(weights, lr=0.01)


class TestContainers:
    @pytest.mark.parametrize(
        "container", [tuple, deque, lambda two: dict(enumerate(two))]
    )
    def test_of_objects_with_a_state(self, tmp_path, container):
        def build():
            model = nn.Linear(2, 1)
            two = make_adam([model.weight]), make_adam([model.bias])
            return {"model": model, "optimizers": container(two)}

        def train_epoch(run):
            step(run.model, run.optimizers[0], run.optimizers[1])

        check_goes_on(tmp_path, build, train_epoch, loss)

    def test_of_values_change_in_place(self, tmp_path):
        log = {"n": 0}

        def build():
            log["n"] = 0
            return {
                "log": log,
                "losses": [],
                "last": deque(maxlen=2),
                "counts": defaultdict(int),
                "names": {"a"},
                "nested": {"best": [0.5, None], "at": (1, [2])},
                "by_name": None,
            }

        def train_epoch(run):
            log["n"] += 1
            run.losses.append(log["n"] / 3)
            run.last.append(torch.full((2,), log["n"]))
            run.counts[log["n"] % 2] += 1
            run.names.add(str(log["n"]))
            run.nested["best"][0] += 0.25
            run.nested["at"][1][0] *= 2
            run.by_name = OrderedDict(n=log["n"])

        def validate(run):
            return (
                run.log["n"],
                run.losses,
                [tensor.tolist() for tensor in run.last],
                run.last.maxlen,
                run.counts["x"],
                dict(run.counts),
                sorted(run.names),
                run.nested,
                run.by_name,
            )

        def shown(run):
            return repr(validate(run))

        assert len(set(check_goes_on(tmp_path, build, train_epoch, shown))) == 4

    def test_an_object_that_build_does_not_return_is_refused(self, tmp_path):
        def train_epoch(run):
            run.models.append(nn.Linear(1, 1))

        parts = (lambda: {"models": []}), train_epoch, lambda run: len(run.models)
        with pytest.raises(SetupError, match=r"the state of models\[0\] cannot be"):
            told(*parts, folder=tmp_path)


class TestValues:
    def test_numbers_and_arrays_of_numpy_keep_their_types(self, tmp_path):
        def build():
            return {
                "best": 0.0,
                "rows": np.zeros((2, 3), dtype=np.float16),
                "columns": np.zeros((2, 3), order="F"),
                "grown": np.zeros(0, dtype="U3"),
            }

        def train_epoch(run):
            run.best = np.float32(run.best) + np.float32(0.1)
            run.rows += random.random()
            run.columns[0] += np.random.random(3)
            run.grown = np.append(run.grown, "abc")

        def validate(run):
            values = run.best, run.rows, run.columns, run.columns.flags.f_contiguous
            return repr((*values, run.grown, run.best.dtype))

        check_goes_on(tmp_path, build, train_epoch, validate)

    def test_what_is_replaced_leaves_what_arms_share_as_it_is(self, tmp_path):
        shared = {"weights": torch.ones(2), "rows": np.ones(2), "log": [0]}

        def train_epoch(run):
            run.weights = run.weights / 3
            run.rows = run.rows / 3
            run.log = [*run.log, run.epoch]

        def validate(run):
            return [*run.weights.tolist(), *run.rows.tolist(), *run.log]

        check_goes_on(tmp_path, shared.copy, train_epoch, validate)
        assert repr(shared) == (
            "{'weights': tensor([1., 1.]), 'rows': array([1., 1.]), 'log': [0]}"
        )

    def test_an_own_parameter_stays_the_one_that_is_optimized(self, tmp_path):
        def build():
            weights = nn.Parameter(torch.ones(3))
            return {
                "weights": weights,
                "optimizer": make_adam([weights]),
                "seen": torch.zeros(1),
            }

        def train_epoch(run):
            run.optimizer.zero_grad()
            run.weights.square().sum().backward()
            run.optimizer.step()
            run.seen = torch.cat([run.seen, run.weights.detach()])

        def validate(run):
            return [*run.weights.tolist(), *run.seen.tolist()]

        check_goes_on(tmp_path, build, train_epoch, validate)


class TestGradients:
    def test_accumulated_over_the_end_of_an_epoch(self, tmp_path):
        def build():
            model = nn.Linear(2, 1)
            shift = torch.zeros(1, requires_grad=True)
            optimizer = make_adam([*model.parameters(), shift])
            return {"model": model, "shift": shift, "optimizer": optimizer, "n": 0}

        def train_epoch(run):
            for rows in X.split(4):  # three batches, and a step after every two
                (run.model(rows) + run.shift).square().sum().backward()
                run.n += 1
                if run.n % 2 == 0:
                    run.optimizer.step()
                    run.optimizer.zero_grad()

        def validate(run):
            return loss(run), run.shift.item()

        check_goes_on(tmp_path, build, train_epoch, validate)

    @pytest.mark.parametrize("freeze", [True, False])
    def test_layers_that_are_switched_from_an_epoch_on(self, tmp_path, freeze):
        def build():
            layers = nn.BatchNorm1d(2), nn.Linear(2, 2), nn.Linear(2, 1)
            model = nn.Sequential(*layers)
            model[1].requires_grad_(freeze)
            return {"model": model, "optimizer": make_adam(model.parameters())}

        def train_epoch(run):
            if run.epoch == 1:
                run.model[0].eval()
                run.model[1].requires_grad_(not freeze)
            step(run.model, run.optimizer)

        check_goes_on(tmp_path, build, train_epoch, loss)

    def test_parameter_groups_added_later_are_refused(self, tmp_path):
        def build():
            model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
            return {"model": model, "optimizer": make_adam(model[1].parameters())}

        def train_epoch(run):
            if run.epoch == 1:
                run.optimizer.add_param_group({"params": run.model[0].parameters()})
            step(run.model, run.optimizer)

        with pytest.raises(SetupError, match="all parameter groups from the start"):
            told(build, train_epoch, loss, folder=tmp_path)


class TestRandomStates:
    @pytest.mark.parametrize(
        "make",
        [
            lambda: np.random.RandomState(3).normal,
            lambda: np.random.Generator(np.random.MT19937(3)).normal,
            lambda: np.random.default_rng(3).normal,
            lambda: random.Random(3).random,
        ],
    )
    def test_of_generators(self, tmp_path, make):
        def build():
            return {"rngs": [make().__self__]}

        def validate(run):
            [rng] = run.rngs
            return rng.normal() if hasattr(rng, "normal") else rng.random()

        scores = check_goes_on(tmp_path, build, lambda run: None, validate)
        assert len(set(scores)) == 4

    @pytest.mark.parametrize("wrap", [lambda x: x, lambda x: Batches(x, 2)])
    def test_of_the_sampler_of_a_batch_sampler(self, tmp_path, wrap):
        def build():
            rows = TensorDataset(X)
            sampler = RandomSampler(rows, generator=torch.Generator().manual_seed(1))
            batches = BatchSampler(sampler, 4, drop_last=False)
            loader = DataLoader(rows, batch_sampler=batches)
            return {"loader": wrap(loader), "seen": []}

        def train_epoch(run):
            run.seen += [batch[0].tolist() for batch in run.loader]

        check_goes_on(tmp_path, build, train_epoch, lambda run: str(run.seen))

    @pytest.mark.parametrize("wrap", [lambda x: x, lambda x: Batches(x, 2)])
    def test_of_persistent_workers_are_refused(self, wrap):
        def build(params, device):
            rows = TensorDataset(X)
            loader = DataLoader(rows, num_workers=1, persistent_workers=True)
            return {"loader": wrap(loader)}

        own = TorchTrainable(build, lambda run: None, lambda run: 0.0, device="cpu")
        with pytest.raises(SetupError, match="build it without persistent_workers"):
            RisingSearch(own, [{}], budget=2).run()


class Own:
    """An object without a state: ``held``, and what it does in each epoch."""

    def __init__(self, model, held, update):
        self.model, self.held, self.update = model, SimpleNamespace(it=held), update


class Saved(Own):
    def state_dict(self):
        return {"it": self.held.it}

    def load_state_dict(self, state):
        self.held.it = state["it"]

    def add(self, by):
        self.held.it += by


def adding(total, by):
    total.add_(by)


def adding_to(total):
    return lambda by: total.add_(by)


def called(own):
    own.held.it(0.5)


def copied(model):
    return {n: weights.detach().clone() for n, weights in model.named_parameters()}


def blended(own):
    new = copied(own.model)
    own.held.it = {n: 0.9 * old + 0.1 * new[n] for n, old in own.held.it.items()}


def blend_modules(own):
    own.held.it.load_state_dict(copied(own.model))


class Phase(enum.Enum):
    WARM, MIXED = "warm", "mixed"


class Place(enum.Flag):
    A, B = 1, 2


class Point(NamedTuple):
    x: int
    y: object


def setting(value):
    return lambda own: setattr(own.held, "it", value)


def drawn(own):
    torch.randn(1, generator=own.held.it)


def draw_from_another(make, own):
    if own.held.it is None:
        own.held.it = make()
    draws = getattr(own.held.it, "random", None) or getattr(own.held.it, "rand", None)
    draws() if draws else torch.randn(1, generator=own.held.it)


def listing():
    def note(item, *, items=[]):  # noqa: B006
        items.append(item)

    return note


def prune(module):
    module.mask = nn.Parameter(torch.ones(1))


def shown(it):
    """Return what an object holds, comparable."""
    if isinstance(it, nn.Module):
        return shown(it.state_dict())
    if isinstance(it, GENERATORS):
        return repr(generator_state(it))
    if getattr(it, "__kwdefaults__", None):
        return repr(it.__kwdefaults__)
    if isinstance(it, partial):
        return repr(it.args)
    if hasattr(it, "__closure__") and it.__closure__:
        return repr([cell.cell_contents for cell in it.__closure__])
    if hasattr(it, "__self__"):
        return shown(getattr(it.__self__, "held", it.__self__))
    return repr(it)


CHANGES = [
    (lambda model: torch.Generator().manual_seed(0), drawn),
    (lambda model: "warm", setting("mixed")),
    (lambda model: Phase.WARM, setting(Phase.MIXED)),
    (lambda model: None, setting("a.pt")),
    (lambda model: np.float64(0.0), setting(np.float64(1.0))),
    (copied, blended),
    (copy.deepcopy, blend_modules),
    (lambda model: None, lambda own: setattr(own.held, "it", copied(own.model))),
    (lambda model: np.zeros(3), lambda own: own.held.it.__iadd__(1.0)),
    (lambda model: np.random.default_rng(0), lambda own: own.held.it.random()),
    (lambda model: random.Random(0), lambda own: own.held.it.random()),
    (lambda model: 0, lambda own: setattr(own.held, "it", own.held.it + 1)),
    (lambda model: [], lambda own: own.held.it.append(0.5)),
    (lambda model: Saved(model, 0, None).add, called),
    (lambda model: adding_to(torch.zeros(1)), called),
    (lambda model: partial(adding, torch.zeros(1)), called),
    (
        lambda model: {"phase": Phase.WARM, "at": Point(0, 1)},
        lambda own: own.held.it.update(phase=Phase.MIXED, at=Point(2, [3])),
    ),
    (lambda model: np.random.default_rng(0).normal, lambda own: own.held.it()),
    *(
        (lambda model: None, partial(draw_from_another, make))
        for make in (
            lambda: torch.Generator().manual_seed(3),
            lambda: np.random.Generator(np.random.Philox(3)),
            lambda: np.random.RandomState(3),
            lambda: random.Random(3),
        )
    ),
    (lambda model: listing(), lambda own: own.held.it(own.model.training)),
]


class Noise(nn.Module):
    """Adds noise by a generator, which is no part of its state."""

    def __init__(self, gen):
        super().__init__()
        self.gen = gen

    def forward(self, x):
        if isinstance(self.gen, torch.Generator):
            return x + torch.randn(x.shape, generator=self.gen)
        return x + self.gen.random()

    __call__ = forward


class SavedNoise(Noise):
    def get_extra_state(self):
        return self.gen.get_state()

    def set_extra_state(self, state):
        self.gen.set_state(state)


class Noisy(Dataset):
    def __init__(self, change):
        self.change = change

    def __len__(self):
        return len(X)

    def __getitem__(self, i):
        return self.change(X[i])


class Collate:
    def __init__(self, gen):
        self.change = Noise(gen)

    def __call__(self, rows):
        return self.change(torch.stack(rows))


HIDDEN = [
    Noise,
    lambda gen: DataLoader(Noisy(Noise(gen))),
    lambda gen: DataLoader(list(X), collate_fn=Collate(gen)),
]


class TestWithoutState:
    def own(self, make, **options):
        def build(params, device):
            model = nn.Linear(2, 1)
            made = {"own": make(model), "rows": TensorDataset(X), "loss": nn.MSELoss}
            return made | {"model": model, "optimizer": make_adam(model.parameters())}

        def train_epoch(run):
            step(run.model, run.optimizer)
            run.own.update(run.own)

        return TorchTrainable(build, train_epoch, loss, device="cpu", **options)

    @pytest.mark.parametrize(("held", "update"), CHANGES)
    def test_what_changes_goes_on(self, tmp_path, held, update):
        def trained(folder):
            own = self.own(lambda model: Own(model, held(model), update))
            run = own.start({}, 0)
            for _ in range(3):
                own.train(run)
                if folder is not None:
                    own.save(run, str(folder / "run"))
                    run = own.load(str(folder / "run"))
            return shown(run.own.held.it)

        assert trained(tmp_path) == trained(None)

    @pytest.mark.parametrize(
        ("held", "update"),
        [
            (lambda model: {"mix": None}, lambda own: own.held.it.update(mix=print)),
            (lambda model: [].append, called),
            (lambda model: None, lambda own: setattr(own.held, "it", nn.ReLU())),
            (lambda model: nn.Linear(1, 1), lambda own: prune(own.held.it)),
            (lambda model: np.random.PCG64(0), lambda own: own.held.it.random_raw()),
            (lambda model: Place.A, setting(Place.A | Place.B)),
            (lambda model: 1, lambda own: setattr(own.held, "it", Place.A)),
            (
                lambda model: model.train,
                lambda own: setattr(own.held, "it", own.model.eval),
            ),
        ],
    )
    def test_what_cannot_be_saved_is_refused_by_name(self, tmp_path, held, update):
        own = self.own(lambda model: Own(model, held(model), update))
        run = own.start({}, 0)
        own.save(run, str(tmp_path / "run"))
        own.train(run)
        with pytest.raises(SetupError, match=r"'own' changes while .*: own.held.it"):
            own.save(run, str(tmp_path / "run"))
        own = self.own(lambda model: Own(model, held(model), update), max_resident=1)
        with pytest.raises(SetupError, match="'own' changes"):
            RisingSearch(own, [{}, {}], budget=4, epochs_per_job=1).run()

    @pytest.mark.parametrize(
        "made",
        [
            lambda own: tqdm(range(3), disable=True),
            lambda own: sys.__stderr__,
            lambda own: Thread(target=print),
            lambda own: weakref.ref(own.model),
            lambda own: iter([]),
        ],
    )
    def test_what_belongs_to_the_process_does_not_stop_a_search(self, tmp_path, made):
        own = self.own(
            lambda model: Own(
                model, None, lambda own: setattr(own.held, "it", made(own))
            )
        )
        assert RisingSearch(own, [{}], budget=3, run_dir=tmp_path).run().n_epochs == 3

    @pytest.mark.parametrize(
        "change",
        [
            lambda held: held.it.append(Path("best", str(len(held.it)))),
            lambda held: held.it.append(datetime(2026, 1, 1 + len(held.it))),
            lambda held: held.it.append(defaultdict(int, {"n": len(held.it)})),
            lambda held: held.it.append(held.it[-1] if held.it else [[]]),
        ],
    )
    def test_values_without_a_state_go_on(self, tmp_path, change):
        def train_epoch(run):
            change(run.own.held)
            if isinstance(run.own.held.it[0], list):
                run.own.held.it[0].append([])  # which the others are, too

        def validate(run):
            return repr(run.own.held.it)

        def build():
            return {"own": Own(nn.Linear(1, 1), [], print)}

        check_goes_on(tmp_path, build, train_epoch, validate)

    def test_a_list_that_is_replaced_leaves_the_shared_one_as_it_is(self, tmp_path):
        shared = [0.5]

        def build():
            return {"own": Own(nn.Linear(1, 1), shared, print)}

        def train_epoch(run):
            run.own.held.it = [*run.own.held.it, run.epoch]

        check_goes_on(tmp_path, build, train_epoch, lambda run: repr(run.own.held.it))
        assert shared == [0.5]

    def test_attributes_of_weights_go_on(self, tmp_path):
        def build():
            model = nn.Linear(1, 1)
            model.weight.n_steps = 0
            return {"model": model}

        def train_epoch(run):
            run.model.weight.n_steps += 1

        def validate(run):
            return run.model.weight.n_steps

        check_goes_on(tmp_path, build, train_epoch, validate)

    def test_a_buffer_of_another_shape_is_refused_by_name(self, tmp_path):
        def build(params, device):
            model = nn.Linear(1, 1)
            model.register_buffer("seen", torch.zeros(1))
            return {"model": model}

        def train_epoch(run):
            run.model.seen = torch.zeros(2)

        own = TorchTrainable(build, train_epoch, lambda run: 0.0, device="cpu")
        run = own.start({}, 0)
        own.train(run)
        own.save(run, str(tmp_path / "run"))
        with pytest.raises(SetupError, match=r"^model: .* for seen: .* Let build make"):
            own.train(own.load(str(tmp_path / "run")))

    def test_a_cache_of_a_data_set_may_grow(self, tmp_path):
        class Cached(Dataset):
            def __init__(self):
                self.cache = {}

            def __len__(self):
                return len(X)

            def __getitem__(self, i):
                return self.cache.setdefault(i, (X[i], i))

        check_goes_on(
            tmp_path,
            lambda: {"loader": DataLoader(Cached(), shuffle=True)},
            lambda run: list(run.loader),
            lambda run: str(list(run.loader)),
        )

    def test_an_attribute_that_was_a_view_of_weights_leaves_them(self, tmp_path):
        def build():
            model = nn.utils.spectral_norm(nn.Linear(2, 1))
            return {"model": model, "optimizer": make_adam(model.parameters())}

        check_goes_on(tmp_path, build, lambda run: step(run.model, run.optimizer), loss)

    @pytest.mark.parametrize("held", [held for held, _ in CHANGES])
    def test_what_does_not_is_built_again(self, tmp_path, held):
        own = self.own(lambda model: Own(model, held(model), lambda own: own.model(X)))
        assert RisingSearch(own, [{}], budget=2, run_dir=tmp_path).run().n_epochs == 2

    def test_so_is_what_has_a_state_saved(self, tmp_path):
        own = self.own(lambda model: Saved(model, copied(model), blended))
        assert RisingSearch(own, [{}], budget=2, run_dir=tmp_path).run().n_epochs == 2

    def test_a_generator_in_a_module_s_extra_state_resumes(self, tmp_path):
        def build():
            return {"own": SavedNoise(torch.Generator())}

        check_goes_on(tmp_path, build, lambda run: None, lambda run: run.own(X).sum())

    @pytest.mark.parametrize(
        "make",
        [lambda seed: torch.Generator().manual_seed(seed), np.random.default_rng],
    )
    @pytest.mark.parametrize("hide", HIDDEN)
    def test_so_is_a_generator_that_a_state_leaves_out(self, tmp_path, hide, make):
        def train_epoch(run):
            list(run.own) if isinstance(run.own, DataLoader) else run.own(X)

        def build():
            return {"own": hide(make(0))}

        def validate(run):
            return str(list(run.own) if isinstance(run.own, DataLoader) else run.own(X))

        check_goes_on(tmp_path, build, train_epoch, validate)

    @pytest.mark.parametrize(
        "make",
        [
            lambda model: (rows for rows in X),
            lambda model: itertools.cycle(X),
            lambda model: iter(DataLoader(TensorDataset(X))),
            lambda model: SimpleNamespace(batches=enumerate(X)),
            lambda model: [map(len, X)],
        ],
    )
    def test_an_iterator_is_refused_at_once(self, make):
        with pytest.raises(SetupError, match=r"'own' holds a .* begin the iterator in"):
            self.own(make).start({}, 0)


class TestSetting:
    def test_names_that_build_does_not_return_are_refused(self):
        def train_epoch(run):
            run.seen = 0

        with pytest.raises(AttributeError, match=r"no 'seen': .* let build return"):
            told(lambda: {"n": 0}, train_epoch, print)

    @pytest.mark.parametrize(
        ("built", "value"),
        [
            (None, nn.Linear(1, 1)),
            (nn.Parameter(torch.ones(1)), torch.ones(1)),
            ([], [print]),
        ],
    )
    def test_objects_are_refused(self, built, value):
        def train_epoch(run):
            run.it = value

        with pytest.raises(AttributeError, match="'it' cannot be replaced"):
            told(lambda: {"it": built}, train_epoch, print)


def test_the_run_used_last_needs_no_room():
    own = TorchTrainable(
        lambda params, device: {"n": 0}, print, print, device="cpu", max_resident=2
    )
    runs = [own.start({}, seed) for seed in range(5)]
    assert [run.is_live for run in runs] == [False] * 3 + [True] * 2
    assert runs[0].n == runs[4].n == runs[0].n == 0
    assert [run.is_live for run in runs] == [True, False, False, False, True]

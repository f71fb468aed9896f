"""A search that is given earlier ones: what it opens first, and that it is kept."""

import json
import math

import numpy as np
import pytest
from example_search import start
from optuna.distributions import FloatDistribution

from risingsearch import RisingSearch, Scheduler
from risingsearch.errors import InvalidParameterError, RunDirError
from risingsearch.priors import EarlierSearch, PriorProposer
from risingsearch.search.trainable import Functions
from risingsearch.space import Space

RATES = [10.0 ** (-6 * k / 59) for k in range(60)]
CANDIDATES = [{"rate": rate, "kind": kind} for rate in RATES for kind in "ab"]


SPACE = Space.of({"rate": FloatDistribution(1e-6, 1.0, log=True), "kind": ["a", "b"]})


def train(state):
    state["epochs"] += 1
    off = abs(math.log10(state["rate"]) + 3)
    return (
        (1 - off / 4 - 0.1 * (state["kind"] == "b"))
        * state["epochs"]
        / (state["epochs"] + 2)
    )


def earlier(name="May", sign=1.0, n=30):
    rng = np.random.default_rng(len(name))
    params = [CANDIDATES[k] for k in rng.permutation(len(CANDIDATES))[:n]]
    ends = [sign * -abs(math.log10(one["rate"]) + 3.2) for one in params]
    return EarlierSearch(name, params, [np.array([end]) for end in ends])


def search(candidates=CANDIDATES, **options):
    options = {"budget": 50, "max_epochs": 20, "seed": 0} | options
    return RisingSearch(Functions(start, train), candidates, **options)


def off(result, arms):
    return [abs(math.log10(CANDIDATES[arm]["rate"]) + 3) for arm in arms]


def test_what_did_well_earlier_is_opened_first():
    result = search(prior=[earlier(), earlier("June")]).run()
    assert len(result.opened_by_prior) >= 5
    by_prior = off(result, result.opened_by_prior)
    assert by_prior[0] == pytest.approx(0.2, abs=0.1)  # the best there
    assert max(by_prior) < np.median(off(result, range(120)))
    assert set(result.trust_in_prior) == {"May", "June"}
    assert sum(result.trust_in_prior.values()) > 0.5


def test_a_space_is_searched_from_what_did_well_earlier():
    result = search(SPACE, prior=[earlier(), earlier("June")], budget=40).run()
    by_prior = result.opened_by_prior
    assert len(by_prior) >= 4
    rates = [result.candidates[arm]["rate"] for arm in by_prior]
    assert np.mean(np.abs(np.log10(rates) + 3.2)) < 0.8  # of random ones 1.5
    assert len(set(rates)) == len(rates)
    first = result.arms[by_prior[0]]
    like = ", ".join(map(str, first.like))
    assert first.reason.endswith(f"; opened by prior; resembles arms {like}")
    reasons = [row["reason"] for row in result.history if row["epoch"] == 1]
    assert reasons[:5] == ["opened"] * 3 + ["opened by prior"] * 2


@pytest.mark.parametrize(("candidates", "budget"), [(CANDIDATES, 30), (SPACE, 20)])
def test_small_budgets_find_more_with_a_prior_and_no_less_if_it_misleads(
    candidates, budget
):
    def ends(prior):
        found = (
            search(candidates, budget=budget, seed=k, prior=prior) for k in range(24)
        )
        return np.mean([one.run().best_score for one in found])

    plain = ends(None)
    assert ends([earlier(), earlier("June")]) > plain + 0.02
    assert ends([earlier(sign=-1.0)]) > plain - 0.02


@pytest.mark.parametrize("policy", ["asha", "successive-halving", "cure-ucb"])
def test_every_policy_opens_by_the_prior(policy):
    result = search(prior=earlier(), policy=policy).run()
    assert result.opened_by_prior
    everything = off(result, range(len(CANDIDATES)))
    assert np.mean(off(result, result.opened_by_prior)) < 0.7 * np.mean(everything)


def test_what_is_not_shuffled_is_opened_in_order_but_for_the_prior():
    result = search(prior=earlier(), shuffle=False).run()
    first = [row["arm"] for row in result.history if row["epoch"] == 1]
    in_order = [arm for arm in first if arm not in result.opened_by_prior]
    assert in_order == sorted(in_order)
    assert in_order[0] == 0
    assert result.opened_by_prior


WITH_PICKLED = [one | {"loss": math.sqrt} for one in CANDIDATES]


@pytest.mark.parametrize("candidates", [CANDIDATES, WITH_PICKLED, SPACE])
def test_a_directory_goes_on_with_the_prior_it_was_begun_with(tmp_path, candidates):
    def stop(epoch):
        if epoch.number >= 9:
            epoch.stop()

    whole = search(candidates, prior=earlier()).run()
    folder = tmp_path / "run"
    search(candidates, prior=earlier(), run_dir=folder, callbacks=[stop]).run()
    looked = RisingSearch.saved_result(folder)
    n = len(looked.opened_by_prior)
    assert looked.opened_by_prior == whole.opened_by_prior[:n]
    assert n
    resumed = RisingSearch.resume(folder, Functions(start, train))
    if candidates is not WITH_PICKLED:  # which are only shown, and not ranked
        assert looked.trust_in_prior == resumed.scheduler.trust_in_prior()
    again = search(candidates, run_dir=folder).run()  # whatever the new prior is
    assert again.history["score"] == whole.history["score"]
    assert again.candidates == whole.candidates
    resumed = RisingSearch.resume(folder, Functions(start, train)).result()
    assert resumed.trust_in_prior == whole.trust_in_prior
    assert json.dumps(RisingSearch.saved_result(folder).opened_by_prior)


def test_a_prior_that_cannot_be_used_is_an_error_if_it_is_alone(tmp_path):
    foreign = EarlierSearch("foreign", [{"depth": 1}], [np.array([0.5])])
    few = EarlierSearch("few", CANDIDATES[:2], [np.array([0.5])] * 2)
    for source in (foreign, few):
        words = f"{source.name}: nothing of it can be used here"
        with pytest.raises(InvalidParameterError, match=words):
            search(prior=[source])
        with pytest.warns(RuntimeWarning, match=f"1 of its 2 searches .*{words}"):
            skipping = search(prior=[source, earlier()])
        assert list(skipping.scheduler.trust_in_prior()) == ["May"]
    with pytest.raises(InvalidParameterError, match="there is no earlier search at"):
        search(prior=[tmp_path / "none.csv", earlier()])


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ([], "prior is an empty list: leave it out, or give at least one"),
        ("", "an earlier search is .* got ''"),
        ({"path": "runs.csv"}, "an earlier search is .* got {'path': 'runs.csv'}"),
    ],
)
def test_what_a_prior_is_not_is_said_with_what_it_is(prior, words):
    with pytest.raises(InvalidParameterError, match=words):
        search(prior=prior)


def test_a_state_made_with_other_earlier_searches_is_refused():
    def made(*searches):
        proposer = PriorProposer.between(CANDIDATES, searches)
        return Scheduler(n_arms=120, budget=50, max_epochs=20, proposer=proposer)

    state = json.loads(json.dumps(made(earlier()).state_dict()))
    made(earlier()).load_state_dict(state)
    for other in (earlier("June"), earlier(sign=-1.0)):
        scheduler = made(other)
        with pytest.raises(RunDirError, match=r"with proposer\.earlier_searches\."):
            scheduler.load_state_dict(state)


def test_other_candidates_than_the_prior_was_for_are_a_state_error(tmp_path):
    search(run_dir=tmp_path, prior=earlier())
    others = [{"depth": depth} for depth in range(9)]
    with pytest.raises(RunDirError, match="give the candidates that it was begun with"):
        RisingSearch(Functions(start, train), others, budget=50, run_dir=tmp_path)

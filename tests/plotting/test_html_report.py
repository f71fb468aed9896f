"""The page holds what the search has found, and nothing that a user wrote gets out."""

import base64
import dataclasses
import hashlib
import json
import math
import re
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy.stats import loguniform, norm, uniform

from risingsearch import Functions, RisingSearch
from risingsearch.arms import Arm, Job, Report
from risingsearch.budget import Budget
from risingsearch.errors import SearchFailedError
from risingsearch.plotting.digest import bounds_of, declared
from risingsearch.plotting.html_report import PROGRAM, write_report
from risingsearch.search.results import History, SearchResult
from risingsearch.space import Configurations, Space
from tests.search.example_search import start

ROOT = Path(__file__).resolve().parents[2]
ALONE = {"meta", "input", "br", "img", "link", "hr"}
HOSTILE = [
    '</script><script>document.title="owned"</script>',
    "<img src=x onerror=\"document.title='owned'\">",
    "\"'><svg onload=alert(1)>",
    "$data ${style} $$",
    "\u2028\u2029 ☃ \ud800 \x00",
]


class Page(HTMLParser):
    """A page as a browser reads it: elements, their attributes and their text."""

    def __init__(self, path):
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.elements, self.open, self.texts = [], [], {}
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in ALONE:
            self.open.append((tag, dict(attrs).get("id", len(self.elements))))

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, text):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(text)

    def of(self, tag):
        return ["".join(texts) for (t, _), texts in self.texts.items() if t == tag]

    @property
    def data(self):
        (text,) = self.texts["script", "data"]
        return json.loads(text)

    @property
    def facts(self):
        facts = {}
        for name, value in zip(self.of("dt"), self.of("dd"), strict=True):
            facts.setdefault(name, value)  # what was searched comes last
        return facts

    @property
    def searched(self):
        return dict(zip(self.of("dt"), self.of("dd"), strict=True))

    @property
    def failures(self):
        cells = [text for text in self.texts if text[0] in ("td", "pre")]
        first = next(k for k, (tag, _) in enumerate(cells) if tag == "pre") - 2
        return ["".join(self.texts[cell]) for cell in cells[first:]]

    def shape(self):
        """Return the elements without what differs from search to search."""
        return [(tag, sorted(attrs)) for tag, attrs in self.elements]


def train(state):
    state["epochs"] += 1
    if state["epochs"] == state.get("fails"):
        raise MemoryError("no room for <b>this</b>")
    score = state["top"] * (1 - 0.8 ** state["epochs"])
    return math.nan if state["epochs"] == state.get("nan") else score


def with_loss(state):
    score = train(state)
    late = {"late": score / 2} if state["epochs"] > 1 else {}
    return {"score": score, "loss": 1 - score, **late}


def search(candidates, trained=train, **options):
    options = {"budget": 60, "max_epochs": 12, "seed": 0, **options}
    return RisingSearch(Functions(start, trained), candidates, **options)


CANDIDATES = [{"top": top / 10, "fails": None} for top in range(1, 10)]


@pytest.fixture(scope="module")
def result():
    return search(CANDIDATES).run()


@pytest.fixture
def page_of(tmp_path):
    def page_of(result, **options):
        return Page(write_report(result, tmp_path / "report.html", **options))

    return page_of


NAMES = [*HOSTILE, "May\nJune\x1b[2J", "\u202eyaM", "a" * 500 + " 1", "a" * 500 + " 2"]


def test_names_of_earlier_searches_stay_text_and_differ(result, page_of):
    trust = {name: k / 100 for k, name in enumerate(NAMES)}
    plain = page_of(dataclasses.replace(result, trust_in_prior={"May": 0.42}))
    page = page_of(dataclasses.replace(result, trust_in_prior=trust))
    said = {name: v for name, v in page.facts.items() if name.startswith("trust in ")}
    assert list(said.values()) == [f"{share:.2f}" for share in trust.values()]
    assert all(name.isprintable() and len(name) < 60 for name in said)
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in plain.elements}
    assert plain.facts["trust in May"] == "0.42"
    assert plain.facts["arms opened by prior"] == "0"
    assert not any("prior" in name for name in page_of(result).facts)


def column(stored):
    return [stored["distinct"][k] for k in stored["at"]]


def made_up(n_arms, n_epochs, params, failure=None):
    """Return a result of any size, made without a search."""
    rng = np.random.default_rng(0)
    history, epochs, job = History(), [0] * n_arms, 0
    while len(history) < n_epochs:
        arm = job if job < n_arms else int(rng.integers(max(1, n_arms // 10)))
        opened = job < n_arms
        for _ in range(4 if opened else 20):
            epochs[arm] += 1
            score = float(rng.normal(0.8, 0.1))
            row = {"arm": arm, "epoch": epochs[arm], "score": score, "seconds": 0.1}
            row |= {"round": len(history) + 1, "job": job}
            row |= {"reason": "opened" if opened else "revived"}
            if not opened:
                row |= {"recent_average": 0.8, "expected_gain": float(rng.random())}
            history.append(row)
        job += 1
    arms = [
        Arm(i, "paused", n, n, 0.8, 0.9, 1, 0, reason="paused: it preferred arm 3")
        for i, n in enumerate(epochs)
    ]
    failures = [Report(Job(0, 1, 1, 10**6), failure=failure)] if failure else []
    return SearchResult(
        *(params(0), 0.9, 1, 0, history, [params(i) for i in range(n_arms)], arms),
        *(len(history), len(history), "spent", "maximize", failures, None, None),
    )


class TestContents:
    def test_the_summary_says_what_was_found_and_what_it_took(self, result, page_of):
        page = page_of(
            result, title="Nine tops", settings={"policy": "auto", "seed": 0}
        )
        assert page.of("title") == page.of("h1") == ["Nine tops"]
        assert page.of("strong") == [f"{result.best_score:.6g}"]
        assert f"arm {result.best_arm}, epoch {result.best_epoch}" in page.source
        opened = [arm for arm in result.arms if arm.status != "unopened"]
        expected = {
            "top": str(result.best_params["top"]),
            "arms opened": f"{len(opened)} of 9",
            "arms finished": str(sum(a.status == "finished" for a in opened)),
            "arms paused": str(sum(a.status == "paused" for a in opened)),
            "arms failed": "0",
            "epochs used": "60",
            "budget": "60 epochs",
            "metric": "score, to maximize",
            "stopped because": "the budget of 60 epochs is spent",
            "policy": "auto",
            "seed": "0",
        }
        assert expected.items() <= page.facts.items()

    def test_the_summary_says_when_and_for_how_long(self, result, page_of):
        timed = dataclasses.replace(
            result, begun="2026-05-03T14:22:10+02:00", wall_seconds=3725.0,
            training_seconds=7450.4, budget=Budget(seconds=7450.0),
        )  # fmt: skip
        expected = {
            "begun": "2026-05-03 14:22:10+02:00",
            "wall-clock time": "1 h 2 min",
            "time in training": "2 h 4 min",
            "budget": "2 h 4 min of training",
        }
        assert expected.items() <= page_of(timed).facts.items()
        unknown = dataclasses.replace(result, begun=None, wall_seconds=math.nan)
        assert not {"begun", "wall-clock time"} & page_of(unknown).facts.keys()

    def test_what_was_searched_is_said_or_read_off_the_candidates(
        self, result, page_of
    ):
        assert page_of(result).searched["top"] == "0.1 to 0.9, 9 values"
        assert page_of(result).searched["fails"] == "None"
        page = page_of(result, space={"top": "uniform, low 0 | 1"})
        assert page.searched["top"] == "uniform, low 0 | 1"

    def test_the_space_is_said_as_it_was_declared(self, page_of, tmp_path):
        space = {
            "top": uniform(0, 0.8),
            "rate": loguniform(1e-4, 1.0),
            "depth": range(2, 5),
            "kind": ["a", "b<c"],
        }
        result = search(space, n_candidates=8, run_dir=tmp_path / "run").run()
        expected = {
            "top": "uniform(0, 0.8)",
            "rate": "loguniform(0.0001, 1)",
            "depth": "2, 3, 4",
            "kind": "a, b<c",
        }
        assert expected.items() <= page_of(result).searched.items()
        saved = RisingSearch.saved_result(tmp_path / "run")
        assert expected.items() <= page_of(saved).searched.items()

    @pytest.mark.parametrize(
        ("distribution", "said"),
        [
            (FloatDistribution(1e-5, 0.1, log=True), "1e-05 to 0.1, log"),
            (IntDistribution(0, 8, step=2), "0 to 8, step 2"),
            (FloatDistribution(-1.5, 0.0), "-1.5 to 0"),
            (CategoricalDistribution(["x", 2.0]), "x, 2"),
            (norm(loc=1.0, scale=0.25), "norm(loc=1, scale=0.25)"),
        ],
    )
    def test_every_kind_of_distribution_has_its_ends(self, distribution, said):
        space = Space.of({"p": distribution})
        assert declared(Configurations([], space)) == {"p": said}

    def test_numbers_have_six_digits_and_the_copied_ones_all(self, page_of):
        candidates = [{"top": 2 / 3, "layers": (64, 32), "n": np.float32(0.5)}]
        page = page_of(search(candidates).run(), settings={"tau": math.pi})
        assert page.facts["top"] == "0.666667"
        assert page.facts["tau"] == "3.14159"
        copied = json.loads(page.data["bestParams"])
        assert copied == {"top": 2 / 3, "layers": [64, 32], "n": 0.5}

    def test_other_metrics_can_be_drawn(self, page_of):
        result = search(CANDIDATES, trained=with_loss).run()
        loss, late = page_of(result).data["others"]
        assert (loss["name"], late["name"]) == ("loss", "late")
        assert loss["values"] == pytest.approx(result.history["loss"], rel=1e-5)
        first = [row["epoch"] == 1 for row in result.history]
        assert [value is None for value in late["values"]] == first

    def test_what_full_training_would_have_cost_stands_beside_what_was_spent(
        self, result, page_of
    ):
        page = page_of(result)
        n_opened = len(result.curves)
        cells = page.of("td")
        assert cells[0] == "60"
        assert cells[3] == f"{12 * n_opened:,}"
        times = f"{12 * n_opened / 60:.1f} times as many epochs"
        assert times in "".join(page.of("p"))

    def test_the_best_score_so_far_is_drawn_against_epochs_and_time(
        self, result, page_of
    ):
        [group] = json.loads(page_of(result).of("script")[0])["progress"]
        assert [(chart["x"], chart["y"]) for chart in group["charts"]] == [
            ("epochs spent", "best score so far"),
            ("seconds of wall-clock time", "best score so far"),
            ("seconds in training, all workers", "best score so far"),
        ]
        epochs, best = zip(*group["charts"][0]["lines"][0], strict=True)
        assert (epochs[-1], best[-1]) == (result.n_epochs, result.best_score)
        assert list(best) == sorted(best)

    def test_what_matters_is_named_and_its_axis_comes_first(self, page_of):
        candidates = [
            {"rate": 10 ** (k / 10 - 4), "kind": "ab"[k % 2], "top": 7 * k % 40 / 40}
            for k in range(40)
        ]
        result = search(candidates, budget=200).run()
        page = page_of(result)
        assert page.data["mattering"][0] == "top"
        assert page.data["scales"] == ["log", "categories", "linear"]
        (row,) = (text for text in page.of("td") if text.endswith("%)"))
        assert re.fullmatch(r"\d+ % \(\d+ to \d+ %\)", row)
        assert any(text.startswith("none seen") for text in page.of("td"))
        assert not any("\N{MINUS SIGN}" in text for text in page.of("td"))
        assert "any two are compared by their best score" in "".join(page.of("details"))

    def test_arms_that_a_prior_opened_are_marked(self, result, page_of):
        page = page_of(search(CANDIDATES, prior=result).run())
        rows = page.data["recorded"]
        marks = zip(rows["arm"], rows["marks"], strict=True)
        marked = {arm for arm, mark in marks if mark == "8"}
        assert marked == set(search(CANDIDATES, prior=result).run().opened_by_prior)
        assert marked
        assert page.data["hasPrior"]
        assert not page_of(result).data["hasPrior"]

    def test_every_epoch_is_there_in_the_order_told(self, result, page_of):
        rows = page_of(result).data["recorded"]
        assert rows["arm"] == result.history["arm"]
        assert rows["epoch"] == result.history["epoch"]
        assert rows["score"] == pytest.approx(result.history["score"], rel=1e-8)

    def test_the_table_holds_every_arm(self, result, page_of):
        data = page_of(result).data
        assert column(data["arms"]["status"]) == [arm.status for arm in result.arms]
        ended = f"; {result.stop_reason}"  # which the summary says of all
        reasons = [arm.reason.replace(ended, "") for arm in result.arms]
        assert column(data["arms"]["why"]) == reasons
        assert data["arms"]["epochs"] == [arm.epochs for arm in result.arms]
        best = [None if math.isnan(a.best_score) else a.best_score for a in result.arms]
        assert data["arms"]["best"] == pytest.approx(best, rel=1e-8)
        tops, fails = data["params"]
        assert (tops["name"], fails["name"]) == ("top", "fails")
        assert column(tops) == [params["top"] for params in CANDIDATES]
        assert column(fails) == ["None"] * 9

    def test_a_parameter_that_an_arm_lacks_is_empty(self, page_of):
        result = search([{"top": 0.5}, {"top": 0.4, "extra": True}]).run()
        assert column(page_of(result).data["params"][1]) == [None, "True"]

    @pytest.mark.parametrize(
        ("value", "shown"),
        [
            (3, 3),
            (np.float32(0.5), 0.5),
            (2**60, str(2**60)),
            (math.nan, "nan"),
            ("two\n lines", "two lines"),
            ((1, "a"), "(1, 'a')"),
            ("w" * 900, "w" * 199 + "…"),
        ],
    )
    def test_a_parameter_is_a_number_or_a_short_text(self, page_of, value, shown):
        result = made_up(1, 4, lambda _: {"p": value})
        assert column(page_of(result).data["params"][0]) == [shown]


class TestProjections:
    @pytest.mark.parametrize("direction", ["maximize", "minimize"])
    def test_they_are_those_of_the_last_choice(self, page_of, direction):
        sign = 1 if direction == "maximize" else -1
        candidates = [{"top": sign * top / 10} for top in range(1, 10)]
        result = search(candidates, direction=direction).run()
        drawn = page_of(result, settings={"max_epochs": 12}).data["projections"]
        chosen = {}
        for row in result.history:
            if "expected_gain" in row:
                chosen.setdefault(row["arm"], {})[row["job"]] = row
        assert {arm for arm, *_ in drawn} == set(chosen)
        for arm, epoch, level, end, score in drawn:
            jobs = chosen[arm]
            row = jobs[max(jobs)]
            first = next(r for r in result.history if r["job"] == row["job"])
            assert epoch == first["epoch"] - 1
            assert end == min(12, epoch + 60 - first["round"] + 1)
            assert level == sign * row["recent_average"]
            assert score == sign * (row["recent_average"] + row["expected_gain"])

    @pytest.mark.parametrize(
        ("metric", "scale", "shift", "bounds"),
        [
            ("accuracy", 1.0, 0.0, (0.0, 1.0)),
            ("top-1 accuracy", 100.0, 0.0, (0.0, 100.0)),
            ("neg_log_loss", 1.0, -1.0, (-math.inf, 0.0)),
            ("return", 100.0, 0.0, (0.0, math.inf)),
        ],
    )
    def test_they_stay_within_the_bounds_of_the_metric(
        self, page_of, metric, scale, shift, bounds
    ):
        def rising(state):
            state["epochs"] += 1
            return scale * min(0.99, state["top"] * state["epochs"] / 6) + shift

        tops = [{"top": top / 10} for top in range(1, 10)]
        result = search(tops, rising, max_epochs=40, metric=metric, budget=40).run()
        ends = [end for *_, end in page_of(result).data["projections"]]
        assert bounds_of(result) == bounds
        assert min(ends) >= bounds[0]
        assert max(ends) <= bounds[1]
        beyond = [
            row["recent_average"] + row["expected_gain"]
            for row in result.history
            if "expected_gain" in row
        ]
        assert max(beyond) > scale + shift


class TestFailures:
    def test_none(self, result, page_of):
        assert "None." in page_of(result).of("td")

    def test_their_text_arm_and_epoch_are_there(self, page_of):
        result = search([{"top": 0.9, "fails": 2}, *CANDIDATES]).run()
        page = page_of(result)
        assert page.of("pre") == ["MemoryError: no room for <b>this</b>"]
        assert page.failures[0] == "0"
        assert page.failures[1].startswith("2")
        assert page.facts["arms failed"] == "1"
        assert "1 failure: MemoryError 1." in page.of("p")
        lost = [int(mark) & 4 for mark in page.data["recorded"]["marks"]]
        assert sum(lost) == 4 * sum("failure" in row for row in result.history)

    def test_those_of_a_saved_run_keep_their_types_and_are_counted(
        self, page_of, tmp_path
    ):
        kinds = {1: KeyError, 2: TimeoutError}

        def failing(state):
            if state["kind"]:
                raise kinds[state["kind"]]("no <b>")
            return 1.0

        candidates = [{"top": 0.5, "kind": kind} for kind in (0, 1, 2, 2, 1, 2)]
        run_dir = tmp_path / "run"
        search(candidates, failing, policy="round-robin", run_dir=run_dir).run()
        page = page_of(RisingSearch.saved_result(run_dir))
        assert "5 failures: TimeoutError 3, KeyError 2." in page.of("p")

    def test_a_score_that_is_not_finite_is_one(self, page_of):
        result = search([{"top": 0.9, "nan": 1}, *CANDIDATES]).run()
        page = page_of(result)
        assert page.of("pre") == ["the score is nan"]
        assert "1 failure: no finite score 1." in page.of("p")
        assert page.data["recorded"]["score"].count(None) == 1


class TestSmallSearches:
    def test_before_the_first_epoch(self, page_of):
        page = page_of(search(CANDIDATES).result())
        assert "No epoch has been recorded: stopped before its end." in page.of("p")
        assert page.facts["arms opened"] == "0 of 9"
        assert not any(page.data["recorded"].values())
        assert page.data["bestArm"] is None

    def test_no_score_at_all(self, page_of):
        stopped = search([{"top": math.nan}], budget=3)
        with pytest.raises(SearchFailedError, match="has a finite score"):
            stopped.run()
        page = page_of(stopped.result())
        data = page.data
        why = "No epoch has had a finite score. The failure: the score is nan"
        assert why in page.of("p")
        assert data["recorded"]["score"] == [None]
        assert data["arms"]["best"] == data["arms"]["bestEpoch"] == [None]

    def test_lower_is_better(self, page_of):
        result = search([{"top": -0.5}, {"top": -0.9}], direction="minimize").run()
        data = page_of(result).data
        assert data["maximize"] is False
        assert data["bestArm"] == 1


class TestSafety:
    @pytest.mark.parametrize("text", HOSTILE)
    def test_a_text_stays_in_its_place(self, page_of, text):
        plain = made_up(2, 12, lambda _: {"p": "v"}, ValueError("v"))
        plain = dataclasses.replace(plain, begun="now")
        hostile = made_up(2, 12, lambda _: {text: text}, ValueError(text))
        arms = [dataclasses.replace(arm, reason=text) for arm in hostile.arms]
        said = dict.fromkeys(("stop_reason", "metric", "begun"), text)
        hostile = dataclasses.replace(hostile, arms=arms, other_metrics=[text], **said)
        usual = page_of(plain, title="t", settings={"s": "v"})
        page = page_of(hostile, title=text, settings={text: text})
        assert page.shape() == usual.shape()
        assert page.open == usual.open == []
        (param,) = page.data["params"]
        one_line = " ".join(text.split())
        assert param["name"] == column(param)[0] == one_line
        assert column(page.data["arms"]["why"])[0] == one_line
        (other,) = page.data["others"]
        assert other["name"] == page.data["metric"]
        assert len(other["name"]) <= 40
        assert other["name"].isprintable()
        if text.isprintable():
            assert page.of("h1") == [one_line]
            assert page.facts[one_line] == one_line
            assert page.of("pre") == [f"ValueError: {text}"]

    def test_only_its_own_style_and_program_are_allowed(self, result, page_of):
        page = page_of(result)
        (policy,) = (
            attrs["content"]
            for tag, attrs in page.elements
            if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
        )
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == rules["base-uri"] == "'none'"
        for tag, rule in (("style", "style-src"), ("script", "script-src")):
            digest = hashlib.sha256(page.of(tag)[-1].encode()).digest()
            assert rules[rule] == f"'sha256-{base64.b64encode(digest).decode()}'"

    def test_nothing_is_asked_of_any_other_place(self, result, page_of):
        page = page_of(result)
        assert not re.search(r"(https?:)?//\w+\.\w", page.source)
        assert not re.search(r"url\(|@import|fetch\(|XMLHttp|import\(", page.source)
        assert not {"link", "img", "iframe", "object", "base"} & {
            tag for tag, _ in page.elements
        }
        for _, attrs in page.elements:
            assert not {"src", "href", "style", "action"} & set(attrs)
            assert not any(name.startswith("on") for name in attrs)

    def test_the_program_writes_text_never_html(self):
        folder = resources.files("risingsearch.plotting") / "page"
        program = "".join((folder / name).read_text() for name in PROGRAM)
        assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|eval",
                             program)  # fmt: skip
        assert "</script" not in program
        assert "<!--" not in program


class TestFile:
    def test_a_large_search_fits_into_a_mail(self, tmp_path):
        def params(i):
            return {"lr": 0.1 / (i + 1), "layers": i % 7, "optimizer": "adam" * (i % 3)}

        result = made_up(1000, 20_000, params)
        path = write_report(result, tmp_path / "large.html")
        assert len(result.history) == 20_000
        assert path.stat().st_size < 1_000_000

    def test_a_thousand_arms_take_less_than_300_kb(self, tmp_path):
        rng = np.random.default_rng(1)
        values = [
            {name: float(rng.random()) for name in ("lr", "decay", "dropout")}
            | {"width": 16 * (i % 5), "kind": "ab"[i % 2]}
            for i in range(1000)
        ]
        result = made_up(1000, 6000, values.__getitem__)
        path = write_report(result, tmp_path / "page.html")
        assert path.stat().st_size < 300_000

    def test_the_same_result_gives_the_same_bytes(self, result, tmp_path):
        one, two = (
            write_report(result, str(tmp_path / name)).read_bytes()
            for name in ("one.html", "two.html")
        )
        assert one == two


class TestAccessibility:
    def test_sections_figures_and_fields_have_names(self, result, page_of):
        page = page_of(result)
        ids = {attrs["id"] for _, attrs in page.elements if "id" in attrs}
        for tag, attrs in page.elements:
            if tag == "section" or attrs.get("role") == "group":
                assert attrs["aria-labelledby"] in ids
        assert ("html", {"lang": "en"}) in page.elements
        assert len([attrs for _, attrs in page.elements if "id" in attrs]) == len(ids)

"""A notebook shows the best arms, in HTML without scripts."""

import math
import re
from html.parser import HTMLParser

import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.plotting.fragment import search_html

HOSTILE = '</table><script>alert("1")</script><img src=x onerror=alert(1)>'


class Shown(HTMLParser):
    def __init__(self, source):
        super().__init__()
        self.tags, self.texts, self.attrs = [], [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs += attrs

    def handle_data(self, data):
        self.texts.append(data)


def train(state):
    state["epochs"] = state.get("epochs", 0) + 1
    return state["top"] * (1 - 0.8 ** state["epochs"])


@pytest.fixture
def search():
    candidates = [{"top": top / 10, "kind": "a"} for top in range(1, 10)]
    functions = Functions(lambda params, seed: dict(params), train)
    return RisingSearch(functions, candidates, budget=40, max_epochs=12, seed=0)


def cells(html):
    row = re.search("<tbody><tr>(.*?)</tr>", html)[1]
    return re.findall("<td>(.*?)</td>", row)


def history(n_arms, n_epochs, score=lambda arm, epoch: arm + epoch / 100):
    return [
        {"arm": arm, "epoch": epoch, "score": score(arm, epoch)}
        for arm in range(n_arms)
        for epoch in range(1, n_epochs + 1)
    ]


OPTIONS = {"direction": "maximize", "metric": "score", "spent": "some epochs used"}


def test_a_result_shows_its_best_arm_first(search):
    result = search.run()
    html = result._repr_html_()
    assert cells(html) == [
        str(result.best_arm),
        f"{result.best_score:.6g}",
        f"{result.best_epoch} of {result.arms[result.best_arm].epochs}",
        f"{result.best_params['top']:.6g}",
        "a",
    ]
    assert "40 epochs used of a budget of 40 epochs" in html


def test_a_search_shows_where_it_stands(search):
    assert "No score yet: 0 of 9 arms opened" in search._repr_html_()
    result = search.run()
    assert search._repr_html_() == result._repr_html_()


def test_lower_can_be_better():
    rows = history(3, 2)
    html = search_html(rows, [{}] * 3, **OPTIONS | {"direction": "minimize"})
    assert cells(html) == ["0", "0.01", "1 of 2"]


def test_of_equal_scores_the_first_to_reach_it_is_the_best():
    rows = history(2, 1, lambda arm, epoch: 0.5)[::-1]
    assert cells(search_html(rows, [{}] * 2, **OPTIONS))[0] == "1"


def test_epochs_without_a_score_are_left_out():
    rows = history(2, 3, lambda arm, epoch: math.nan if arm else 0.5)
    html = search_html(rows, [{}] * 2, **OPTIONS)
    assert "nan" not in html
    assert "2 of 2 arms opened" in html


def test_a_large_search_stays_small():
    rows = history(500, 100)
    params = [{f"p{k}": 0.123456789 * arm for k in range(30)} for arm in range(500)]
    html = search_html(rows, params, **OPTIONS)
    assert len(html) < 20_000
    assert "20 parameters more are not shown." in html


def test_nothing_in_it_runs_or_asks_for_anything():
    params = [{HOSTILE: HOSTILE}] * 2
    options = OPTIONS | {"metric": HOSTILE, "spent": HOSTILE}
    shown = Shown(search_html(history(2, 3), params, **options))
    assert not {"script", "img", "link", "style", "iframe"} & set(shown.tags)
    names = {name for name, _ in shown.attrs}
    assert not {"src", "href", "style"} & names
    assert not any(name.startswith("on") for name in names)
    assert any("<script>" in text for text in shown.texts)

"""Several searches are laid side by side, and nothing that a user wrote gets out."""

import json
import re

import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.errors import InvalidParameterError
from risingsearch.plotting.comparison import write_comparison
from risingsearch.plotting.words import NOTHING

HOSTILE = '</title><script>alert("1")</script>'


def train(state):
    state["epochs"] = state.get("epochs", 0) + 1
    return state["top"] * (1 - 0.8 ** state["epochs"])


def searched(best, **options):
    candidates = [{"top": top, "kind": "a", "best": best} for top in (0.1, 0.5, best)]
    functions = Functions(lambda params, seed: dict(params), train)
    options = {"budget": 20, "max_epochs": 9, "seed": 0, **options}
    return RisingSearch(functions, candidates, **options).run()


@pytest.fixture(scope="module")
def results():
    return {"May": searched(0.8), "June": searched(0.9, budget=25)}


@pytest.fixture
def page_of(tmp_path):
    def page_of(results, **options):
        return write_comparison(results, tmp_path / "page.html", **options).read_text()

    return page_of


def row(page, name):
    cells = re.search(rf'<th scope="row">{name}</th>(.*?)</tr>', page)[1]
    return re.findall("<td>(.*?)</td>", cells)


def test_what_each_has_found_stands_side_by_side(results, page_of):
    page = page_of(results, settings={"June": {"policy": "asha"}})
    assert row(page, "best") == [f"{r.best_score:.6g}" for r in results.values()]
    assert row(page, "epochs used") == ["20", "25"]
    assert row(page, "budget") == ["20 epochs", "25 epochs"]
    assert row(page, "policy") == [NOTHING, "asha"]


def test_the_parameters_in_which_the_winners_differ_are_listed(results, page_of):
    page = page_of(results)
    assert row(page, "top") == ["0.8", "0.9"]
    assert "The same in all: kind a." in page
    assert '<th scope="row">kind</th>' not in page
    same = page_of({"one": results["May"], "two": results["May"]})
    assert "They do not differ." in same


def progress_in(page):
    return json.loads(re.search(r'id="data">(.*?)</script>', page)[1])["progress"]


def test_searches_with_one_metric_share_their_charts(results, page_of):
    [group] = progress_in(page_of(results))
    assert group["names"] == ["May", "June"]
    assert {len(chart["lines"]) for chart in group["charts"]} == {2}
    both = progress_in(page_of({**results, "other": searched(0.7, metric="loss")}))
    assert [group["charts"][0]["y"] for group in both] == [
        "best score so far",
        "best loss so far",
    ]


def test_every_search_has_its_best_arms(results, page_of):
    page = page_of(results)
    assert page.count("<details>") == page.count('class="risingsearch"') == 2


def test_one_without_a_score_is_there(results, page_of):
    functions = Functions(lambda params, seed: {}, train)
    empty = RisingSearch(functions, [{"top": 1}], budget=3).result()
    assert row(page_of({**results, "new": empty}), "best")[2] == NOTHING
    assert progress_in(page_of({"new": empty, "too": empty})) == []


def test_names_and_texts_are_escaped(page_of):
    hostile = searched(0.9, metric=HOSTILE)
    page = page_of(
        {HOSTILE: hostile, "b": hostile},
        title=HOSTILE,
        settings={"b": {HOSTILE: HOSTILE}},
    )
    assert page.count("<script") == 2
    assert "alert(" not in re.sub(
        r"&lt;script&gt;alert\(|u003cscript.u003ealert\(", "", page
    )
    assert not re.search(r"(https?:)?//\w+\.\w|url\(|@import", page)
    assert not re.search(r"<[^>]+ (style|src|href|on\w+)=", page)


def test_one_search_is_no_comparison(results, tmp_path):
    with pytest.raises(InvalidParameterError, match="at least two searches; got 1"):
        write_comparison({"May": results["May"]}, tmp_path / "page.html")

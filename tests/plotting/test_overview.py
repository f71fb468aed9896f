"""The page that shows several runs side by side."""

import base64
import hashlib
import math
import re
from types import SimpleNamespace

import pytest

from risingsearch.plotting.overview import HEIGHT, WIDTH, Row, note_page, overview_page
from risingsearch.plotting.spending import spending_of
from risingsearch.search.results import History


def result(scores, **facts):
    defaults = {"metric": "accuracy", "direction": "maximize", "best_arm": 0}
    history = History(
        {"arm": 0, "job": k, "score": score, "seconds": 1.0}
        for k, score in enumerate(scores)
    )
    defaults |= {"returned_at": {}}
    best = {"best_score": max(scores, default=math.nan), "best_epoch": 1}
    return SimpleNamespace(history=history, **defaults | best | facts)


def row(title, found, share=0.5):
    words = f"{title} goes on"
    return Row(title, f"{title}/", "running", words, share, found, curve_of(found))


def curve_of(found):
    """Return the best score so far of a result, None before anything is written."""
    return [] if found is None else spending_of(found).progress().by_epochs


def overview(*rows):
    return overview_page("All", rows, "comparison/")


def drawn(page):
    """Return the points of every drawing."""
    return [
        [tuple(map(float, point.split(","))) for point in points.split()]
        for points in re.findall(r'<polyline points="(.*?)"', page)
    ]


def test_every_run_has_a_link_its_best_score_and_how_it_is_doing():
    page = overview(row("a", result([0.2, 0.7])), row("b", result([0.4])))
    for title, best in (("a", "0.7"), ("b", "0.4")):
        assert f'<a href="{title}/" target="_top">{title}</a>' in page
        assert f"<strong>{best}</strong>" in page
        assert f"{title} goes on" in page
    assert page.count('value="0.5000"') == 2


def test_the_best_score_so_far_never_falls_and_ends_at_the_last_epoch():
    (points,) = drawn(overview(row("a", result([0.2, math.nan, 0.7, 0.3]))))
    heights = [y for _, y in points]
    assert heights == sorted(heights, reverse=True)  # y counts from the top
    assert points[-1][0] == WIDTH
    assert all(0 <= y <= HEIGHT for y in heights)


def test_lower_scores_are_better_where_the_search_says_so():
    found = result([0.9, 0.4, 0.6], direction="minimize", best_score=0.4)
    (points,) = drawn(overview(row("a", found)))
    heights = [y for _, y in points]
    assert heights == sorted(heights)  # y counts from the top
    assert heights[0] < heights[-1]


def test_runs_of_one_metric_are_drawn_on_one_scale():
    short, long = result([0.5]), result([0.1, 0.5, 0.9, 0.9])
    page = overview(row("a", short), row("b", long))
    (only,), points = drawn(page)
    assert "all on one scale" in page
    assert only[0] == WIDTH / 4
    assert only[1] in {y for _, y in points}


def test_runs_of_different_metrics_are_not():
    others = [result([0.5]), result([3.0, 9.0], metric="loss", direction="minimize")]
    page = overview(*[row(str(k), one) for k, one in enumerate(others)])
    assert "each on a scale of its own" in page
    assert drawn(page)[0][-1][0] == drawn(page)[1][-1][0] == WIDTH


def test_a_long_search_is_drawn_with_few_points():
    scores = [k / 9000 for k in range(9000)]
    (points,) = drawn(overview(row("a", result(scores))))
    assert len(points) < 400
    assert points[-1][0] == WIDTH


@pytest.mark.parametrize("found", [None, result([], best_arm=None)])
def test_a_run_without_a_score_is_shown_without_a_drawing(found):
    page = overview(row("a", found))
    assert "a goes on" in page
    assert drawn(page) == []


def test_what_a_user_wrote_is_escaped():
    found = result([0.5], metric="<i>loss")
    rows = [Row("<b>", '"x', "running", "<s>", 0.1, found, curve_of(found))]
    page = overview_page("<u>", rows, '"y')
    for tag in ("<u>", "<b>", "<s>", "<i>", 'href=""x"', 'href=""y"'):
        assert tag not in page


def test_the_policy_allows_the_style_and_nothing_else():
    for page in (overview(row("a", None)), note_page("a", "nothing yet")):
        (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
        policy = re.search(
            r'http-equiv="Content-Security-Policy" content="(.*?)"', page
        )
        assert policy[1] == (
            f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
            "form-action 'none'"
        )
        assert "<script" not in page


def test_a_note_says_why_there_is_nothing():
    assert "line 2 is <damaged>".replace("<", "&lt;").replace(">", "&gt;") in note_page(
        "run", "line 2 is <damaged>"
    )

"""The pages in a real browser: how they fit, what they ask for, how they keep up."""

import csv
import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.plotting.html_report import write_report
from tests.search.example_search import start

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from risingsearch.cli.main import main; sys.exit(main())"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
LIMITS = {"budget": 90, "max_epochs": 9, "epochs_per_job": 1}
SHOWN = """() => ({
  fits: document.documentElement.scrollWidth <= document.documentElement.clientWidth,
  colour: getComputedStyle(document.body).backgroundColor,
  charts: document.querySelectorAll(".progress svg.rs-chart path").length,
})"""
INSIDE = """name => {
  const chart = charts.find(({ box }) => box.id === name);
  const xs = [...chart.x].map((x, i) => [x, chart.y[i]]).filter(([x]) => x === x);
  const { width } = chart, height = chart.height(width);
  const inside = ([x, y]) => x > 0 && x < width && y > 0 && y < height;
  return [xs.length, xs.filter(inside).length];
}"""
CHOSEN = "() => [order.column.name, charts[0].at, document.activeElement.tagName]"
DRAWN = """n => {
  const data = document.getElementById("data");
  return data && JSON.parse(data.textContent).recorded.arm.length === n;
}"""


def train(state):
    state["epochs"] += 1
    if state["rate"] == 0.25 and state["epochs"] == 2:
        raise ArithmeticError("the loss of this configuration is not finite")
    return state["rate"] * (1 - 0.7 ** state["epochs"])


def a_search(run_dir):
    candidates = [
        {"rate": k / 40, "a_parameter_with_a_long_name": k % 7, "kind": f"kind-{k % 3}"}
        for k in range(1, 31)
    ]
    trainable = Functions(start, train)
    return RisingSearch(trainable, candidates, seed=0, run_dir=run_dir, **LIMITS)


def trained_on(search, n_epochs):
    """Train until so many epochs are told, and return the result."""
    search.callbacks = [lambda epoch: epoch.number >= n_epochs and epoch.stop()]
    return search.run()


@pytest.fixture(scope="module")
def chromium():
    """Return a browser that is on this machine."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser to show the pages in: install one of {BROWSERS}")
    from playwright.sync_api import sync_playwright  # nox -s slow installs it

    with sync_playwright() as playwright:
        options = {"executable_path": path, "args": ["--no-sandbox"]}
        with playwright.chromium.launch(**options) as browser:
            yield browser


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folder of a search that goes on, of one at its end, and its report."""
    folder = tmp_path_factory.mktemp("runs")
    trained_on(a_search(folder / "going-on"), 40)
    result = a_search(folder / "at-its-end").run()
    write_report(result, folder / "report.html", title="The report")
    return folder


@pytest.fixture(scope="module")
def url(runs):
    """Return where both runs are served."""
    arguments = ["report", str(runs)]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments, "--watch"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def tab(browser, place, **options):
    """Yield a tab that may say nothing in its console, and ask nobody else."""
    with browser.new_context(**options) as context:
        page, said, asked = context.new_page(), [], []
        page.set_default_timeout(300_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(place)
        yield page
        assert said == []
        assert [one for one in asked if not one.startswith(place)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_every_page_fits_and_has_the_system_colours(chromium, url, runs, width, scheme):
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    report = (runs / "report.html").as_uri()
    for place in (url, f"{url}0/", f"{url}1/", report):
        with tab(chromium, place, **view) as page:
            shown = page.evaluate(SHOWN)
            assert shown["fits"], place
            assert shown["charts"] > 5, place
            red = int(shown["colour"].partition("(")[2].split(",")[0])
            assert (red < 128) == (scheme == "dark"), place


def test_a_new_epoch_appears_and_the_view_stays(chromium, url, runs):
    with tab(chromium, f"{url}1/") as page:
        page.wait_for_function(DRAWN, arg=40)
        page.fill("#filter", "kind-1")
        page.click("#arms th:nth-child(4) button")
        page.mouse.move(0, 0)  # or it points at what the page scrolls under it
        page.focus("#strip canvas")
        page.keyboard.press("ArrowDown")
        page.evaluate("scrollTo(0, 200)")
        chosen = page.evaluate(CHOSEN)
        assert (chosen[0], chosen[2]) == ("at epoch", "CANVAS")
        trained_on(a_search(runs / "going-on"), 41)
        page.wait_for_function(DRAWN, arg=41)
        page.wait_for_function("() => scrollY === 200")
        assert page.input_value("#filter") == "kind-1"
        assert page.evaluate(CHOSEN) == chosen
        assert page.locator("#arms tbody tr").count()


def test_the_comparison_leads_to_each_run(chromium, url):
    with tab(chromium, url) as page:
        assert "going-on" in page.inner_text("table")
        page.get_by_role("link", name="at-its-end").click()
        page.wait_for_url(f"{url}0/")
        assert page.inner_text("h1") == "at-its-end"


def test_a_finger_moves_the_axes_until_the_score_is_seen(chromium, url):
    phone = {"viewport": {"width": 390, "height": 900}, "has_touch": True}
    with tab(chromium, f"{url}0/", **phone) as page:
        page.locator("#parallel").scroll_into_view_if_needed()
        y = page.locator("#parallel").bounding_box()["y"] + 200
        finger = page.context.new_cdp_session(page)
        for x in range(300, 100, -10):
            kind = "touchStart" if x == 300 else "touchMove"
            touch = {"type": kind, "touchPoints": [{"x": x, "y": y}]}
            finger.send("Input.dispatchTouchEvent", touch)
        page.wait_for_function("() => find('parallel').scrollLeft > 0")


def test_the_list_shows_state_best_score_and_curve_of_a_folder_of_runs(chromium, url):
    with tab(chromium, url) as page:
        rows = page.locator("table").first.locator("tbody tr")
        assert rows.nth(0).inner_text().split()[:3] == [
            "at-its-end",
            "finished",
            "score",
        ]
        assert rows.nth(2).inner_text().split()[:2] == ["going-on", "stopped"]
        assert rows.nth(0).locator("svg[aria-label^='best score so far'] path").count()


def test_dots_are_reached_by_keyboard_and_the_map_by_its_choices(chromium, runs):
    with tab(chromium, (runs / "report.html").as_uri()) as page:
        assert page.locator("#slices canvas[tabindex]").count() == 3
        page.focus("#slice-0 canvas")
        page.keyboard.press("ArrowDown")
        best = page.evaluate("data.bestArm")
        assert page.inner_text("#tip strong").startswith(f"arm {best}, epoch ")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        chosen = page.evaluate("state.selected")
        assert chosen == page.evaluate("ranked[1]")
        assert page.locator(f"tr.selected[data-arm='{chosen}']").count() == 1
        before = page.evaluate("charts.find(({box}) => box.id === 'map').across.name")
        page.select_option("#map-across", "2")
        after = page.evaluate("charts.find(({box}) => box.id === 'map').across.name")
        assert (before, after) == ("rate", "kind")


def test_every_dot_and_block_lies_within_its_figure(chromium, runs):
    with tab(chromium, (runs / "report.html").as_uri()) as page:
        for name in ("slice-0", "slice-2", "map", "spread"):
            drawn, inside = page.evaluate(INSIDE, name)
            assert drawn == inside == page.evaluate("ranked.length"), name


def test_the_table_is_downloaded_as_shown_and_the_best_copied(chromium, runs):
    with tab(chromium, (runs / "report.html").as_uri()) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.fill("#filter", "kind-1")
        with page.expect_download() as download:
            page.click("#csv")
        assert download.value.suggested_filename == "The report.csv"
        rows = list(
            csv.DictReader(Path(download.value.path()).read_text().splitlines())
        )
        shown = page.locator("#arms [data-arm] th").all_inner_texts()
        assert [row["arm"] for row in rows] == shown
        assert {row["kind"] for row in rows} == {"kind-1"}
        assert rows[0]["why it waits"] == page.locator(".why").first.inner_text()
        page.click("#copy")
        page.wait_for_function("find('copy').textContent === 'Copied as JSON'")
        copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
        assert copied == page.evaluate("Object.fromEntries(paramsOf(data.bestArm))")


@pytest.mark.parametrize("width", [390, 1400])
def test_the_reason_of_an_arm_is_read_without_scrolling(chromium, runs, width):
    view = {"viewport": {"width": width, "height": 900}}
    with tab(chromium, (runs / "report.html").as_uri(), **view) as page:
        for box in page.locator(".why div").all()[:5]:
            place = box.bounding_box()
            assert place["x"] >= 0
            assert place["x"] + place["width"] <= width
            assert box.evaluate("box => box.scrollWidth <= box.clientWidth")


@pytest.mark.parametrize("dark", [False, True])
def test_the_worst_and_the_best_score_stand_out_from_the_ground(chromium, runs, dark):
    with tab(chromium, (runs / "report.html").as_uri()) as page:
        ground = 0.0 if dark else 1.0
        for share in (0, 0.5, 1):
            colour = page.evaluate("([s, d]) => ramp(s, d)", [share, dark])
            levels = [int(level) / 255 for level in colour[4:-1].split(",")]
            linear = [((level + 0.055) / 1.055) ** 2.4 for level in levels]
            light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
            low, high = sorted([light, ground])
            assert (high + 0.05) / (low + 0.05) > 2.5, (share, colour)

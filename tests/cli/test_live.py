"""The pages in a real browser: how they fit, what they ask for, how they keep up."""

import shutil
import subprocess
import sys
from contextlib import contextmanager

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
    arguments = ["report", str(runs / "going-on"), str(runs / "at-its-end")]
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
    with tab(chromium, f"{url}0/") as page:
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
        page.wait_for_url(f"{url}1/")
        assert page.inner_text("h1") == "at-its-end"


def test_a_finger_moves_the_axes_until_the_score_is_seen(chromium, url):
    phone = {"viewport": {"width": 390, "height": 900}, "has_touch": True}
    with tab(chromium, f"{url}1/", **phone) as page:
        page.locator("#parallel").scroll_into_view_if_needed()
        y = page.locator("#parallel").bounding_box()["y"] + 200
        finger = page.context.new_cdp_session(page)
        for x in range(300, 100, -10):
            kind = "touchStart" if x == 300 else "touchMove"
            touch = {"type": kind, "touchPoints": [{"x": x, "y": y}]}
            finger.send("Input.dispatchTouchEvent", touch)
        page.wait_for_function("() => find('parallel').scrollLeft > 0")

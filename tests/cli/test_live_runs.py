"""The pages in a real browser: how they fit, what they ask for, how they keep up."""

import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from risingsearch import Functions, RisingSearch
from risingsearch.plotting.html_report import write_report

PROGRAM = "import sys; from risingsearch.cli.main import main; sys.exit(main())"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SHOWN = """isServed => {  // in one step, since a frame gives way to a newer one
  const frame = document.querySelector("iframe:not(.coming)");
  if (isServed && !(frame && frame.contentDocument.body)) return null;
  const pages = isServed ? [document, frame.contentDocument] : [document];
  const last = pages.at(-1);
  return {
    fits: pages.every(
      ({documentElement: page}) => page.scrollWidth <= page.clientWidth
    ),
    colour: last.defaultView.getComputedStyle(last.body).backgroundColor,
  };
}"""
DRAWN = """n => {
  const frame = document.querySelector("iframe:not(.coming)");
  const data = frame && frame.contentDocument.getElementById("data");
  return data && JSON.parse(data.textContent).told.arm.length === n;
}"""


def start(params, seed):
    return {"epochs": 0, **params}


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
    return RisingSearch(
        Functions(start, train),
        candidates,
        budget=90,
        max_epochs=9,
        seed=0,
        epochs_per_job=1,
        run_dir=run_dir,
    )


def trained_on(search, n_epochs):
    """Train until so many epochs are told, and return the result."""

    def stop(search, report):
        if search.scheduler.n_epochs >= n_epochs:
            search.stop()

    search.callbacks = [stop]
    return search.run()


@pytest.fixture(scope="module")
def chromium():
    """Return a browser that is on this machine."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser to show the pages in: install one of {BROWSERS}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        with browser:
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
    arguments = ["serve", str(runs / "going-on"), str(runs / "at-its-end")]
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, text=True
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
        page.set_default_timeout(3_600_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(place)
        yield page
        assert said == []
        assert [one for one in asked if not one.startswith(place)] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
def test_every_page_fits_and_has_the_colours_of_the_system(
    chromium, url, runs, width, scheme
):
    view = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    report = Path(runs, "report.html").as_uri()
    for place in (url, f"{url}0/", f"{url}1/", f"{url}comparison/", report):
        with tab(chromium, place, **view) as page:
            shown = page.wait_for_function(SHOWN, arg=place != report).json_value()
            assert shown["fits"], place
            red = int(shown["colour"].partition("(")[2].split(",")[0])
            assert (red < 128) == (scheme == "dark"), place


def test_an_epoch_appears_without_a_reload(chromium, url, runs):
    with tab(chromium, f"{url}0/") as page:
        page.wait_for_function(DRAWN, arg=40)
        page.evaluate("window.isStillHere = true")
        trained_on(a_search(runs / "going-on"), 41)
        page.wait_for_function(DRAWN, arg=41)
        assert page.evaluate("window.isStillHere")
        assert page.frames[-1].locator("#arms tbody tr").count()


def test_the_overview_leads_to_the_comparison_and_back(chromium, url):
    with tab(chromium, url) as page:
        page.wait_for_selector("iframe:not(.coming)")
        page.frames[-1].get_by_text("Compare the runs").click()
        page.wait_for_url(f"{url}comparison/")
        page.wait_for_selector("iframe:not(.coming)")
        assert "going-on" in page.frames[-1].inner_text("table")
        page.get_by_text("All runs").click()
        page.wait_for_url(url)

"""Live pages: who sees them, what they may do, and which page is at which address."""

import base64
import hashlib
import re

import pytest
from starlette.testclient import TestClient

from risingsearch.plotting.live import live_app

TOKEN = "a-secret"


class Page:
    """A page that says how often it was made."""

    def __init__(self, title):
        self.title = title
        self.made = 0

    def version(self):
        return "of now"

    def state(self):
        return "running", f"{self.title} is running"

    def page(self):
        self.made += 1
        return f"<main>{self.title}</main>"


@pytest.fixture
def client():
    below = {"0": Page("first"), "1": Page("<b>second</b>")}
    app = live_app(TOKEN, {"": Page("overview"), **below})
    return TestClient(app, base_url="http://127.0.0.1:8000")


def alone(page):
    return TestClient(live_app(TOKEN, {"": page}), base_url="http://127.0.0.1:8000")


@pytest.mark.parametrize(
    ("place", "title"), [("", "overview"), ("0/", "first"), ("1/", "<b>second</b>")]
)
def test_every_page_has_its_place(client, place, title):
    assert client.get(f"/{TOKEN}/{place}page").text == f"<main>{title}</main>"
    told = client.get(f"/{TOKEN}/{place}version").json()
    assert told == {
        "version": "of now",
        "state": "running",
        "words": f"{title} is running",
    }


def test_one_page_alone_is_at_the_top_and_leads_nowhere_else():
    client = alone(Page("only"))
    assert client.get(f"/{TOKEN}/page").text == "<main>only</main>"
    assert "All runs" not in client.get(f"/{TOKEN}/").text


def test_pages_lead_to_the_overview_and_titles_are_escaped(client):
    page = client.get(f"/{TOKEN}/1/").text
    assert '<a href="../">All runs</a>' in page
    assert "<title>&lt;b&gt;second&lt;/b&gt;</title>" in page


@pytest.mark.parametrize("name", ["", "page", "version", "0/", "0/page", "0/version"])
@pytest.mark.parametrize("token", ["another", "a-secre", "a-secrets", "\u00e9"])
def test_without_the_token_nothing_is_seen(client, token, name):
    answer = client.get(f"/{token}/{name}")
    assert answer.status_code == 403
    assert "token" in answer.text
    assert "first" not in answer.text


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "/0/page", "/x/y/z/page"])
def test_all_other_addresses_are_forbidden(client, path):
    assert client.get(path).status_code == 403


def test_a_page_that_is_not_there(client):
    assert client.get(f"/{TOKEN}/7/").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_sent(client, method):
    assert client.request(method, f"/{TOKEN}/page").status_code == 405


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.1"])
def test_another_name_for_this_machine_is_refused(client, host):
    answer = client.get(f"/{TOKEN}/page", headers={"Host": host})
    assert answer.status_code == 400
    assert "overview" not in answer.text


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:9", "localhost:9"])
def test_the_names_of_this_machine_are_accepted(client, host):
    assert client.get(f"/{TOKEN}/", headers={"Host": host}).status_code == 200


def policy_of(answer):
    policy = answer.headers["Content-Security-Policy"]
    return dict(part.split(" ", 1) for part in policy.split("; "))


def test_the_policy_allows_this_page_and_nothing_else(client):
    answer = client.get(f"/{TOKEN}/")
    policy = policy_of(answer)
    for tag, name in (("style", "style-src"), ("script", "script-src")):
        (source,) = re.findall(f"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert policy.pop(name) == f"'sha256-{digest}'"
    assert policy == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "connect-src": "'self'",
        "frame-src": "'self'",
        "frame-ancestors": "'none'",
    }


def test_the_page_names_no_other_place(client):
    assert not re.search(r"https?:|[\"'(]//", client.get(f"/{TOKEN}/").text)


def test_what_is_shown_stands_in_a_frame_of_this_server_only(client):
    assert policy_of(client.get(f"/{TOKEN}/page")) == {"frame-ancestors": "'self'"}


@pytest.mark.parametrize("path", [f"/{TOKEN}/", f"/{TOKEN}/page", "/", "/x/page"])
def test_answers_are_not_kept_told_on_or_shared(client, path):
    headers = client.get(path).headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "Access-Control-Allow-Origin" not in headers


def test_asking_for_the_version_makes_no_page():
    page = Page("only")
    client = alone(page)
    for _ in range(5):
        client.get(f"/{TOKEN}/version")
    assert page.made == 0

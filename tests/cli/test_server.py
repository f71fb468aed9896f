"""Runs in a browser: what `risingsearch report --watch` answers, and how it ends."""

import html
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from http.client import HTTPConnection
from types import SimpleNamespace

import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from risingsearch import Functions, RisingSearch
from risingsearch.cli import live, server
from risingsearch.cli.live import live_pages
from risingsearch.cli.main import main
from risingsearch.cli.server import PageRequest, PageServer
from risingsearch.integrations.sklearn import RisingSearchCV
from risingsearch.plotting import parts
from risingsearch.plotting.words import NOTHING
from risingsearch.storage.run_directory import JOURNAL

PROGRAM = "import sys; from risingsearch.cli.main import main; sys.exit(main())"
SWEEP = """
command:
  - bash
  - -c
  - 'echo "{{\\"epoch\\": $RISINGSEARCH_TO_EPOCH, \\"accuracy\\": $0}}"'
  - "{top}"
parameters:
  top: {type: int, low: 1, high: 50}
metric: accuracy
budget: 3
max_epochs: 1
"""


CANDIDATES = [{"top": top} for top in (0.3, 0.9, 0.6)]


def a_search(
    run_dir, candidates=CANDIDATES, train=lambda state: state["top"], **options
):
    given = {"budget": 9, "max_epochs": 4, "seed": 0, "epochs_per_job": 1, **options}
    trainable = Functions(lambda params, seed: {"epochs": 0, **params}, train)
    return RisingSearch(trainable, candidates, run_dir=run_dir, **given)


@pytest.fixture
def run_dir(tmp_path):
    a_search(tmp_path / "run").run()
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    """Let pages be made again at every request."""
    monkeypatch.setattr(live, "REST", 0.0)


def asked(port, path, method="GET", **headers):
    """Return the answer of a server on this machine."""
    connection = HTTPConnection("127.0.0.1", port)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return SimpleNamespace(
        status_code=answer.status,
        text=text,
        headers=answer.headers,
        json=lambda: json.loads(text),
    )


@pytest.fixture
def served():
    """Return a function that serves runs, and returns one that asks for a page."""
    servers = []

    def serve(*run_dirs):
        page_server = PageServer(0, live_pages(run_dirs))
        servers.append(page_server)
        threading.Thread(target=page_server.serve_forever, args=(0.01,)).start()

        def get(path):
            return asked(page_server.server_address[1], f"/{page_server.token}/{path}")

        return SimpleNamespace(get=get, port=page_server.server_address[1])

    yield serve
    for page_server in servers:
        page_server.shutdown()
        page_server.server_close()


def listed_in(page):
    """Return of each run its address, name, state, best score, curve and progress."""
    rows = re.findall(
        r'<a href="(.*?)">(.*?)</a></th><td>(.*?)</td><td>(.*?)</td>'
        r'<td>(?:<svg.*?aria-label="(.*?)".*?)?</td></tr>'
        r'<tr class="why"><td colspan="4"><div>(.*?)</div>',
        page,
    )
    return list(map(list, rows))


def epochs_in(page):
    """Return how many epochs a page draws."""
    data = re.search(r'id="data">(.*?)</script>', page)
    return len(json.loads(data[1])["recorded"]["arm"])


def test_the_page_is_the_report_of_the_run(run_dir, served):
    client = served(run_dir)
    page = client.get("").text
    assert "<h1>run</h1>" in page
    assert "Best score <strong>0.9</strong>" in page
    assert "the budget of 9 epochs is spent" in page
    assert client.get("version").json()["words"].startswith("finished")


def test_the_version_changes_with_every_epoch_and_the_page_with_it(tmp_path, served):
    client, seen = served(tmp_path), []

    def visit(epoch):
        told = client.get("version").json()
        assert client.get("version").json()["version"] == told["version"]
        seen.append((told["version"], told["words"], client.get("").text))

    search = a_search(tmp_path)
    search.callbacks = [visit]
    search.run()
    versions, words, pages = zip(*seen, strict=True)
    assert len(set(versions)) == 9
    assert [epochs_in(page) for page in pages] == list(range(1, 10))
    assert re.match("running: 4 of 9 epochs, about .* left", words[3])
    assert "none: it is running" in pages[3]
    assert words[8].startswith("finished: ")
    for version, page in zip(versions, pages, strict=True):
        assert f'<meta name="version" content="{html.escape(version)}">' in page


def counted(monkeypatch, name):
    """Return a list that grows with each call of a function."""
    made, original = [], getattr(live, name)
    monkeypatch.setattr(live, name, lambda *a, **k: made.append(1) or original(*a, **k))
    return made


def test_a_page_is_made_once_for_all_who_look(run_dir, monkeypatch, served):
    made = counted(monkeypatch, "report_page")
    client = served(run_dir)
    pages = {client.get("").text for _ in range(5)}
    assert len(pages) == len(made) == 1


def test_what_matters_is_computed_anew_only_when_results_have_come(
    tmp_path, monkeypatch, served
):
    computed = counted(monkeypatch, "parameter_importance")
    client, seen = served(tmp_path), []

    def train(state):
        seen.append(client.get("").text)  # once the job has started
        return state["top"]

    search = a_search(tmp_path, train=train)
    search.callbacks = [lambda *_: seen.append(client.get("").text)]
    search.run()
    assert len(set(seen)) == 2 * 9
    assert len(computed) == 9


def test_an_empty_directory_is_waited_for(tmp_path, served):
    client = served(tmp_path)
    assert client.get("version").json()["words"].startswith("waiting")
    assert "no epoch is recorded yet" in client.get("").text
    a_search(tmp_path).run()
    assert client.get("version").json()["words"].startswith("finished")
    assert epochs_in(client.get("").text) == 9


def test_a_run_that_is_damaged_or_gone_says_so_until_it_is_mended(run_dir, served):
    client = served(run_dir)
    journal = run_dir / JOURNAL
    whole = journal.read_bytes()
    journal.write_bytes(whole[:-400].replace(b'"started"', b'"st4rted"', 1))
    told = client.get("version").json()
    assert told["words"].startswith("damaged")
    assert "is damaged in line 2" in told["words"]
    assert "is damaged in line 2" in client.get("").text
    journal.write_bytes(whole)
    assert client.get("version").json()["words"].startswith("finished")
    shutil.rmtree(run_dir)
    assert "does not exist" in client.get("version").json()["words"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.mkdir(),  # in the place of the journal
        lambda path: path.write_bytes(b"\0" * 99),
        lambda path: path.write_text('{"event": "header", "version": []}\n'),
        lambda path: path.symlink_to("/dev/zero"),
    ],
)
def test_a_bad_run_does_not_keep_others_from_being_shown(
    run_dir, tmp_path, spoil, served
):
    (tmp_path / "bad").mkdir()
    spoil(tmp_path / "bad" / JOURNAL)
    client = served(run_dir, tmp_path / "bad", tmp_path / "later")
    listed = client.get("").text
    good, bad, later = listed_in(listed)
    assert good[:4] == ["0/", "run", "finished", "score 0.9"]
    assert bad[:4] == ["1/", "bad", "damaged", NOTHING]
    assert later[2:] == ["waiting", NOTHING, "", "the directory does not exist yet"]
    assert "<h1>run</h1>" in client.get("0/").text
    assert "damaged" in client.get("1/").text
    a_search(tmp_path / "later").run()
    assert "finished" in client.get("2/version").json()["words"]


def test_an_error_of_any_kind_is_shown_in_its_place(run_dir, monkeypatch, served):
    client = served(run_dir)
    monkeypatch.setattr(live, "report_page", lambda *a, **k: {}["unknown"])
    assert "damaged: KeyError: &#x27;unknown&#x27;" in client.get("").text


def test_of_a_sweep_it_names_the_command_and_of_any_search_the_metric(
    tmp_path, monkeypatch, capsys, served
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    assert main(["run", "sweep.yaml", "--run-dir", "swept"]) == 0
    X, y = make_classification(60, random_state=0)
    space = {"alpha": [1e-4, 1e-2]}
    options = {"budget": 4, "max_epochs": 2, "random_state": 0, "run_dir": "fitted"}
    RisingSearchCV(SGDClassifier(), space, scoring="f1", **options).fit(X, y)
    client = served(tmp_path / "swept", tmp_path / "fitted")
    swept, fitted = (client.get(f"{k}/").text for k in (0, 1))
    assert "<dd>bash -c" in swept
    assert "Best accuracy" in swept
    assert "Best f1" in fitted
    capsys.readouterr()
    for name in ("swept", "fitted"):
        assert main(["watch", name]) == 0
        assert "finished" in capsys.readouterr().out


def test_several_runs_are_listed_and_compared_as_they_are_now(tmp_path, served):
    a_search(tmp_path / "one").run()
    (tmp_path / "two").mkdir()
    client = served(tmp_path / "one", tmp_path / "two")
    listed = client.get("").text
    one, two = listed_in(listed)
    assert one[:4] == ["0/", "one", "finished", "score 0.9"]
    assert one[4].startswith("best score so far, 0.3 to 0.9")
    assert two[1:] == ["two", "waiting", NOTHING, "", "no epoch is recorded yet"]
    assert client.get("version").json()["words"] == "0 of 2 running"
    assert "<h1>All runs</h1>" in listed  # there is nothing to compare yet
    before = client.get("version").json()["version"]
    a_search(tmp_path / "two", seed=4, budget=7).run()
    assert client.get("version").json()["version"] != before
    page = client.get("").text
    assert "<h1>Comparison of the runs</h1>" in page
    assert listed_in(page)[1][:4] == ["1/", "two", "finished", "score 0.9"]
    assert '<th scope="col">one</th><th scope="col">two</th>' in page
    assert "the budget of 7 epochs is spent" in page
    assert "<h1>two</h1>" in client.get("1/").text


def test_a_run_that_begins_anew_in_its_directory_is_shown_from_its_first_epoch(
    tmp_path,
    served,
):
    client = served(a_search(tmp_path / "run").run() and tmp_path / "run")
    assert epochs_in(client.get("").text) == 9
    shutil.rmtree(tmp_path / "run")
    a_search(tmp_path / "run", budget=12, seed=3).run()
    client.get("version")
    assert epochs_in(client.get("").text) == 12


class TestSecurity:
    @pytest.fixture
    def client(self, run_dir, served, monkeypatch):
        monkeypatch.setattr(server.secrets, "token_urlsafe", lambda n: "token")
        port = served(run_dir).port
        return lambda path, **options: asked(port, f"/{path}", **options)

    @pytest.mark.parametrize("path", ["wrong/", "tokem/version", "", "wrong", "a/b/c"])
    def test_without_the_token_nothing_is_seen(self, client, path):
        answer = client(path)
        assert answer.status_code == 403
        assert "run" not in answer.text

    def test_an_unknown_page_is_not_found(self, client):
        assert client("token/7/").status_code == 404

    @pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
    def test_nothing_can_be_sent(self, client, method):
        assert client("token/", method=method).status_code == 501

    @pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example"])
    def test_another_name_for_this_machine_is_refused(self, client, host):
        assert client("token/", Host=host).status_code == 400

    @pytest.mark.parametrize("path", ["token/", "token/version", "wrong/"])
    def test_answers_are_not_kept_framed_or_shared(self, client, path):
        headers = client(path).headers
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"] == "frame-ancestors 'none'"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["referrer-policy"] == "no-referrer"

    def test_the_page_may_run_its_program_and_ask_this_server_only(self, client):
        page = client("token/").text
        [policy] = re.findall(r'Content-Security-Policy" content="(.*?)"', page)
        program = page.rpartition("<script>")[2].partition("</script>")[0]
        assert parts.hash_of(program) in policy
        assert "default-src 'none'" in policy
        assert "connect-src 'self'" in policy

    def test_names_are_escaped(self, tmp_path, served):
        run_dirs = [tmp_path / "<b>one", tmp_path / "<b>two"]
        for run_dir in run_dirs:
            a_search(run_dir, budget=3).run()
        client = served(*run_dirs)
        for path in ("", "0/"):
            page = client.get(path).text
            assert "&lt;b&gt;one" in page
            assert "<b>one" not in page


class TestCommand:
    def test_prints_a_url_serves_it_and_ends_with_ctrl_c(self, run_dir):
        arguments = ["report", str(run_dir), "--watch", "--port", "0"]
        with subprocess.Popen(
            [sys.executable, "-c", PROGRAM, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                url = process.stdout.readline().strip()
                parts = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{32}/)", url)
                port, path = parts.groups()
                assert "<h1>run</h1>" in asked(port, path).text
                assert asked(port, path[:-2] + "/").status_code == 403
                process.send_signal(signal.SIGINT)
                assert process.communicate()[1] == ""
                assert process.returncode == 0
            except BaseException:
                process.kill()
                raise

    def test_every_start_has_another_token(self, run_dir, monkeypatch, capsys):
        monkeypatch.setattr(PageServer, "serve_forever", lambda self: None)
        for _ in range(2):
            assert main(["report", str(run_dir), "--watch"]) == 0
        urls = capsys.readouterr().out.splitlines()
        assert len({url.split("/")[3] for url in urls}) == 2

    def test_a_port_in_use_is_bad_input(self, run_dir, capsys):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            number = taken.getsockname()[1]
            assert main(["report", str(run_dir), "--watch", "--port", str(number)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"port {number} cannot be used" in line

    @pytest.mark.parametrize("number", ["-1", "65536", "http"])
    def test_what_is_no_port_is_bad_input(self, run_dir, capsys, number):
        with pytest.raises(SystemExit, match="2"):
            main(["report", str(run_dir), "--watch", "--port", number])
        assert "argument --port: must be a" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            (["--port", "0"], "--port is for --watch"),
            (["--watch", "--out", "page.html"], "--out is for a file"),
        ],
    )
    def test_a_url_or_a_file(self, run_dir, capsys, options, said):
        assert main(["report", str(run_dir), *options]) == 2
        assert said in capsys.readouterr().err

    def test_what_is_no_run_is_bad_input_in_one_sentence(self, tmp_path, capsys):
        (tmp_path / "file").touch()
        assert main(["report", str(tmp_path), "--watch"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "holds no search: name the run directory" in line

    def test_idle_and_endless_requests_keep_nobody_out(
        self, run_dir, monkeypatch, served
    ):
        monkeypatch.setattr(server, "MOST_CONNECTIONS", 4)
        monkeypatch.setattr(PageRequest, "timeout", 0.3)
        client = served(run_dir)
        address = ("127.0.0.1", client.port)
        idle = [socket.create_connection(address) for _ in range(9)]
        idle[-1].sendall(b"GET /token/ HTTP/1.1\r\n")  # and no end
        assert "<h1>run</h1>" in client.get("").text
        with socket.create_connection(address) as endless:
            endless.sendall(b"GET /token/ HTTP/1.1\r\nA: " + 70_000 * b"a")
            assert b" 431 " in endless.recv(100)
        for connection in idle:
            with connection, suppress(ConnectionResetError):
                assert connection.recv(1) == b""  # closed


def test_a_folder_stands_for_the_runs_below_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("runs/b", "runs/deep/a"):
        a_search(tmp_path / name).run()
    assert main(["report", "runs"]) == 0
    page = (tmp_path / "comparison.html").read_text()
    assert '<th scope="col">b</th><th scope="col">a</th>' in page
    assert main(["report", "runs/deep"]) == 0
    assert (tmp_path / "runs/deep/a/report.html").exists()
    assert capsys.readouterr().out == "comparison.html\nruns/deep/a/report.html\n"

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.cure_ucb.imdb import text as imdb_text
from risingsearch.errors import InvalidParameterError, MissingDependencyError

TEXTS = ["A good film!<br />Good, good.", "It's a bad, bad-bad film... bad?"]
REVIEWS = {"train": TEXTS[:1], "test": TEXTS[1:]}


@pytest.fixture
def data_dir(tmp_path):
    for name in (*(f"imdb_text/{split}.parquet" for split in REVIEWS), "words.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    words = tmp_path / imdb_text.VOCABULARY
    words.parent.mkdir()
    words.write_text("good\nbad\n!\nbad-bad\n")
    return tmp_path


@pytest.fixture
def asked(monkeypatch):
    """Put a stand-in for ``datasets`` in place; return what it is asked for."""
    calls = []

    def load_dataset(name, data_files=None):
        calls.append(name)
        if name != "parquet" and not asked.network:
            raise ConnectionError("no network")
        return {
            split: {"text": texts, "label": [i] * len(texts)}
            for i, (split, texts) in enumerate(REVIEWS.items())
        }

    asked = SimpleNamespace(calls=calls, network=True)
    monkeypatch.setitem(
        sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset)
    )
    return asked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("isn't it's Kids'", ["isn't", "it", "kids"]),
        ("low-budget, well - made", ["low-budget", "well", "made"]),
        ("Great!! Why?", ["great", "!", "!", "why", "?"]),
        ("clichéd<br /><br />end", ["clichéd", "br", "br", "end"]),
    ],
)
def test_words_are_those_of_the_published_files(text, words):
    assert re.findall(imdb_text.TOKEN, text.lower()) == words


def test_counts_are_raw_and_in_the_order_of_the_words():
    counts = imdb_text.count(TEXTS, ["good", "bad", "!", "bad-bad"])
    assert counts.tolist() == [[3, 0, 1, 0], [0, 2, 0, 1]]
    assert counts.dtype == np.uint16


def test_without_a_list_the_most_frequent_words_count(monkeypatch):
    monkeypatch.setattr(imdb_text, "N_WORDS", 4)
    counts = imdb_text.count(["b b b <br /> a a a a c c d", "a b c"], None)
    assert sorted(counts.sum(axis=0).tolist()) == [1, 3, 4, 5]


def test_features_are_counted_once(data_dir, asked, tmp_path, monkeypatch):
    path = imdb_text.features(data_dir, tmp_path / "cache")
    kept = imdb_text.load(path)
    assert kept.counts.tolist() == [[3, 0, 1, 0], [0, 2, 0, 1]]
    assert kept.labels.tolist() == [0, 1]
    monkeypatch.setattr(imdb_text, "count", None)
    assert imdb_text.features(data_dir, tmp_path / "cache") == path
    assert [file.name for file in (tmp_path / "cache").iterdir()] == [path.name]


def test_other_words_are_other_features(data_dir, asked, tmp_path):
    first = imdb_text.features(data_dir, tmp_path)
    (data_dir / imdb_text.VOCABULARY).write_text("good\n")
    assert imdb_text.features(data_dir, tmp_path) != first


def test_local_reviews_go_before_the_hub(data_dir, asked, tmp_path):
    imdb_text.load_texts(data_dir)
    imdb_text.load_texts(tmp_path / "elsewhere")
    imdb_text.load_texts(None)
    assert asked.calls == ["parquet", "stanfordnlp/imdb", "stanfordnlp/imdb"]


def test_reviews_out_of_reach_are_a_clear_error(asked, tmp_path):
    asked.network = False
    with pytest.raises(
        InvalidParameterError, match="give --data-dir a folder"
    ) as found:
        imdb_text.load_texts(tmp_path)
    assert str(tmp_path) in str(found.value)
    assert "no network" in str(found.value)


def test_missing_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependencyError, match=r"risingsearch\[bench\]"):
        imdb_text.load_texts(None)

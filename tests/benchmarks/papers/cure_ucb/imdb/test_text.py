import re

import numpy as np
import pytest

from benchmarks.papers.cure_ucb.imdb import text as imdb_text

TEXTS = ["A good film!<br />Good, good.", "It's a bad, bad-bad film... bad?"]


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

"""Rows are kept for others within a bound."""

import threading

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from risingsearch.integrations.sklearn.row_cache import Prepared, RowCache, size_of

ROWS = np.zeros((100, 10))


def ask(cache, key, made, rows=ROWS):
    def make():
        made.append(key)
        return Prepared((), rows)

    return cache.get(key, make)


class TestRowCache:
    def test_the_same_rows_are_made_once(self):
        cache, made = RowCache(), []
        assert ask(cache, "a", made) is ask(cache, "a", made)
        assert made == ["a"]

    def test_the_longest_unused_go_first(self):
        cache, made = RowCache(3 * ROWS.nbytes), []
        for key in "abacabc":
            ask(cache, key, made)
        assert made == ["a", "b", "c", "b", "c"]

    def test_never_exceeds_its_bound(self):
        cache, made = RowCache(3 * ROWS.nbytes), []
        for key in range(20):
            ask(cache, key % 7, made, ROWS[: 15 * (key % 7)])
            assert cache.size <= 3 * ROWS.nbytes

    def test_rows_beyond_the_bound_are_not_kept(self):
        cache, made = RowCache(ROWS.nbytes // 2), []
        for _ in range(2):
            assert ask(cache, "a", made).rows is ROWS
        assert made == ["a", "a"]
        assert cache.size == 0

    def test_a_failure_is_not_kept(self):
        cache, made = RowCache(), []

        def fail():
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            cache.get("a", fail)
        ask(cache, "a", made)
        assert made == ["a"]

    def test_a_thread_waits_for_what_another_makes(self):
        cache, made, making = RowCache(), [], threading.Event()
        go_on = threading.Event()

        def slowly():
            making.set()
            go_on.wait()
            made.append("first")
            return Prepared((), ROWS)

        first = threading.Thread(target=cache.get, args=("a", slowly))
        first.start()
        making.wait()
        second = threading.Thread(target=ask, args=(cache, "a", made))
        second.start()
        ask(cache, "b", made)  # other rows are not waited for
        go_on.set()
        first.join()
        second.join()
        assert made == ["b", "first"]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        np.asfortranarray(ROWS),
        pd.DataFrame(ROWS),
        csr_array(np.ones((100, 10))),
        ["a word of 20 letters" + str(i) for i in range(400)],
    ],
    ids=["C order", "Fortran order", "pandas", "sparse", "list"],
)
def test_the_size_of_rows_whatever_holds_them(rows):
    assert 8000 <= size_of(rows) < 14_000

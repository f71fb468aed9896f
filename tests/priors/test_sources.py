import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from risingsearch.errors import InvalidParameterError
from risingsearch.priors import EarlierSearch, earlier_searches, read_prior


def test_earlier_search_is_returned_as_it_is():
    earlier = EarlierSearch("old", [{"rate": 0.1}], [np.array([0.5])])
    assert earlier_searches(earlier) == [earlier]
    assert earlier_searches(earlier, name="new")[0].name == "new"


@pytest.mark.parametrize("source", [None, 3, [], {}, b"x", object(), ""])
def test_other_objects_are_refused(source):
    with pytest.raises(
        InvalidParameterError, match="an earlier search is a SearchResult"
    ):
        earlier_searches(source)


@pytest.mark.parametrize("model", [LogisticRegression(), [["runs.csv"]]])
def test_a_model_or_a_list_is_told_what_is_allowed(model):
    allowed = r"an earlier search is .*a fitted Rising.*list for prior=\); got "
    for read in (earlier_searches, lambda prior: read_prior([[prior]], [{"rate": 1}])):
        with pytest.raises(InvalidParameterError, match=allowed):
            read(model)


def test_a_score_cannot_be_asked_of_what_is_read_already():
    earlier = EarlierSearch("old", [{"rate": 0.1}], [np.array([0.5])])
    with pytest.raises(
        InvalidParameterError, match="its scores are read already: leave score"
    ):
        earlier_searches(earlier, score="loss")


@pytest.mark.parametrize("source", ["/no/such/file.csv", "a\0b", "x" * 5000])
def test_what_is_not_there_is_refused(source):
    with pytest.raises(InvalidParameterError, match="there is no earlier search at"):
        earlier_searches(source)


def test_other_files_and_folders_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    os.mkfifo(tmp_path / "pipe.csv")
    for path in (tmp_path, tmp_path / "notes.txt", tmp_path / "pipe.csv"):
        with pytest.raises(InvalidParameterError, match="is none of them"):
            earlier_searches(path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"direction": "up"}, "direction must be one of 'maximize', 'minimize'"),
    ],
)
def test_options_that_are_not_allowed_are_refused(options, message):
    earlier = EarlierSearch("old", [{"rate": 0.1}], [np.array([0.5])])
    with pytest.raises(InvalidParameterError, match=message):
        earlier_searches(earlier, **options)


def test_file_that_the_user_names_may_be_a_link(tmp_path):
    (tmp_path / "runs.csv").write_text("rate,score\n0.1,0.5\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "runs.csv")
    named = {"score": "score", "direction": "maximize"}
    assert earlier_searches(tmp_path / "link.csv", **named)[0].params == [{"rate": 0.1}]
    (tmp_path / "circle.csv").symlink_to(tmp_path / "circle.csv")
    with pytest.raises(InvalidParameterError, match="there is no earlier search"):
        earlier_searches(tmp_path / "circle.csv")


def test_no_framework_is_imported_before_a_source_needs_it():
    code = (
        "import sys, risingsearch.priors; "
        "print({'pandas', 'pyarrow', 'optuna', 'sklearn', 'ray'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_an_earlier_search_is_shown_in_a_line():
    params = [{f"p{n}": k for n in range(200)} for k in range(9)]
    shown = repr(EarlierSearch("May" * 200, params, [np.array([0.5])] * 9))
    assert "9 runs of p0, p1" in shown
    assert len(shown) < 500

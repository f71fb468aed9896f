import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from risingsearch.errors import InvalidParameterError
from risingsearch.priors import EarlierSearch, earlier_searches


def test_earlier_search_is_returned_as_it_is():
    earlier = EarlierSearch("old", [{"rate": 0.1}], [np.array([0.5])])
    assert earlier_searches(earlier) == [earlier]
    assert earlier_searches(earlier, name="new")[0].name == "new"


@pytest.mark.parametrize("source", [None, 3, [], LogisticRegression(), ""])
def test_other_objects_are_refused(source):
    with pytest.raises(InvalidParameterError, match="an earlier search is a Search"):
        earlier_searches(source)


def test_a_score_cannot_be_asked_of_what_is_read_already():
    earlier = EarlierSearch("old", [{"rate": 0.1}], [np.array([0.5])])
    with pytest.raises(InvalidParameterError, match="read already: leave score"):
        earlier_searches(earlier, score="loss")


@pytest.mark.parametrize("source", ["/no/such/file.csv", "a\0b"])
def test_what_is_not_there_is_refused(source):
    with pytest.raises(InvalidParameterError, match="there is no earlier search at"):
        earlier_searches(source)


def test_other_files_and_folders_are_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(InvalidParameterError, match="is none of them"):
            earlier_searches(path)


def test_a_direction_is_one_of_two():
    earlier = EarlierSearch("old", [{"rate": 0.1}], [np.array([0.5])])
    with pytest.raises(InvalidParameterError, match="direction must be one of"):
        earlier_searches(earlier, direction="up")


def test_no_framework_is_imported_before_a_source_needs_it():
    code = (
        "import sys, risingsearch.priors; "
        "print({'pandas', 'pyarrow', 'optuna', 'sklearn', 'ray'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"


def test_the_names_of_columns_make_no_other_source_of_a_table():
    frame = pd.DataFrame({"candidates": [1, 2], "history": [1, 2], "loss": [0.1, 0.2]})
    [search] = earlier_searches(frame, score="loss", direction="minimize")
    assert search.parameter_names == ["candidates", "history"]

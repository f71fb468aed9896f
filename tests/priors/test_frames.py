"""Tables as earlier searches: data frames, CSV and parquet files."""

import numpy as np
import pandas as pd
import pytest

from risingsearch.cli.main import main
from risingsearch.errors import InvalidParameterError
from risingsearch.priors import earlier_searches


@pytest.fixture
def csv(tmp_path):
    def write(text, name="runs.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def read(source, score="score", direction="maximize"):
    [earlier] = earlier_searches(source, score=score, direction=direction)
    return earlier


def test_a_row_is_a_run_and_all_other_columns_are_parameters(csv):
    earlier = read(csv("rate,kind,flag,score\n0.1,a,True,0.5\n1e-3,None,False,\n"))
    assert earlier.params == [
        {"rate": 0.1, "kind": "a", "flag": True},
        {"rate": 0.001, "kind": "None", "flag": False},
    ]
    assert earlier.epochs.tolist() == [1, 0]  # no score: it has failed
    assert earlier.name == "runs.csv"


def test_rows_with_the_epochs_of_a_run_are_its_curve(csv):
    text = (
        "run,epoch,rate,train_loss,accuracy,seconds\n"
        "x,2,0.1,0.8,0.6,3\nx,1,0.1,0.9,0.5,1\ny,1,0.1,0.7,0.4,2\n"
    )
    earlier = read(csv(text), "accuracy")
    assert earlier.params == [{"rate": 0.1}] * 2  # the loss varies within a run
    assert [curve.tolist() for curve in earlier.curves] == [[0.5, 0.6], [0.4]]


def test_losses_are_turned_so_that_higher_is_better(csv):
    earlier = read(csv("rate,loss\n0.1,0.5\n0.2,0.4\n"), "loss", "minimize")
    assert earlier.scores.tolist() == [-0.5, -0.4]
    assert (earlier.metric, earlier.direction) == ("loss", "minimize")


def test_numbers_that_are_kept_as_text_are_numbers():
    frame = pd.DataFrame(
        {"rate": ["0.1", "1e-3"], "n": ["3", None], "score": ["1"] * 2}
    )
    earlier = read(frame)
    assert earlier.params == [{"rate": 0.1, "n": 3}, {"rate": 0.001}]
    assert earlier.scores.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_an_export_needs_neither_score_nor_direction(make_search, tmp_path, kind):
    candidates = [
        {"top": 0.9, "kind": "=1+1", "n": 1},
        {"top": 0.7, "kind": "'x"},
        {"top": 0.8, "kind": "-a", "n": 2},
    ]
    search = make_search(
        candidates, run_dir=tmp_path / "run", budget=12, direction="minimize"
    )
    [expected] = earlier_searches(search.run())
    out = tmp_path / f"out.{kind}"
    arguments = ["export", str(tmp_path / "run"), "--format", kind, "--out", str(out)]
    assert main(arguments) == 0
    [earlier] = earlier_searches(out)
    assert earlier.direction == "minimize"
    tops = [params["top"] for params in earlier.params]
    for params, curve in zip(expected.params, expected.curves, strict=True):
        run = tops.index(params["top"])
        assert earlier.params[run] == params
        np.testing.assert_allclose(earlier.curves[run], curve)
    assert read(out, "loss").metric == "loss"


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_a_file_is_read_as_the_frame_was(tmp_path, suffix):
    frame = pd.DataFrame({"rate": [0.1, 0.2], "kind": ["a", None], "score": [0.5, 0.6]})
    path = tmp_path / f"runs.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    for source in (frame, path, str(path)):
        assert read(source).params == [{"rate": 0.1, "kind": "a"}, {"rate": 0.2}]


def test_values_that_json_cannot_hold_leave_their_runs_out():
    frame = pd.DataFrame(
        {"rate": [0.1, 0.2, 0.3], "x": [1, {1, 2}, [1, 2]], "score": [1.0, 2.0, 3.0]}
    )
    earlier = read(frame)
    assert earlier.params == [{"rate": 0.1, "x": 1}, {"rate": 0.3, "x": [1, 2]}]
    when = pd.to_datetime(["2026"] * 3)
    with pytest.raises(InvalidParameterError, match="leave such columns out"):
        read(frame.drop(columns="x").assign(when=when))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot be read as a table"),
        ("a,score\n", "of its 0 runs, none has"),
        ("score\n0.5\n", "none has both a score, or a failure, and parameters"),
        ("a,score\n1,nan\n", "none of its 1 runs has a finite score"),
        ("a,b\n1,2\n", "score must be one of 'a', 'b'; got 'score'"),
        ("epoch,a,score\n1,1,0.5\n", "add a column 'run'"),
        ("run,epoch,a,score\nx,,1,0.5\n", "needs a number in its column 'epoch'"),
        ('a,score\n"1,0.5\n', "cannot be read as a table"),
    ],
)
def test_a_table_that_cannot_be_read_is_one_error(csv, text, message):
    with pytest.raises(InvalidParameterError, match=message):
        read(csv(text))


@pytest.mark.parametrize("asked", [{}, {"score": "loss"}, {"direction": "minimize"}])
def test_a_table_needs_score_and_direction(csv, asked):
    path = csv("alpha,loss\n1,2\n3,4\n")
    with pytest.raises(
        InvalidParameterError, match="needs score and direction: name its"
    ) as error:
        earlier_searches(path, **asked)
    for way in ("earlier_searches(..., score=..., direction=...)", "a sweep's prior"):
        assert way in str(error.value)

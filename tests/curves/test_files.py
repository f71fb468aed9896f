"""Curves from files: every form people have, and errors that say what is wrong."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from risingsearch.curves.files import load_curves
from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError, MissingDependencyError

MEANS = np.array([[0.5, 0.6, 0.7], [0.3, 0.4, np.nan]])

FORMS = {
    "one row per arm and epoch": [
        "config,epoch,score\na,1,0.5\nb,1,0.3\na,2,0.6\na,3,0.7\nb,2,0.4\n",
        "Epoch,lr,RUN,seconds,valid\n0,1,a,9,.5\n10,1,a,9,.6\n20,1,a,9,.7\n"
        "0,2,b,9,.3\n10,2,b,9,.4\n20,2,b,9,\n",
        "trial,step,loss\na,3,0.7\na,1,0.5\na,2,0.6\nb,1,0.3\nb,2,0.4\n",
    ],
    "one row per arm": [
        "config,1,2,3\na,0.5,0.6,0.7\nb,0.3,0.4,\n",
        "epoch_2,Epoch_1,epoch_10,name\n0.6,0.5,0.7,a\n0.4,0.3,NaN,b\n",
        ",0,1,2\na,0.5,0.6,0.7\nb,0.3,0.4,\n",
    ],
    "one column per arm": [
        "epoch,a,b\n1,0.5,0.3\n2,0.6,0.4\n3,0.7,\n",
        "a,b\n0.5,0.3\n0.6,0.4\n0.7,nan\n",
        ",a,b\n2,0.7,\n0,0.5,0.3\n1,0.6,0.4\n",
    ],
}
BARE = ["0.5,0.6,0.7\n0.3,0.4,\n", "1,2,3\n0.5,0.6,0.7\n\n0.3,0.4,\n"]


def write(folder, text, name="curves.csv"):
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("example", range(3))
def test_the_form_of_a_table_is_seen_from_its_columns(tmp_path, form, example):
    curves = load_curves(write(tmp_path, FORMS[form][example]))
    np.testing.assert_array_equal(curves.means, MEANS)
    assert curves.names == ("a", "b")
    assert curves.form == form
    assert CurveTable.create(curves.means).pulls.tolist() == [3, 2]


@pytest.mark.parametrize("text", BARE)
def test_bare_numbers_are_rows_of_arms(tmp_path, text):
    curves = load_curves(str(write(tmp_path, text)))
    np.testing.assert_array_equal(curves.means, MEANS)
    assert curves.names == ("0", "1")
    assert curves.form == "one row per arm"


@pytest.mark.parametrize(
    ("frame", "form"),
    [
        (
            pd.DataFrame(
                {
                    "run": ["a"] * 3 + ["b"] * 2,
                    "epoch": [1, 2, 3, 1, 2],
                    "mean": [0.5, 0.6, 0.7, 0.3, 0.4],
                }
            ),
            "one row per arm and epoch",
        ),
        (
            pd.DataFrame(
                {"a": MEANS[0], "b": MEANS[1]}, index=pd.Index([1, 2, 3], name="epoch")
            ),
            "one column per arm",
        ),
    ],
)
def test_parquet_files_have_the_same_forms(tmp_path, monkeypatch, frame, form):
    path = write(tmp_path, "", "curves.parquet")
    monkeypatch.setattr(pd, "read_parquet", {path: frame}.__getitem__)
    curves = load_curves(path)
    np.testing.assert_array_equal(curves.means, MEANS)
    assert (curves.names, curves.form) == (("a", "b"), form)


def test_parquet_without_a_reader_says_what_to_install(tmp_path, monkeypatch):
    def no_engine(path):
        raise ImportError

    monkeypatch.setattr(pd, "read_parquet", no_engine)
    with pytest.raises(MissingDependencyError, match="pyarrow is not installed; run:"):
        load_curves(write(tmp_path, "", "curves.parquet"))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        MissingDependencyError, match="pandas is not installed; run: pip"
    ):
        load_curves(write(tmp_path, "", "curves.parquet"))


EMPTY = [
    ("run,epoch,score\na,1,0.5\nb,1,nan\na,2,0.6\nc,1,0.3\nb,1,\n", "b"),
    ("run,epoch,score\nb,1,\nd,1,\na,1,nan\na,1,0.5\na,2,0.6\nc,1,0.3\n", "b, d"),
    ("run,1,2\na,0.5,0.6\nb,,\nc,0.3,\n", "b"),
    ("a,b,c\n0.5,,0.3\n0.6,,\n", "b"),
]


@pytest.mark.parametrize(("text", "left_out"), EMPTY)
def test_arms_without_a_score_are_left_out(tmp_path, text, left_out):
    with pytest.warns(RuntimeWarning, match=f"score are left out: {left_out}$"):
        curves = load_curves(write(tmp_path, text))
    assert curves.names == ("a", "c")
    np.testing.assert_array_equal(curves.means, [[0.5, 0.6], [0.3, np.nan]])


class TestArrays:
    def test_valid_scores_are_cut_to_their_length(self, tmp_path):
        path = tmp_path / "curves.npz"
        full = np.array([[0.5, 0.6, 0.7], [0.3, 0.4, 0.9]], dtype=np.float32)
        np.savez(path, valid=full, length=[3, 2], X=np.ones((2, 4)))
        curves = load_curves(path)
        np.testing.assert_allclose(curves.means, MEANS)
        assert curves.names == ("0", "1")
        assert curves.means.dtype == float

    def test_arms_without_an_epoch_are_left_out(self, tmp_path):
        path = tmp_path / "curves.npz"
        np.savez(path, valid=MEANS, length=[0, 1])
        with pytest.warns(RuntimeWarning, match="arms without a score are left out: 0"):
            curves = load_curves(path)
        assert (curves.names, curves.means.shape) == (("1",), (1, 3))

    def test_a_single_table_may_have_any_name(self, tmp_path):
        np.savez(tmp_path / "a.npz", whatever=MEANS, names=["a", "b"])
        curves = load_curves(tmp_path / "a.npz")
        np.testing.assert_array_equal(curves.means, MEANS)
        assert curves.names == ("a", "b")
        np.save(tmp_path / "a.npy", MEANS)
        np.testing.assert_array_equal(load_curves(tmp_path / "a.npy").means, MEANS)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            (
                {"a": MEANS, "b": MEANS},
                "an array named valid or means or mean, or a sing",
            ),
            ({"a": MEANS[0]}, "or a single one of two dimensions; it has a"),
            (
                {"valid": MEANS[0]},
                "valid must hold numbers in two dimensions, arms and",
            ),
            (
                {"valid": MEANS, "length": [3]},
                "length must hold 2 numbers; got shape (1,)",
            ),
            ({"valid": np.array([[None]])}, "Object arrays cannot be loaded when"),
            (
                {"valid": MEANS[:, ::-1]},
                "arm '1' has no score at its 1. epoch, but later",
            ),
        ],
    )
    def test_it_says_what_is_wrong(self, tmp_path, arrays, message):
        np.savez(tmp_path / "curves.npz", **arrays)
        with pytest.raises(InvalidParameterError, match=re.escape(message)):
            load_curves(tmp_path / "curves.npz")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read"),
        (
            "config,epoch,score\n",
            "scores must be finite, and there must be at least one",
        ),
        ("a,b\n0.1,0.2\n0.3,0.4,0.5,0.6\n", "Expected 2 fields in line 3, saw 4"),
        ("a,b\n0.1,0.2\n0.3,good\n", "could not convert string to float: 'good'"),
        ("a,b\n0.1,inf\n", "scores must be finite, and there must be at least one"),
        (
            "a,b\n0.1,\n0.1,0.2\n",
            "arm 'b' has no score at its 1. epoch, but later ones",
        ),
        ("config,epoch,score\na,1,0.1\na,1,0.2\n", "arm 'a' has two scores at epoch 1"),
        ("config,epoch,x,y\na,1,2,3\n", "Name it 'score'; there are 'x', 'y'"),
        (
            "config,lr,1,2\na,0.1,2,3\n",
            "every other column must be an epoch, 1 or epoch_1; got lr, 1, 2",
        ),
        ("epoch,a\n1,0.1\n1,0.2\n", "every epoch needs its own number"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InvalidParameterError, match=re.escape(message)) as raised:
        load_curves(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("curves.pkl", "curves come from .csv, .npy, .npz, .parquet files; got"),
        ("nowhere.csv", "No such file or directory"),
        ("broken.npz", "cannot read"),
    ],
)
def test_other_files_are_refused(tmp_path, name, message):
    write(tmp_path, "no archive", "broken.npz")
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        load_curves(tmp_path / name)


@pytest.mark.skipif("RISINGSEARCH_DATA" not in os.environ, reason="needs real data")
def test_recorded_searches_load():
    folder = Path(os.environ["RISINGSEARCH_DATA"], "hpo_curves")
    for family in ("algoperf", "deepobs", "nmtlc", "taskset"):
        path = sorted((folder / family).glob("*.npz"))[0]
        curves = load_curves(path)
        with np.load(path) as arrays:
            assert curves.means.shape == arrays["valid"].shape
            lengths = CurveTable.create(curves.means).pulls
            np.testing.assert_array_equal(lengths, arrays["length"])

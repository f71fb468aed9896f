import gzip
import math

import numpy as np
import pandas as pd
import pytest

from risingsearch.cli.main import main
from risingsearch.errors import PriorError
from risingsearch.priors import earlier_searches, table_files


@pytest.fixture
def csv(tmp_path):
    def write(text, name="runs.csv"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def test_plain_table_has_a_run_per_row(csv):
    path = csv("rate,kind,flag,cap,score\n0.1,a,True,None,0.5\n1e-3,b,false,3,\n")
    [earlier] = earlier_searches(path)
    assert earlier.params == [
        {"rate": 0.1, "kind": "a", "flag": True, "cap": None},
        {"rate": 0.001, "kind": "b", "flag": False, "cap": 3},
    ]
    assert earlier.epochs.tolist() == [1, 0]


def test_rows_with_the_epochs_of_a_run_are_its_curve(csv):
    path = csv(
        "run,epoch,rate,train_loss,accuracy,seconds\n"
        "x,2,0.1,0.8,0.6,3\nx,1,0.1,0.9,0.5,1\ny,1,0.1,0.7,0.4,2\n"
    )
    [earlier] = earlier_searches(path, score="accuracy")
    assert earlier.params == [{"rate": 0.1}] * 2
    assert [curve.tolist() for curve in earlier.curves] == [[0.5, 0.6], [0.4]]
    assert earlier.seconds == [2.0, 2.0]


def test_an_epoch_seen_before_begins_another_run_where_no_column_tells(csv):
    path = csv("epoch,rate,score\n1,0.1,0.5\n2,0.1,0.6\n1,0.1,0.4\n1,0.2,0.3\n")
    [earlier] = earlier_searches(path)
    assert [curve.tolist() for curve in earlier.curves] == [[0.5, 0.6], [0.4], [0.3]]


def test_runs_that_share_a_number_are_told_apart_by_their_parameters(csv):
    path = csv("run,rate,score\n0,0.1,0.5\n0,0.2,0.6\n1,0.1,0.4\n")
    [earlier] = earlier_searches(path)
    assert [params["rate"] for params in earlier.params] == [0.1, 0.2, 0.1]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_export_writes_is_read(make_search, tmp_path, kind):
    candidates = [
        {"top": 0.9, "kind": "=1+1", "n": 1},
        {"top": 0.7, "kind": "'x"},
        {"top": 0.8, "kind": "-a", "n": 2},
    ]
    result = make_search(candidates, run_dir=tmp_path / "run", budget=12).run()
    out = tmp_path / f"out.{kind}"
    arguments = ["export", str(tmp_path / "run"), "--format", kind, "--out", str(out)]
    assert main(arguments) == 0
    [expected] = earlier_searches(result)
    with pytest.raises(PriorError, match="nothing says which values of its score are"):
        earlier_searches(out)  # it does not say what was minimized
    [earlier] = earlier_searches(out, direction="maximize")
    tops = [params["top"] for params in earlier.params]
    for params, curve, seconds in zip(
        expected.params, expected.curves, expected.seconds, strict=True
    ):
        run = tops.index(params["top"])
        assert earlier.params[run] == params
        np.testing.assert_allclose(earlier.curves[run], curve)
        np.testing.assert_allclose(earlier.seconds[run], seconds)


def test_history_without_parameters_is_refused(make_search):
    frame = make_search().run().to_frame()
    with pytest.raises(PriorError, match="no column with a parameter"):
        earlier_searches(frame)


def test_what_mlflow_finds():
    frame = pd.DataFrame(
        {
            "run_id": ["a", "b", "c"],
            "experiment_id": ["0"] * 3,
            "status": ["FINISHED", "FAILED", "RUNNING"],
            "artifact_uri": ["x"] * 3,
            "start_time": pd.to_datetime(["2026-01-01"] * 3),
            "metrics.acc": [0.5, math.nan, math.nan],
            "params.rate": ["0.1", "0.2", "0.3"],
            "params.kind": ["adam", None, "sgd"],
            "tags.mlflow.user": ["me"] * 3,
        }
    )
    [earlier] = earlier_searches(frame)
    assert [params["rate"] for params in earlier.params] == [0.1, 0.2]
    assert earlier.epochs.tolist() == [1, 0]
    assert earlier.params[0]["kind"] == "adam"
    with pytest.raises(PriorError, match=r"must be one of 'metrics.acc'; got 'auc'"):
        earlier_searches(frame, score="auc")


def test_what_ray_finds():
    frame = pd.DataFrame(
        {
            "loss": [0.5, 0.4],
            "acc": [0.6, 0.7],
            "training_iteration": [3, 5],
            "time_total_s": [1.0, 2.0],
            "trial_id": ["a", "b"],
            "done": [True, False],
            "config/rate": [0.1, 0.2],
            "config/net/depth": [1, 2],
            "logdir": ["x", "y"],
        }
    )
    [earlier] = earlier_searches(frame, score="loss", direction="minimize")
    assert earlier.params[1] == {"rate": 0.2, "net": {"depth": 2}}
    assert earlier.scores.tolist() == [-0.5, -0.4]
    with pytest.raises(PriorError, match="score=, of 'loss', 'acc'"):
        earlier_searches(frame)


def test_what_weights_and_biases_export(csv):
    path = csv(
        '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","rate",'
        '"kind","_step","val_acc"\n'
        '"happy-1","finished","","me","","2026-01-01","12","","0.1","a","9","0.5"\n'
        '"sad-2","failed","","me","","2026-01-01","2","","0.2","a","1","0.3"\n'
        '"busy-3","running","","me","","2026-01-01","2","","0.3","b","1",""\n'
    )
    [earlier] = earlier_searches(path, score="val_acc")
    assert earlier.params == [{"rate": 0.1, "kind": "a"}, {"rate": 0.2, "kind": "a"}]
    assert earlier.epochs.tolist() == [1, 1]  # what failed keeps its score
    [named] = earlier_searches(path)  # it is called as scores are
    assert named.metric == "val_acc"


def test_runs_of_an_api_in_one_table():
    runs = [
        {
            "id": str(k),
            "name": f"happy-{k}",
            "state": state,
            "config": {"rate": 0.1 * k, "net.depth": k, "_wandb": {"t": 1}},
            "summary": {"acc": 0.5 + k, "_step": 9, "_runtime": 3.0},
        }
        for k, state in enumerate(("finished", "finished", "crashed"))
    ]
    frame = pd.json_normalize(runs)
    for score in (None, "acc", "summary.acc"):
        [earlier] = earlier_searches(frame, score=score)
        assert earlier.params[1] == {"rate": 0.1, "net.depth": 1}
        assert earlier.scores.tolist() == [0.5, 1.5, 2.5]
    of_ray = frame.drop(columns=["name", "summary._step"]).assign(time_total_s=1.0)
    assert earlier_searches(of_ray)[0].params == earlier.params


def test_what_cross_validation_writes(tmp_path):
    frame = pd.DataFrame(
        {
            "mean_fit_time": [0.1, 0.1, 0.1],
            "param_C": [0.1, 1.0, 10.0],
            "param_degree": np.ma.array([2, 3, 0], mask=[False, False, True]),
            "params": [{"C": 0.1, "degree": 2}, {"C": 1.0, "degree": 3}, {"C": 10.0}],
            "split0_test_score": [0.5, 0.6, math.nan],
            "mean_test_score": [0.5, 0.6, math.nan],
            "rank_test_score": [2, 1, 3],
        }
    )
    frame.to_csv(tmp_path / "cv.csv")
    for source in (frame, tmp_path / "cv.csv"):
        [earlier] = earlier_searches(source)
        assert earlier.params == [
            {"C": 0.1, "degree": 2},
            {"C": 1, "degree": 3},
            {"C": 10},
        ]
        assert earlier.epochs.tolist() == [1, 1, 0]


def test_parquet_is_read_as_the_frame_was(tmp_path):
    frame = pd.DataFrame(
        {"rate": [0.1, 0.2], "kind": ["a", None], "score": [0.5, 0.6]}, index=[5, 3]
    )
    frame.to_parquet(tmp_path / "runs.parquet")
    for source in (frame, tmp_path / "runs.parquet"):
        [earlier] = earlier_searches(source)
        assert earlier.params[0] == {"rate": 0.1, "kind": "a"}


def test_values_that_no_json_holds_leave_their_runs_out():
    frame = pd.DataFrame(
        {"rate": [0.1, 0.2, 0.3], "x": [1, {1, 2}, [1, 2]], "score": [1.0, 2.0, 3.0]}
    )
    [earlier] = earlier_searches(frame)
    assert earlier.params == [{"rate": 0.1, "x": 1}, {"rate": 0.3, "x": [1, 2]}]


def test_a_column_that_json_cannot_hold_is_named(tmp_path):
    frame = pd.DataFrame(
        {"rate": [0.1, 0.2], "when": pd.to_datetime(["2026"] * 2), "score": [1.0, 2.0]}
    )
    frame.to_parquet(tmp_path / "runs.parquet")
    for source in (frame, tmp_path / "runs.parquet"):
        with pytest.raises(PriorError, match=r"not 'when': leave such columns out"):
            earlier_searches(source)


def test_nested_columns_of_parquet_are_parameters(tmp_path):
    path = tmp_path / "runs.parquet"
    nets = [{"depth": 1, "sizes": [3]}, {"depth": 2, "sizes": [3, 4]}]
    pd.DataFrame({"net": nets, "score": [0.1, 0.2]}).to_parquet(path)
    assert earlier_searches(path)[0].params == [{"net": net} for net in nets]


def gzipped(path):
    path.write_bytes(gzip.compress(path.read_bytes()))
    return path.rename(f"{path}.gz")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "CSV"])
def test_tables_of_text_may_be_packed(csv, suffix):
    cells = "rate;kind;score\n0.1;a,b;0.5\n"
    delimiter = "\t" if suffix == "tsv" else ";"
    path = csv(cells.replace(";", delimiter), f"runs.{suffix}")
    [plain] = earlier_searches(path)
    assert plain.params == [{"rate": 0.1, "kind": "a,b"}]
    [packed] = earlier_searches(gzipped(path))
    assert (packed.params, packed.name) == (plain.params, f"runs.{suffix}.gz")


def test_a_packed_table_that_is_damaged_is_one_error(csv, monkeypatch):
    path = gzipped(csv("rate,score\n" + "0.1,0.5\n" * 999))
    content = path.read_bytes()
    for damaged in (content[:-9], b"rate,score\n0.1,0.5\n"):
        path.write_bytes(damaged)
        with pytest.raises(PriorError, match=r"csv\.gz is damaged"):
            earlier_searches(path)
    path.write_bytes(content)
    monkeypatch.setattr(table_files, "MOST_UNPACKED", 500)
    with pytest.raises(PriorError, match="more than 500 bytes, unpacked: unpack it"):
        earlier_searches(path)


def test_decimal_commas_are_read_where_semicolons_are_between_cells(csv):
    text = "rate;kind;sizes;score\n0,1;a;3;0,5\n1,5e-3;b,c;4;-,25\n"
    [earlier] = earlier_searches(csv(text))
    assert earlier.params == [
        {"rate": 0.1, "kind": "a", "sizes": 3},
        {"rate": 0.0015, "kind": "b,c", "sizes": 4},
    ]
    assert earlier.scores.tolist() == [0.5, -0.25]
    [earlier] = earlier_searches(csv("rate;sizes;score\n0.1;64,32;0.5\n"))
    assert earlier.params == [{"rate": 0.1, "sizes": "64,32"}]


def test_mixed_ends_of_lines_and_many_columns(csv, tmp_path):
    path = tmp_path / "mixed.csv"
    path.write_bytes(b"rate,score\r\n0.1,0.5\n0.2,0.6\r0.3,0.7\r\n")
    assert [one["rate"] for one in earlier_searches(path)[0].params] == [0.1, 0.2, 0.3]
    names = ",".join(f"p{k}" for k in range(3000))
    wide = csv(f"{names},score\n" + f"{'1,' * 3000}0.5\n" * 4)
    assert len(earlier_searches(wide)[0].parameter_names) == 3000


def test_other_delimiters_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "excel.csv"
    path.write_bytes("﻿rate;score\r\n0.1;0.5\r\n".encode())
    assert earlier_searches(path)[0].params == [{"rate": 0.1}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("a,score\n", "has no rows"),
        ("a,b,score\n1,2\n", "row 1 has 2 cells and the header 3"),
        ("a,a,score\n1,2,3\n", "more than one column is called 'a'"),
        ("a,b\nx,y\n", "none of its columns and metrics holds numbers"),
        ("score\n0.5\n", "no column with a parameter"),
        ("a,score\n1,nan\n", "none of its 1 runs has a finite score"),
        ("a,b,c\n1,2,3\n", "score=, of 'a', 'b', 'c'"),
        ("epoch,a,score\nx,1,0.5\n", "row 1 has no number as its epoch"),
        ("a,score\n1,0\0.5\n", "NUL"),
        (f"a,score\n{'x' * 200_000},0.5\n", "is damaged"),
    ],
)
def test_table_that_cannot_be_read_is_one_error(csv, text, message):
    with pytest.raises(PriorError, match=message):
        earlier_searches(csv(text))


def test_huge_numbers_are_read_and_do_no_harm(csv):
    huge = "9" * 5000
    path = csv(f"a,b,score\n1,{huge},0.5\n1,1e999,0.6\n2,1,{huge}\n")
    [earlier] = earlier_searches(path, score="score")
    assert earlier.scores.tolist()[:2] == [0.5, 0.6]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_binary_junk_is_one_error(tmp_path, suffix):
    path = tmp_path / f"junk.{suffix}"
    path.write_bytes(np.random.default_rng(0).bytes(2000))
    with pytest.raises(PriorError):
        earlier_searches(path)

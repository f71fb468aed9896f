"""The pages of TensorBoard, read as its server reads them."""

from searching import a_search
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import (
    EventMultiplexer,
)
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.backend_context import Context
from tensorboard.plugins.hparams.get_experiment import Handler as GetExperiment
from tensorboard.plugins.hparams.list_session_groups import Handler as ListSessionGroups

from risingsearch.integrations.trackers import TensorBoardTracker


def hparams_page(folder):
    """Return what the page is about, and its rows: parameters and metrics."""
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    context = Context(
        TBContext(data_provider=MultiplexerDataProvider(multiplexer, str(folder)))
    )
    experiment = GetExperiment(
        RequestContext(), context, "", api_pb2.GetExperimentRequest()
    ).run()
    request = api_pb2.ListSessionGroupsRequest(
        start_index=0,
        slice_size=100,
        allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_RUNNING],
        include_metrics=True,
    )
    request.col_params.add(metric=experiment.metric_infos[0].name)
    found = ListSessionGroups(RequestContext(), context, "", request).run()
    rows = [
        (
            {name: _value(value) for name, value in group.hparams.items()},
            {one.name.tag: one.value for one in group.metric_values},
        )
        for group in found.session_groups
    ]
    return experiment, rows


def _value(value):
    return getattr(value, value.WhichOneof("kind"))


def test_the_hparams_page_has_the_parameters_and_the_final_score_of_each_arm(tmp_path):
    result = a_search(TensorBoardTracker()).run()
    experiment, rows = hparams_page(tmp_path / "tensorboard")
    assert {info.name for info in experiment.hparam_infos} == {"rate", "kind"}
    assert [info.name.tag for info in experiment.metric_infos] == ["accuracy"]
    assert len(rows) == len(result.curves) == 3
    final = {params["rate"]: metrics["accuracy"] for params, metrics in rows}
    assert {params["kind"] for params, _ in rows} == {"plain"}
    for arm, curve in result.curves.items():
        assert abs(final[result.candidates[arm]["rate"]] - curve[-1]) < 1e-6

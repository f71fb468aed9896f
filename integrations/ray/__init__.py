"""Ray Tune: trials that pause and come back, within an exact budget of epochs.

``RisingScheduler`` takes the place of ``ASHAScheduler`` in ``tune.TuneConfig``;
``results`` reads the reports of trials from the folder of an experiment, and
``TrialState`` saves the state of a PyTorch function trainable.
"""

from risingsearch.errors import needed

with needed("ray[tune]", "ray", of=("ray", "pyarrow", "pandas")):
    from ray import tune  # noqa: F401 - what the rest of the package needs

from risingsearch.integrations.ray.results import results
from risingsearch.integrations.ray.scheduler import RisingScheduler
from risingsearch.integrations.ray.trial_state import TrialState

__all__ = ["RisingScheduler", "TrialState", "results"]

"""Hyperparameter search as a rising bandit.

Every configuration is an arm, training it for one more epoch is a pull, its validation
score is the reward; a policy that knows the budget decides who trains next.

The names below are loaded when they are first used, so importing the package is free.
"""

from __future__ import annotations

__version__: str

__all__ = [
    "POLICIES",
    "Arm",
    "Budget",
    "Callback",
    "Comparison",
    "EpochFacts",
    "Functions",
    "GpuPool",
    "InvalidParameterError",
    "Job",
    "MissingDependencyError",
    "NotTrainableError",
    "PolicyError",
    "PolicyInfo",
    "Report",
    "RisingSearch",
    "RisingSearchCV",
    "RisingSearchError",
    "RunDirError",
    "Scheduler",
    "ScriptError",
    "SearchFacts",
    "SearchFailedError",
    "SearchResult",
    "SetupError",
    "SimulationResult",
    "SlurmExecutor",
    "WorkerError",
    "compare",
    "list_environments",
    "list_policies",
    "make_environment",
    "make_policy",
    "report",
    "simulate",
    "space_of",
]

# A literal, because importing typing would cost more than all the rest.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from risingsearch.arms import Arm, EpochFacts, Job, Report, SearchFacts
    from risingsearch.budget import Budget
    from risingsearch.curves import list_environments, make_environment
    from risingsearch.errors import (
        InvalidParameterError,
        MissingDependencyError,
        NotTrainableError,
        PolicyError,
        RisingSearchError,
        RunDirError,
        ScriptError,
        SearchFailedError,
        SetupError,
        WorkerError,
    )
    from risingsearch.integrations.sklearn import RisingSearchCV
    from risingsearch.policies import POLICIES, PolicyInfo, list_policies, make_policy
    from risingsearch.scheduling.scheduler import Scheduler
    from risingsearch.scripts.report import report
    from risingsearch.search.callbacks import Callback
    from risingsearch.search.gpus import GpuPool
    from risingsearch.search.results import SearchResult
    from risingsearch.search.search import RisingSearch
    from risingsearch.search.slurm.executor import SlurmExecutor
    from risingsearch.search.trainable import Functions
    from risingsearch.simulation import Comparison, SimulationResult, compare, simulate
    from risingsearch.space.by_name import space_of

_MODULES = {
    "POLICIES": "risingsearch.policies",
    "Arm": "risingsearch.arms",
    "Budget": "risingsearch.budget",
    "Callback": "risingsearch.search.callbacks",
    "Comparison": "risingsearch.simulation",
    "EpochFacts": "risingsearch.arms",
    "Functions": "risingsearch.search.trainable",
    "GpuPool": "risingsearch.search.gpus",
    "InvalidParameterError": "risingsearch.errors",
    "Job": "risingsearch.arms",
    "MissingDependencyError": "risingsearch.errors",
    "NotTrainableError": "risingsearch.errors",
    "PolicyError": "risingsearch.errors",
    "PolicyInfo": "risingsearch.policies",
    "Report": "risingsearch.arms",
    "RisingSearch": "risingsearch.search.search",
    "RisingSearchCV": "risingsearch.integrations.sklearn",
    "RisingSearchError": "risingsearch.errors",
    "RunDirError": "risingsearch.errors",
    "Scheduler": "risingsearch.scheduling.scheduler",
    "ScriptError": "risingsearch.errors",
    "SearchFacts": "risingsearch.arms",
    "SearchFailedError": "risingsearch.errors",
    "SearchResult": "risingsearch.search.results",
    "SetupError": "risingsearch.errors",
    "SimulationResult": "risingsearch.simulation",
    "SlurmExecutor": "risingsearch.search.slurm.executor",
    "WorkerError": "risingsearch.errors",
    "compare": "risingsearch.simulation",
    "list_environments": "risingsearch.curves",
    "list_policies": "risingsearch.policies",
    "make_environment": "risingsearch.curves",
    "make_policy": "risingsearch.policies",
    "report": "risingsearch.scripts.report",
    "simulate": "risingsearch.simulation",
    "space_of": "risingsearch.space.by_name",
}


if not TYPE_CHECKING:  # a type checker that saw this would believe any name

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("risingsearch")
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

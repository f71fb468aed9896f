import pytest

from risingsearch import errors
from risingsearch.errors import (
    RisingSearchError,
    SearchFailedError,
    missing,
    unknown_name,
)

TYPES = [
    error
    for error in vars(errors).values()
    if isinstance(error, type) and issubclass(error, Exception)
]


def test_one_except_clause_catches_every_error():
    assert len(TYPES) > 5
    assert all(issubclass(error, RisingSearchError) for error in TYPES)


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("InvalidParameterError", ValueError),
        ("NotTrainableError", TypeError),
        ("MissingDependencyError", ImportError),
        ("SearchFailedError", ValueError),
        ("SearchFailedError", TypeError),
    ],
)
def test_errors_are_also_what_python_calls_them(name, builtin):
    assert issubclass(getattr(errors, name), builtin)


def test_a_missing_package_is_met_with_the_command_that_installs_it():
    error = missing("Optuna", extra="optuna")
    assert isinstance(error, ImportError)
    assert (
        str(error) == 'Optuna is not installed; run: pip install "risingsearch[optuna]"'
    )


def test_an_unknown_name_is_met_with_the_closest_and_all_known_ones():
    error = unknown_name("policy", "ahsa", ["cure-ucb", "asha"])
    assert str(error) == (
        "unknown policy 'ahsa'; did you mean 'asha'? Known: asha, cure-ucb"
    )


def test_no_guess_is_made_where_nothing_is_close():
    error = unknown_name("policy", "zzz", ["asha"])
    assert str(error) == "unknown policy 'zzz'; Known: asha"
    assert str(unknown_name("parameter", 7, [])) == "unknown parameter 7; Known: none"


def test_a_dead_executor_leaves_what_was_found():
    found = object()
    error = SearchFailedError("the executor died", found)
    assert error.result is found
    assert str(error) == "the executor died"

"""Studies in a database, as earlier searches: read, and nothing written."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import optuna
from optuna.exceptions import OptunaError
from optuna.storages import RDBStorage
from optuna.study import Study
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from risingsearch.errors import InvalidParameterError
from risingsearch.storage.run_directory import gc_paused

_Read = TypeVar("_Read")


def read_studies(url: str, read: Callable[[Study], _Read]) -> list[_Read]:
    """Return the result of ``read`` for every study in a database that has trials."""
    # Nothing is made that is not there, and no other storage than a database is read:
    # Optuna may unpickle what those hold.
    where = shown_url(url)
    try:
        storage = RDBStorage(url, skip_table_creation=True)
        try:
            with gc_paused():
                found = []
                for name in optuna.get_all_study_names(storage):
                    study = optuna.load_study(study_name=name, storage=storage)
                    if study.get_trials(deepcopy=False):  # from then on in its cache
                        found.append(read(study))
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except (ImportError, OptunaError, SQLAlchemyError, RuntimeError) as error:
        first = str(error).partition("\n")[0]
        raise InvalidParameterError(
            f"the studies in {where} cannot be read: {first:.300}"
        ) from error
    if not found:
        raise InvalidParameterError(
            f"{where} holds no trials, so nothing can be learnt from it: leave it out"
        )
    return found


def shown_url(url: str) -> str:
    """Return the URL of a database without its password, the same from any folder."""
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (SQLAlchemyError, ValueError) as error:
        raise InvalidParameterError(
            "an Optuna storage is given as the URL of a database, sqlite:///study.db, "
            f"say; got {url!r}: of another storage give the study itself"
        ) from error
    if parsed.get_backend_name() == "sqlite":
        path = Path(parsed.database or "").resolve()
        if not path.is_file():  # SQLite would make it
            raise InvalidParameterError(
                f"there is no file {path} with studies, as {url!r} says"
            )
        parsed = parsed.set(database=str(path))
    return parsed.render_as_string(hide_password=True)

"""The studies in a database, as earlier searches: read, and nothing written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import optuna
import sqlalchemy
from optuna.storages import RDBStorage
from optuna.study import Study
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from risingsearch.checks import shown
from risingsearch.errors import InvalidParameterError
from risingsearch.storage.run_directory import no_collection

TABLES = {"alembic_version", "studies", "trials", "version_info"}

_Read = TypeVar("_Read")


def read_studies(url: str, read: Callable[[Study], _Read]) -> list[_Read]:
    """Return the result of ``read`` for every study in a database that has trials.

    Nothing is made that is not there, and no other storage than a database is read:
    Optuna may unpickle what those hold.
    """
    checked, where = _checked(url), shown_url(url)
    try:
        engine = sqlalchemy.create_engine(checked)
        found = set(sqlalchemy.inspect(engine).get_table_names())
        engine.dispose()
        if not found >= TABLES:
            msg = f"{where} holds no studies: give the storage URL of an Optuna study"
            raise InvalidParameterError(msg)
        storage = RDBStorage(url, skip_table_creation=True)
        try:
            with no_collection():
                return _read_all(storage, where, read)
        finally:
            storage.remove_session()
            storage.engine.dispose()
    except ImportError as error:
        msg = f"{where} needs a package that is not installed: {error}"
        raise InvalidParameterError(msg) from error
    except (SQLAlchemyError, RuntimeError, KeyError, TypeError) as error:
        first = str(error).partition("\n")[0]
        msg = f"the studies in {where} cannot be read: {first:.300}"
        raise InvalidParameterError(msg) from error


def shown_url(url: str) -> str:
    """Return the URL of a database without its password, the same from any folder."""
    checked = _checked(url)
    if checked.get_backend_name() == "sqlite":
        checked = checked.set(database=str(Path(checked.database or "").resolve()))
    return checked.render_as_string(hide_password=True)


def _read_all(
    storage: RDBStorage, where: str, read: Callable[[Study], _Read]
) -> list[_Read]:
    found = []
    for name in optuna.get_all_study_names(storage):
        study = optuna.load_study(study_name=name, storage=storage)
        if study.get_trials(deepcopy=False):  # from then on in its cache
            found.append(read(study))
    if not found:
        msg = f"{where} holds no trials, so nothing can be learnt from it: leave it out"
        raise InvalidParameterError(msg)
    return found


def _checked(url: str) -> URL:
    """Return a URL as its parts; the file that one of SQLite names has to be there."""
    try:
        parsed = make_url(url)
        parsed.get_dialect()
    except (ArgumentError, ValueError) as error:
        msg = (
            "an Optuna storage is given as the URL of a database, sqlite:///study.db, "
            f"say; got {shown(url)}: of another storage give the study itself"
        )
        raise InvalidParameterError(msg) from error
    if parsed.get_backend_name() == "sqlite":
        name = (parsed.database or "").removeprefix("file:")
        if not name or "\0" in name or not Path(name).is_file():
            where = shown(name and str(Path(name).absolute()))
            msg = f"there is no file {where} with studies, as {shown(url)} says"
            raise InvalidParameterError(msg)
    return parsed

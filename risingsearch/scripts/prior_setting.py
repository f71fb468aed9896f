"""The earlier searches that a sweep learns from, as its file names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from risingsearch.errors import missing
from risingsearch.priors import Prior
from risingsearch.priors.sources import Source

try:
    from pydantic import Field, field_validator
except ModuleNotFoundError as error:
    raise missing(str(error.name), "cli") from error

from risingsearch.scripts.space import Strict


class EarlierSetting(Strict):
    """An earlier search: where it is, and which of its columns is the score."""

    path: Annotated[str, Field(min_length=1)]
    score: Annotated[str, Field(min_length=1)] | None = None
    direction: Literal["maximize", "minimize"] | None = None
    name: Annotated[str, Field(min_length=1)] | None = None

    def source(self, folder: Path) -> Source:
        """As a search takes it; a path is one from this folder."""
        is_url = "://" in self.path
        where = self.path if is_url else folder / self.path
        return Source(where, self.score, self.direction, self.name)


class PriorSetting(Strict):
    """The earlier searches, and whether those that are of no use here are skipped."""

    searches: list[EarlierSetting]
    skip_unusable: bool = False

    @field_validator("searches", mode="before")
    @classmethod
    def _as_mappings(cls, value: Any) -> Any:
        given = value if isinstance(value, list) else [value]
        for one in given:
            if not isinstance(one, (str, dict)):
                got = f"; got {one!r}" if isinstance(value, list) else ""
                msg = f"an earlier search is a path, or a mapping with path{got}"
                raise ValueError(msg)
        return [{"path": one} if isinstance(one, str) else one for one in given]

    def prior(self, folder: Path) -> Prior:
        """As a search takes it; paths are from this folder."""
        searches = [setting.source(folder) for setting in self.searches]
        return Prior(searches, self.skip_unusable)

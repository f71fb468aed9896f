"""Online model selection on IMDB: recorded learning curves, and learners trained live.

Section 6.3 of the CURE-UCB paper (Song et al., arXiv 2602.10727), with the experiment
of Metelli et al. 2022 that it takes up.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers.cure_ucb.imdb import live, replay, text
from benchmarks.papers.cure_ucb.imdb.settings import Found, has_curves
from benchmarks.shared import report
from risingsearch.errors import InvalidParameterError

REPLAY, LIVE = "replay", "live"


def run(
    out: Path,
    *,
    scale: str,
    seed: int,
    jobs: int | None = None,
    data_dir: Path | None = None,
    mode: str | None = None,
) -> None:
    """Play one mode, or all modes whose data are available."""
    chosen = modes(data_dir, mode)
    found: dict[str, Found] = {}
    # Loaded first, so that what is missing fails before anything is played.
    features = text.features(data_dir, out / "cache") if LIVE in chosen else None
    if REPLAY in chosen:
        replayed = replay.Study(data_dir, replay.SCALES[scale], seed, jobs)
        found["## Recorded curves, replayed"] = replay.measure(replayed, out)
    if features is not None:
        trained = live.Study(features, data_dir, live.SCALES[scale], seed, jobs)
        found["## Learners trained live"] = live.measure(trained, out)
    rows = [row for part in found.values() for row in part.rows]
    columns = dict.fromkeys(column for row in rows for column in row)
    report.write_results(out, [dict.fromkeys(columns, "") | row for row in rows])
    bars = [bar for part in found.values() for bar in part.bars]
    parts = [
        paragraph
        for title, part in found.items()
        for paragraph in (title, *part.paragraphs)
    ]
    title = "CURE-UCB paper, online model selection on IMDB"
    report.write_summary(out, title, ["## The bars", report.table(bars), *parts])


def modes(data_dir: Path | None, mode: str | None = None) -> list[str]:
    """Return what to play: the mode, or all for which the folder has the data.

    Raises
    ------
    InvalidParameterError
        If the folder lacks what is needed; live, the Hub may have it.
    """
    if mode == LIVE:
        return [LIVE]
    found = [REPLAY] if has_curves(data_dir) else []
    if mode is None and text.is_local(data_dir):
        found.append(LIVE)
    if not found:
        needed = "imdb_curves" if mode else "imdb_curves or imdb_text"
        msg = (
            f"data_dir={data_dir} holds no {needed}: give --data-dir a folder that "
            "does, or --mode live to load the reviews from the Hugging Face Hub"
        )
        raise InvalidParameterError(msg)
    return found

"""The IMDB reviews as bags of words: loaded by ``datasets``, counted once, cached."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.errors import InvalidParameterError, missing

N_WORDS = 1000
SPLITS = ("train", "test")
TEXT_FOLDER = "imdb_text"
VOCABULARY = Path("imdb_curves", "vocab_first_1000.txt")

# As in the bag-of-words files that come with the data set: words joined by hyphens and
# apostrophes stay whole, a possessive 's is dropped, "!" and "?" count as words.
TOKEN = r"(?!(?<=')s\b)[^\W_]+(?:[-'](?!s\b)[^\W_]+)*|[!?]"
NO_WORDS = ["br"]  # of the <br /> in the texts


class Reviews(NamedTuple):
    """What the learners see of the reviews."""

    counts: NDArray[np.uint16]  # (n_reviews, n_words), raw
    labels: NDArray[np.uint8]  # (n_reviews,), 1: positive


def is_local(data_dir: Path | None) -> bool:
    """Return whether the folder holds the reviews."""
    if data_dir is None:
        return False
    return all(Path(file).is_file() for file in _files(data_dir).values())


def features(data_dir: Path | None, cache: Path) -> Path:
    """Return the file with the reviews as counts; write it if it does not exist.

    Its name is a digest of texts, labels, words and the rule that counts them.
    """
    texts, labels = load_texts(data_dir)
    words = _words(data_dir)
    path = cache / f"imdb-{_digest(texts, labels, words)}.npz"
    if not path.is_file():
        print(f"counting the words of {len(texts):,} reviews", file=sys.stderr)
        cache.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".partial.npz")
        np.savez_compressed(partial, counts=count(texts, words), labels=labels)
        partial.replace(path)
    return path


def load(path: Path) -> Reviews:
    """Return the reviews from the file that ``features`` names."""
    with np.load(path, allow_pickle=False) as kept:
        return Reviews(kept["counts"], kept["labels"])


def load_texts(data_dir: Path | None) -> tuple[list[str], NDArray[np.uint8]]:
    """Return the texts and labels of all labelled reviews, from a folder or the Hub.

    Raises
    ------
    MissingDependencyError
        If ``datasets`` is not installed.
    InvalidParameterError
        If the reviews are neither in the folder nor within reach.
    """
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise missing("datasets", "bench") from error
    if data_dir is not None and is_local(data_dir):
        splits = load_dataset("parquet", data_files=_files(data_dir))
    else:
        try:
            splits = load_dataset("stanfordnlp/imdb")
        except OSError as error:
            where = "" if data_dir is None else f" not in {data_dir} and"
            msg = (
                f"the reviews are{where} not available from the Hugging Face Hub "
                f"({error}): give --data-dir a folder that holds {TEXT_FOLDER}/"
                "train.parquet and test.parquet, or connect to the network"
            )
            raise InvalidParameterError(msg) from error
    texts = [text for split in SPLITS for text in splits[split]["text"]]
    labels = [label for split in SPLITS for label in splits[split]["label"]]
    return texts, np.array(labels, dtype=np.uint8)


def count(texts: list[str], words: list[str] | None) -> NDArray[np.uint16]:
    """Return how often each text has each word, by default the most frequent words."""
    from sklearn.feature_extraction.text import CountVectorizer

    counter = CountVectorizer(
        token_pattern=TOKEN,
        vocabulary=words,
        max_features=None if words else N_WORDS,
        stop_words=None if words else NO_WORDS,
        dtype=np.int32,
    )
    counts = counter.fit_transform(texts)
    dense: NDArray[np.uint16] = counts.astype(np.uint16).toarray()
    return dense


def has_vocabulary(data_dir: Path | None) -> bool:
    """Return whether the folder holds the published list of words."""
    return data_dir is not None and (data_dir / VOCABULARY).is_file()


def _words(data_dir: Path | None) -> list[str] | None:
    if data_dir is None or not has_vocabulary(data_dir):
        return None
    return (data_dir / VOCABULARY).read_text(encoding="utf-8").split()


def _files(data_dir: Path) -> dict[str, str]:
    folder = data_dir / TEXT_FOLDER
    return {split: str(folder / f"{split}.parquet") for split in SPLITS}


def _digest(
    texts: list[str], labels: NDArray[np.uint8], words: list[str] | None
) -> str:
    digest = hashlib.sha256()
    for part in (TOKEN, *(words or NO_WORDS), *texts):
        digest.update(part.encode() + b"\0")
    digest.update(labels.tobytes())
    return digest.hexdigest()[:16]

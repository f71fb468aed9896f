"""YAML 1.2 (and so JSON) files of plain values, and the mistakes in them."""

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from risingsearch.errors import InvalidParameterError

Problem = Mapping[str, Any]  # as pydantic describes it
Keys = Mapping[str, Sequence[str]]  # of a file, by the place that has them
SHOWN = 5  # problems in a message
LONGEST = 500  # characters of each
MOST_VALUES = 1_000_000  # in a file, once its aliases are written out
MOST_MERGED = 100_000  # keys that merges bring
MERGE = "<<"
_WORDS = {  # other words than those of pydantic
    "missing": "is missing",
    "model_type": "must be a mapping",
    "model_attributes_type": (
        "must be a mapping such as {type: choice, values: [1, 2]} or "
        "{type: log-uniform, low: 1e-5, high: 0.1}"
    ),
    "union_tag_not_found": "needs a type",
    "dict_type": "must be a mapping",
}
_EXAMPLES = {
    "command": '[python, train.py, "--lr={lr}"]',
    "environment": "[{CUDA_VISIBLE_DEVICES: 0}], a mapping for each worker",
    "timeout": "28800, in seconds",
}
_OLD = re.compile(r"^%YAML\s+1\.[01]\b", re.MULTILINE)


def read_yaml(path: Path) -> Any:
    """Return the values in a YAML or JSON file, or raise an error with its line."""
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or error
        raise InvalidParameterError(f"{path} cannot be read ({problem})") from error
    try:
        return load_yaml(text.decode())
    except (YAMLError, ValueError, RecursionError) as error:
        raise InvalidParameterError(
            f"{path} is not valid YAML: {_problem_of(error)}"
        ) from error


def load_yaml(text: str) -> Any:
    """Return the values of a YAML document; ``on``, ``NO`` and dates are text."""
    if found := _OLD.search(text):
        raise ValueError(
            f"{found[0]} would have words such as on be true: leave it out"
        )
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.constructor.flatten_mapping = lambda node: None  # `_MergedValues` merges
    allowed = yaml.constructor.yaml_constructors
    as_text = {
        f"tag:yaml.org,2002:{kind}": allowed["tag:yaml.org,2002:str"]
        for kind in ("timestamp", "value", "merge")
    }
    yaml.constructor.yaml_constructors = allowed | as_text
    values = yaml.load(text)
    if _MergedValues().size(values) > MOST_VALUES:
        raise ValueError(
            f"its aliases stand for more than {MOST_VALUES:,} values: write fewer"
        )
    return values


class _MergedValues:
    """Values whose merges are written out, each once: an alias is the same object."""

    def __init__(self) -> None:
        self._sizes: dict[int, int | None] = {}  # None until all inside is counted
        self._n_merged = 0

    def size(self, value: Any) -> int:
        """Write the merges inside out, and return how many values there then are."""
        if not isinstance(value, dict | list):
            return 1
        if id(value) not in self._sizes:
            self._sizes[id(value)] = None
            if isinstance(value, dict) and MERGE in value:
                self._merge(value, value.pop(MERGE))
            inside = value.values() if isinstance(value, dict) else value
            self._sizes[id(value)] = 1 + sum(map(self.size, inside))
        if (n_values := self._sizes[id(value)]) is None:
            raise ValueError("an alias stands inside of what it names")
        return n_values

    def _merge(self, mapping: dict[Any, Any], sources: Any) -> None:
        """Put the keys of others before those of a mapping, which has the last word."""
        if not isinstance(sources, list):
            sources = [sources]
        own = dict(mapping)
        mapping.clear()
        once = {id(source): source for source in sources}
        for source in reversed(once.values()):  # the first goes before the others
            if not isinstance(source, dict):
                raise ValueError(f"{MERGE} merges mappings, or lists of them")
            self.size(source)
            self._n_merged += len(source)
            if self._n_merged > MOST_MERGED:
                msg = f"its merges ({MERGE}) bring more than {MOST_MERGED:,} keys"
                raise ValueError(f"{msg}: write fewer")
            mapping.update(source)
        mapping.update(own)


def unusable_text(values: Any, place: str = "") -> str | None:
    """Return the place of a text that no process can be given; None without one."""
    if isinstance(values, str):
        return place if re.search("[\0\ud800-\udfff]", values) else None
    if isinstance(values, list):
        values = dict(enumerate(values))
    for key, value in values.items() if isinstance(values, dict) else ():
        at = f"{place}.{key}".lstrip(".")
        if unusable := unusable_text(value, at) or unusable_text(key, at):
            return unusable
    return None


def _problem_of(error: Exception) -> str:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        problem = str(error.problem).partition("\n")[0]
        if problem.startswith("but "):
            problem = f"{error.context}, {problem}"
        return f"line {error.problem_mark.line + 1}: {problem}"
    return " ".join(str(error).split())


def problems_of(error: ValidationError, tagged: Mapping[str, int], keys: Keys) -> str:
    """Return all problems in one sentence each."""
    # `tagged` says which part of a place is no key of the file, by the first part.
    problems = error.errors(include_url=False)
    problems.sort(key=lambda one: one["type"] != "extra_forbidden")  # may cause others
    shown = [_sentence(each, tagged, keys) for each in problems[:SHOWN]]
    return "; ".join(shown + ["and more"] * (len(problems) > SHOWN))


def _sentence(problem: Problem, tagged: Mapping[str, int], keys: Keys) -> str:
    place = [str(part) for part in problem["loc"] if part != "[key]"]
    form = ""
    if place and (tag := tagged.get(place[0])) and len(place) > tag:
        form = place.pop(tag)
    where = ".".join(place)
    if problem["type"] == "extra_forbidden":
        words = _unknown_key(place, form, keys)
    elif problem["type"] == "union_tag_invalid":
        where += f".{problem['ctx']['discriminator'].strip(chr(39))}"
        words = _unknown_form(problem["ctx"])
    elif problem["type"] == "missing" and where == "budget":
        words = (
            "is missing: say when the search ends, by budget: 300 for 300 epochs in "
            "all, or by timeout: 600 for 600 seconds of wall-clock time"
        )
    else:
        where, words = _in_words(problem, where)
    return f"{_cut(where)} {_cut(words + _given(problem))}".lstrip()


def _unknown_key(place: list[str], form: str, keys: Keys) -> str:
    if own := keys.get(f"{place[0]}.*.{form}"):
        return f"is no key of {form}, which has {', '.join(sorted(own))}"
    return f"is no key of a sweep here{_hint(place, keys)}"


def _unknown_form(context: Mapping[str, str]) -> str:
    tags = context["expected_tags"]
    hint = _meant(context["tag"], tags.replace("'", "").split(", "))
    return f"must be one of {tags}; got {_cut(json.dumps(context['tag']))}{hint}"


def _meant(word: str, allowed: Iterable[str]) -> str:
    """Return the word that was meant, in parentheses; empty if none is alike."""
    meant = difflib.get_close_matches(word, allowed, n=1)
    if meant:
        return f" (did you mean {meant[0]}?)"
    return ""


def _in_words(problem: Problem, where: str) -> tuple[str, str]:
    """Return the place of a problem, and its cause."""
    words = str(problem["msg"])
    if problem["type"] == "value_error":
        return where and f"{where}:", words.removeprefix("Value error, ")
    if known := _WORDS.get(problem["type"]):
        return where or "the file", known
    if not words.startswith("Input should "):  # as pydantic begins its sentences
        return f"{where or 'the file'}:", words
    example = _EXAMPLES.get(where.removeprefix("epoch_"))
    such = ""
    if example and _is_of_type(problem):
        such = f" such as {example}"
    return where or "the file", words.replace("Input should", "must") + such


def _is_of_type(problem: Problem) -> bool:
    """Whether a value is of another type than it should be."""
    return str(problem["type"]).endswith("_type")


def _given(problem: Problem) -> str:
    value = problem.get("input")
    if not isinstance(value, dict | list | None):
        return f"; got {_cut(json.dumps(value, default=str))}"
    if value is not None and _is_of_type(problem):  # whose values may be secrets
        return f"; got a {'list' if isinstance(value, list) else 'mapping'}"
    return ""


def _hint(place: list[str], keys: Keys) -> str:
    """Return the key that was meant, or where the key belongs."""
    *above, key = place
    allowed = keys.get(".".join(above)) or keys.get(f"{place[0]}.*", ())
    inside = [at for at in keys if at and "*" not in at and key in keys[at]]
    stands = ""
    if inside:
        stands = f" (it stands below {inside[0]})"
    return _meant(key.lower(), allowed) or stands


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}..."

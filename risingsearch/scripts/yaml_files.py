"""YAML 1.2 (and so JSON) files of plain values, and the mistakes in them."""

import difflib
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from risingsearch.errors import InvalidParameterError

SHOWN = 5  # problems in a message
LONGEST = 500  # characters of each
_WORDS = {  # other words than those of pydantic
    "missing": "is missing",
    "model_type": "must be a mapping",
    "model_attributes_type": (
        "must be a mapping such as {type: choice, values: [1, 2]} or "
        "{type: log-uniform, low: 1e-5, high: 0.1}"
    ),
    "union_tag_not_found": "needs a type",
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
        msg = f"{path} is not valid YAML: {_problem_of(error)}"
        raise InvalidParameterError(msg) from error


def load_yaml(text: str) -> Any:
    """Return the values of a YAML document; ``on``, ``NO`` and dates are text."""
    if found := _OLD.search(text):
        msg = f"{found[0]} would have words such as on be true: leave it out"
        raise ValueError(msg)
    yaml: Any = YAML(typ="safe", pure=True)
    allowed, tag = yaml.constructor.yaml_constructors, "tag:yaml.org,2002:"
    as_text = {f"{tag}{kind}": allowed[f"{tag}str"] for kind in ("timestamp", "value")}
    yaml.constructor.yaml_constructors = allowed | as_text
    return yaml.load(text)


def dump_yaml(values: Any) -> str:
    """Return values as a YAML document."""
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None
    yaml.sort_base_mapping_type_on_output = False
    yaml.representer.ignore_aliases = lambda data: True
    yaml.width = 88
    written = io.StringIO()
    yaml.dump(values, written)
    return written.getvalue()


def _problem_of(error: Exception) -> str:
    if isinstance(error, MarkedYAMLError) and error.problem_mark is not None:
        problem = str(error.problem).partition("\n")[0]
        if problem.startswith("but "):
            problem = f"{error.context}, {problem}"
        return f"line {error.problem_mark.line + 1}: {problem}"
    return " ".join(str(error).split())


def problems_of(
    error: ValidationError, tagged: Mapping[str, int], keys: Mapping[str, Sequence[str]]
) -> str:
    """Return all problems in one sentence each."""
    # `tagged` says which part of a place is no key of the file, by the first part;
    # `keys` are those that the file may have, by the place that has them.
    problems = error.errors(include_url=False)
    problems.sort(key=lambda one: one["type"] != "extra_forbidden")  # may cause others
    shown = [_sentence(each, tagged, keys) for each in problems[:SHOWN]]
    return "; ".join(shown + ["and more"] * (len(problems) > SHOWN))


def _sentence(
    problem: Mapping[str, Any],
    tagged: Mapping[str, int],
    keys: Mapping[str, Sequence[str]],
) -> str:
    place, form = [str(part) for part in problem["loc"]], ""
    if place and (tag := tagged.get(place[0])) and len(place) > tag:
        form = place.pop(tag)
    where, words = ".".join(place), str(problem["msg"])
    is_of_type = problem["type"].endswith("_type")  # which it should have
    if problem["type"] == "extra_forbidden":
        words = f"is no key of a sweep here{_hint(place, keys)}"
        if own := keys.get(f"{place[0]}.*.{form}"):
            words = f"is no key of {form}, which has {', '.join(sorted(own))}"
    elif problem["type"] == "union_tag_invalid":
        tag, tags = problem["ctx"]["tag"], problem["ctx"]["expected_tags"]
        meant = difflib.get_close_matches(tag, tags.replace("'", "").split(", "), n=1)
        hint = f" (did you mean {meant[0]}?)" if meant else ""
        where += f".{problem['ctx']['discriminator'].strip(chr(39))}"
        words = f"must be one of {tags}; got {_cut(json.dumps(tag))}{hint}"
    elif problem["type"] == "missing" and where == "budget":
        words = (
            "is missing: say when the search ends, by budget: 300 for 300 epochs in "
            "all, or by timeout: 600 for 600 seconds of wall-clock time"
        )
    elif problem["type"] in _WORDS:
        words = _WORDS[problem["type"]]
    elif words.startswith("Input should "):  # as pydantic begins its sentences
        words = words.replace("Input should", "must")
        if is_of_type and (one := _EXAMPLES.get(where.removeprefix("epoch_"))):
            words += f" such as {one}"
    else:
        where, words = where and f"{where}:", words.removeprefix("Value error, ")
    if problem["type"] != "value_error":
        where = where or "the file"
    value = problem.get("input")
    if not isinstance(value, dict | list | None):
        words += f"; got {_cut(json.dumps(value, default=str))}"
    elif value is not None and is_of_type:  # whose values may be secrets
        words += f"; got a {'list' if isinstance(value, list) else 'mapping'}"
    return f"{_cut(where)} {_cut(words)}".lstrip()


def _hint(place: list[str], keys: Mapping[str, Sequence[str]]) -> str:
    """Return the key that was meant, or where the key belongs."""
    allowed = keys.get(".".join(place[:-1])) or keys.get(f"{place[0]}.*", ())
    if meant := difflib.get_close_matches(place[-1].lower(), allowed, n=1):
        return f" (did you mean {meant[0]}?)"
    inside = [at for at in keys if at and "*" not in at and place[-1] in keys[at]]
    return f" (it stands below {inside[0]})" if inside else ""


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."

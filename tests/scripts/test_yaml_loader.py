"""YAML means what it looks like."""

import pytest
import yaml

from risingsearch.scripts import yaml_loader
from risingsearch.scripts.yaml_loader import load_yaml


def test_numbers_without_a_dot():
    assert load_yaml("[1e-4, -2E3, .5e1, 1.0e-4, 1e, 0x1F]") == [
        1e-4,
        -2000.0,
        5.0,
        1e-4,
        "1e",
        31,
    ]


def test_a_key_stands_once():
    with pytest.raises(yaml.YAMLError, match="the key 'lr' stands twice"):
        load_yaml("{a: {lr: 1, lr: 2}}")
    assert load_yaml("base: &b {x: 1}\nother: {<<: *b, y: 2}")["other"] == {
        "x": 1,
        "y": 2,
    }


def test_nothing_is_run():
    with pytest.raises(yaml.YAMLError):
        load_yaml("!!python/object/apply:os.system ['true']")


def bomb(first, inner):
    """Return a document whose every line has nine times what the line before has."""
    lines = [f"a0: &a0 {first}"]
    lines += [
        f"a{i}: &a{i} " + inner % ", ".join([f"*a{i - 1}"] * 9) for i in range(1, 40)
    ]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (bomb("[x, x]", "[%s]"), "more than 5,000 keys and values"),
        (bomb("{x: 1}", "{<<: [%s]}"), "more than 5,000 keys and values"),
        ("\n".join(f"k{i}: {i}" for i in range(30_000)), "more than 5,000 keys"),
        ("&a [*a]", "an alias stands inside what it names"),
        ("a: &a {b: [1, *a]}", "an alias stands inside what it names"),
        ("a: &a {<<: *a}", "an alias stands inside what it names"),
        ("[" * 5000, "more than 50 lists and mappings deep"),
        ("- " * 5000, "more than 50 lists and mappings deep"),
        ("a: " + "1" * 5000, "a number has at most 100 characters"),
        ("a: -0x" + "f" * 5000, "a number has at most 100 characters"),
        ("a: " + ":".join("1" * 5000), "a number has at most 100 characters"),
        ("a: 1." + "0" * 5000, "a number has at most 100 characters"),
        ("a: 1:30", "1:30 would be read as another number"),
        ("a: -1:30.5", "-1:30.5 would be read as another number"),
        ("a: 010", "010 would be read as another number"),
        ("a: 0x_", "invalid literal for int"),
        ("a: 2020-01-01", "'timestamp' is no kind of value here"),
        ("a: 2020-01-01 10:00:00", "'timestamp' is no kind of value here"),
        ("a: =", "'value' is no kind of value here"),
        ("a: !!set {x}", "the tag 'tag:yaml.org,2002:set' is not allowed"),
        ("a: !!binary aGk=", "the tag 'tag:yaml.org,2002:binary' is not allowed"),
        ("a: !!int x", "the tag 'tag:yaml.org,2002:int' is not allowed"),
        ("{[1]: 2}", "a list or a mapping cannot be a key"),
        ("? {a: 1}\n: 2", "a list or a mapping cannot be a key"),
        ("a: 1\n---\nb: 1", "expected a single document"),
    ],
)
def test_what_would_blow_up_is_refused_in_a_sentence(text, problem):
    with pytest.raises(yaml.YAMLError, match=problem):
        load_yaml(text)


@pytest.mark.parametrize("text", [bomb("[x]", "[%s]"), "[" * 5000, "k,\n" * 10**5])
def test_what_is_refused_is_not_read_to_its_end(text, monkeypatch):
    n_composed = 0
    compose = yaml_loader._Loader.compose_node

    def counted(self, parent, index):
        nonlocal n_composed
        n_composed += 1
        return compose(self, parent, index)

    monkeypatch.setattr(yaml_loader._Loader, "compose_node", counted)
    with pytest.raises(yaml.YAMLError):
        load_yaml(f"[{text}")
    assert n_composed <= yaml_loader.MOST_NODES + 1


def test_aliases_and_long_text_are_fine():
    values = ", ".join(map(str, range(1000)))
    found = load_yaml(f"a: &a [{values}]\nb: *a\nc: {'x1' * 5000}\nd: '{'1' * 500}'")
    assert found["a"] == found["b"] == list(range(1000))
    assert found["c"] == "x1" * 5000
    assert found["d"] == "1" * 500

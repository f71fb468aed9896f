"""YAML means what it looks like."""

import pytest
import yaml

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

"""The picture of the house in CONTRIBUTING.md shows the folders that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOUSES = ("risingsearch", "integrations", "benchmarks")
ROOM = re.compile(r"^((?:[|] {3}| {4}|[|]-- |`-- )*)(\w+)/(?: |$)")
INDENT = 4  # characters for each level of the tree


def drawing():
    """Return the lines of the picture."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    return re.search(r"^## The layout$.*?^```\n(.*?)^```$", text, re.M | re.S)[1]


def drawn():
    """Return the folders of the picture, from the root of the repository."""
    path = []
    folders = []
    for line in filter(None, drawing().splitlines()):
        indent, name = ROOM.match(line).groups()
        path[len(indent) // INDENT :] = [name]
        folders.append("/".join(path))
    return folders


def rooms(house):
    """Return the house and all folders in it that hold modules."""
    modules = (ROOT / house).rglob("*.py")
    return {
        module.parent.relative_to(ROOT).as_posix()
        for module in modules
        if "integrations" not in module.relative_to(ROOT / house).parts
    }


@pytest.mark.parametrize("house", HOUSES)
def test_the_picture_shows_every_room_and_no_other(house):
    shown = [room for room in drawn() if room.split("/")[0] == house]
    assert sorted(shown) == sorted(rooms(house))


def test_the_picture_shows_nothing_else():
    assert {room.split("/")[0] for room in drawn()} == set(HOUSES)


def test_the_root_of_the_package_holds_what_the_picture_says():
    says = re.search(r"^risingsearch/ +([\w, ]+): no other module", drawing(), re.M)[1]
    folders = {room.split("/")[1] for room in drawn() if room.count("/") == 1}
    there = {path.name for path in (ROOT / "risingsearch").iterdir()} - {"__pycache__"}
    assert {name for name in there if name.endswith(".py")} == {
        f"{name}.py" for name in says.split(", ")
    }
    others = {name for name in there if not name.endswith(".py")}
    assert others - folders == {"integrations", "py.typed"}

"""The recipes of the documents that turn runs of other tools into data frames."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "earlier-searches.md"


def recipe(name):
    """Return the function of this name from the page."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    [text] = [block for block in blocks if f"def {name}(" in block]
    names = {}
    exec(compile(text, PAGE, "exec"), names)
    return names[name]

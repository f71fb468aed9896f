"""Writes the reference: a page for each public module, with what ``__all__`` names."""

import gc
import importlib
import inspect
import re
from pathlib import Path

from sphinx.util.osutil import FileAvoidWrite

from risingsearch.policies import POLICIES

MODULES = {
    "risingsearch": "Searches and schedulers",
    "risingsearch.policies": "Policies by name",
    "risingsearch.curves": "Environments and learning curves",
    "risingsearch.simulation": "Simulation",
    "risingsearch.priors": "Earlier searches",
    "risingsearch.plotting": "Figures",
    "risingsearch.testing": "Checks of your own policies and trainables",
    "risingsearch.errors": "Errors",
    "risingsearch.integrations.torch": "PyTorch",
    "risingsearch.integrations.torch.lightning": "Lightning",
    "risingsearch.integrations.torch.huggingface": "Hugging Face",
    "risingsearch.integrations.optuna": "Optuna",
    "risingsearch.integrations.ray": "Ray Tune",
    "risingsearch.integrations.dask": "Dask",
    "risingsearch.integrations.dask.slurm": "Dask on Slurm",
    "risingsearch.integrations.trackers": "Trackers",
}
PAGE = """\
{title}
{line}

.. automodule:: {module}
   :no-members:

.. autosummary::

   {names}

{details}
"""
INDEX = """\
API
===

Every public name, by module. :doc:`Policies have pages of their own
</generated/policies/index>`.

.. toctree::
   :maxdepth: 1

   {pages}
"""
INHERITED = "BaseEstimator, Exception, tuple, dict, Callback, TrainerCallback, Executor"
ROLE = re.compile(r":(?:term|ref):`([^`<]+?)\s*(?:<[^>`]*>)?`")
POLICY_CLASSES = [create.__self__ for create in POLICIES.values()]


def own_names(module):
    """Return the public names of a module."""
    return getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "") == module.__name__ and name[0] != "_"
    ]


def is_error(value):
    """Return whether a value belongs on the page of the errors."""
    return inspect.isclass(value) and issubclass(value, Exception)


def directive(name, value):
    """Return what documents a value in full."""
    if inspect.isclass(value):
        options = f"   :members:\n   :inherited-members: {INHERITED}\n"
        return f".. autoclass:: {name}\n{options}"
    kind = "function" if inspect.isroutine(value) else "data"
    return f".. auto{kind}:: {name}\n"


def module_page(name, title, documented):
    """Return the page of a module, with what no page before it has documented."""
    module = importlib.import_module(name)
    new = {}
    for short in sorted(own_names(module), key=str.lower):
        value = getattr(module, short)
        if is_error(value) == name.endswith("errors") and id(value) not in documented:
            new[short] = value
            documented.add(id(value))
    return PAGE.format(
        title=title,
        line="=" * len(title),
        module=name,
        names="\n   ".join(new),
        details="\n".join(directive(short, value) for short, value in new.items()),
    )


def write_pages(app, config):
    """Write the pages of all modules, and one that lists them."""
    folder = Path(app.srcdir) / "generated" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    documented = {id(policy) for policy in POLICY_CLASSES}
    pages = {
        name: module_page(name, title, documented) for name, title in MODULES.items()
    }
    pages["index"] = INDEX.format(pages="\n   ".join(MODULES))
    for name, text in pages.items():
        with FileAvoidWrite(folder / f"{name}.rst") as file:
            file.write(text)
    gc.freeze()  # what has been imported, of which each collection would take a second


def skip_fields(app, what, name, value, skip, options):
    """Skip the fields of named tuples: ``Parameters`` documents them."""
    return True if type(value).__name__ == "_tuplegetter" else None


def without_fields(app, what, name, value, options, signature, returned):
    """Show no signature for policies, which ``create`` makes."""
    return ("", None) if value in POLICY_CLASSES else None


def without_roles(app, what, name, value, options, lines):
    """Write roles that name scikit-learn's glossary and guide as their text."""
    lines[:] = ROLE.sub(r"``\1``", "\n".join(lines)).split("\n")


def setup(app):
    """Connect to what Sphinx does."""
    app.connect("config-inited", write_pages)
    app.connect("autodoc-skip-member", skip_fields)
    app.connect("autodoc-process-docstring", without_roles)
    app.connect("autodoc-process-signature", without_fields)
    return {"parallel_read_safe": True}

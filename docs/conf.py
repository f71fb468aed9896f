"""How Sphinx makes the site of these pages: see CONTRIBUTING.md."""

import functools
import gc
import os
import sys
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from numpydoc import docscrape_sphinx

import risingsearch

os.environ["OMP_NUM_THREADS"] = "1"  # models this small only wait for more threads

gc.set_threshold(100_000)  # else a tenth of the build is collections of garbage

# numpydoc loads its template for each docstring: compile it once.
docscrape_sphinx.SandboxedEnvironment = functools.partial(
    docscrape_sphinx.SandboxedEnvironment, bytecode_cache=FileSystemBytecodeCache()
)

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "extensions"))

project = "risingsearch"
author = copyright = "the risingsearch developers"
version = release = risingsearch.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "sphinx_reredirects",
    "formulas",
    "forge_pages",
    "api_pages",
    "policy_pages",
    "linked_names",
]
exclude_patterns = ["_build", "coming-from/*/*", "generated/examples/*.py"]

myst_heading_anchors = 4
nb_execution_mode = "off"  # the tests run the notebooks

autosummary_generate = False  # a page for each module, not for each name
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections name the types
numpydoc_show_class_members = False
copybutton_exclude = ".linenos, .gp, .go"  # of a session only what is typed

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/examples",
    "filename_pattern": r"/(?!07_ray)\w+\.py$",  # Ray starts slowly: a test runs it
    "within_subsection_order": "FileNameSortKey",
    "notebook_extensions": set(),
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "capture_repr": (),  # what an example shows it prints or draws
    "min_reported_time": 1e9,  # a time says more of the machine than of the example
    "reset_modules": ("matplotlib",),
    "abort_on_example_error": True,
}

redirects = {  # addresses of former pages
    "candidates": "policies.html#how-many-configurations",
    "choosing-a-policy": "policies.html",
    "dask": "clusters.html#dask",
    "gpus": "several-jobs.html#gpus",
    "grace-and-patience": "budgets.html#early-stop",
    "kubernetes": "clusters.html#kubernetes",
    "parallel-jobs": "several-jobs.html",
    "pausing": "resuming.html#the-cost-of-a-pause",
    "platforms": "resuming.html#platforms",
    "report": "results.html#the-report",
    "scheduler": "how-it-works.html#your-own-loop",
    "scikit-learn-metadata": "scikit-learn-estimators.html#weights-groups-and-metadata",
    "scikit-learn-migrating": "coming-from.html#scikit-learns-halving-search",
    "scikit-learn-results": "scikit-learn.html#results",
    "scikit-learn-running": "scikit-learn.html#several-jobs-at-once",
    "simulate-in-python": "simulation.html#named-environments",
    "simulate-your-own": "simulation.html#your-own-policy",
    "slurm": "clusters.html#slurm-for-scripts",
    "slurm-dask": "clusters.html#slurm-by-dask",
}

html_theme = "furo"
pygments_dark_style = "github-dark"  # the theme's underlines modules like links
html_theme_options = {  # the theme's red cannot be read where a link has led
    "dark_css_variables": {"color-api-name": "#ff7b72", "color-api-pre-name": "#ff7b72"}
}
html_math_renderer = "mathml"
html_title = "risingsearch"
html_static_path = ["static", "images"]  # HTML in the README needs the images there
html_css_files = ["site.css"]
html_copy_source = False

"""Writes a page for every policy: its docstring, and what it does on two curves."""

from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.image import imsave
from sphinx.util.osutil import FileAvoidWrite

from risingsearch.curves import CurveTable
from risingsearch.policies import POLICIES, list_policies
from risingsearch.simulation import simulate

FAMILIES = {
    "tuning": "The best model at the end of a budget",
    "rising": "Arms that rise with their pulls",
    "rotting": "Arms that fall with their pulls",
    "drifting": "Arms that move with time",
    "stationary": "Arms that stay as they are, and baselines",
}
PULLS = 40  # that an arm can give
ROUNDS = 60  # for both: too few to train both to their ends
NAMES = ("fast", "late")
COLOURS = ("#0072B2", "#D55E00")  # Okabe and Ito's
NOISE = 0.01

PAGE = """\
:orphan:

{name}
{line}

{summary}

.. code-block:: python

   RisingSearch(..., policy="{name}")
   make_policy("{name}", n_arms, horizon, max_pulls{parameters})

It ends with {ends}.

On two curves
-------------

.. figure:: {name}.png
   :alt: {alt}

   {caption}

From its docstring
------------------

.. autoclass:: {cls}
{option}
.. automethod:: {cls}.{factory}

Source: {paper} ({provenance}). :doc:`/policies` says what it is good for.
"""
INDEX = """\
Policies
========

A page for each of the {number}, with what it does on the same two curves: one rises
fast and levels off, the other starts late and ends higher. There are 40 epochs for each
and 60 in all, so both cannot be trained to their ends. :doc:`/policies` helps
to choose one.
"""


def two_curves():
    """Return the means of the two arms, by their pulls."""
    pulls = np.arange(1, PULLS + 1)
    fast = 0.65 * (1 - np.exp(-pulls / 3))
    late = 0.9 / (1 + np.exp(-(pulls - 14) / 4))
    return np.array([fast, late])


def play(name):
    """Return the arms that a policy pulls, round by round, until it stops."""
    environment = CurveTable.create(two_curves(), noise=NOISE)
    result = simulate(name, environment, ROUNDS, trace=True, compiled=False)
    arms = result.arms[0]
    return arms[arms >= 0]


def empty_figure():
    """Return a figure of both curves, its axes, and what it is without any epochs."""
    figure = Figure(figsize=(7.2, 3.8), dpi=120)
    canvas = FigureCanvasAgg(figure)
    top, strip = figure.subplots(2, height_ratios=(4, 1))
    figure.subplots_adjust(0.09, 0.13, 0.98, 0.97, hspace=0.45)
    for curve, colour in zip(two_curves(), COLOURS, strict=True):
        top.plot(np.arange(1, PULLS + 1), curve, color=colour, alpha=0.3, lw=1.5)
    top.set(xlabel="epochs of the arm", ylabel="score", xlim=(0, PULLS + 1))
    strip.set(xlabel="epochs spent", xlim=(0.5, ROUNDS + 0.5), ylim=(-0.5, 1.5))
    strip.set_yticks([1, 0], NAMES)
    for axes in (top, strip):
        axes.spines[["top", "right"]].set_visible(False)
    canvas.draw()
    return figure, canvas.copy_from_bbox(figure.bbox)


def draw(arms, figure, empty, path):
    """Draw how far each curve was followed, and in which rounds, for one file."""
    top, strip = figure.axes
    figure.canvas.restore_region(empty)  # to draw all of it takes ten times as long
    drawn = []
    for arm, (name, curve) in enumerate(zip(NAMES, two_curves(), strict=True)):
        n = int((arms == arm).sum())
        pulls = np.arange(1, n + 1)
        label = f"{name}: {n} of {PULLS} epochs"
        drawn += top.plot(
            pulls, curve[:n], ".-", color=COLOURS[arm], lw=2.2, label=label
        )
        rounds = np.flatnonzero(arms == arm) + 1
        low, high = 0.6 - arm, 1.4 - arm
        drawn.append(
            strip.vlines(rounds, low, high, COLOURS[arm], lw=7.6, capstyle="butt")
        )
    drawn.append(top.legend(loc="lower right", frameon=False))
    for artist in drawn:
        artist.axes.draw_artist(artist)
        artist.remove()
    imsave(path, figure.canvas.buffer_rgba())


def told(arms):
    """Return in a sentence what the picture shows."""
    fast, late = ((arms == arm).sum() for arm in (0, 1))
    best = max(c[n - 1] for c, n in zip(two_curves(), (fast, late), strict=True) if n)
    rest = f", and stops with {ROUNDS - len(arms)} left" if len(arms) < ROUNDS else ""
    return (
        f"The fast arm gets {fast} epochs, the late one {late}{rest}; "
        f"the best score on the way is {best:.2f}."
    )


def ending(info):
    """Return when a policy ends a search, and which parameters it needs."""
    ends = "the budget" if info.adaptive else "its own rule, maybe before the budget"
    limits = ["; it refuses a budget in time"] if info.plans_rounds else []
    limits += [f"; a live search has to give ``{name}``" for name in info.needs]
    return ends + "".join(limits)


def write_pages(app, config):
    """Write the pages, and one that lists them by family."""
    folder = Path(app.srcdir) / "generated" / "policies"
    folder.mkdir(parents=True, exist_ok=True)
    index = INDEX.format(number=len(POLICIES))
    families = {family: [] for family in FAMILIES}
    figure, empty = empty_figure()
    for info in list_policies():
        factory = POLICIES[info.name]
        policy, create = factory.__self__, factory.__name__
        families[policy.__module__.split(".")[2]].append(info)
        arms = play(info.name)
        draw(arms, figure, empty, folder / f"{info.name}.png")
        page = PAGE.format(
            **info._asdict() | {"parameters": ", **parameters" * bool(info.parameters)},
            line="=" * len(info.name),
            ends=ending(info),
            alt=f"Two learning curves and the epochs that {info.name} gives to each.",
            caption=told(arms),
            cls=f"risingsearch.policies.{policy.__name__}",
            factory=create,
            option="" if create == "create" else "   :no-index:\n",  # on two pages
        )
        with FileAvoidWrite(folder / f"{info.name}.rst") as file:
            file.write(page)
    for family, title in FAMILIES.items():
        index += f"\n{title}\n{'-' * len(title)}\n\n"
        for info in families[family]:
            index += f":doc:`{info.name}`\n   {info.summary} ({info.paper})\n\n"
    with FileAvoidWrite(folder / "index.rst") as file:
        file.write(index)


def setup(app):
    """Connect to what Sphinx does."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True}

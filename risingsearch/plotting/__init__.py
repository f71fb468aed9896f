"""Figures and reports of searches."""

from risingsearch.plotting.figures import plot_allocation, plot_curves

__all__ = ["plot_allocation", "plot_curves"]

"""Proposers: choose the configuration of each arm that a policy opens.

A policy decides *when*; by default the next configuration of a random order is taken.
``open_space`` proposes by a Gaussian process over configurations and epochs, and
``early`` by the learning rate, before there are scores.
"""

from risingsearch.proposers.base import Opened, Proposal, Proposer

__all__ = ["Opened", "Proposal", "Proposer"]

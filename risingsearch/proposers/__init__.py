"""Proposers: choose the configuration of each arm that a policy opens.

``open_space`` proposes by a Gaussian process over configurations and epochs, and
``early`` by the learning rate, before there are scores.
"""

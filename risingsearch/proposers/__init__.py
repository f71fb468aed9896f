"""Proposers: choose the configuration of each arm that a policy opens."""

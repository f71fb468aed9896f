"""Searches over training scripts, in any language.

``sweep`` models the YAML, ``trainable`` runs a command per slice and reads its scores,
``slurm`` does so in jobs of a cluster.
"""

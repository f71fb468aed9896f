"""Slurm as the executor of a search: every job of it is a job of the cluster."""

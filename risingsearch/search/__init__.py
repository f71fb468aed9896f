"""Searches over anything trainable: run jobs, keep their results, resume.

``Loop`` asks the scheduler for jobs and runs them on workers; ``RunLog`` writes their
results to the journal before the scheduler is told.
"""

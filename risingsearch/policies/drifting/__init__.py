"""Policies for arms whose rewards drift or jump with time."""

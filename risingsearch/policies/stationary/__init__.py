"""Policies for arms that do not change."""

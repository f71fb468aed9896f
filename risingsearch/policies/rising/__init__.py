"""Policies for arms whose rewards rise as they are pulled."""

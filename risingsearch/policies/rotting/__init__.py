"""Policies for arms whose rewards fall as they are pulled."""

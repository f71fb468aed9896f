"""What the suites of several rooms use."""

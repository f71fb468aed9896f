"""One script per tool; each runs in the environment of its tool."""

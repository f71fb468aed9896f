"""Long searches: what grows, and what does not."""

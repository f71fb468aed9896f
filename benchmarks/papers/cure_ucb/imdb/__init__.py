"""Online model selection on IMDB, replayed and live: the suite ``imdb``."""

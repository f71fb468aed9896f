"""The CURE-UCB paper: two arms, linear-then-flat, concave, and IMDB."""

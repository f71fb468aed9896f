"""What a search finds with the help of earlier ones."""

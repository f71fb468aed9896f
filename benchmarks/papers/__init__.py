"""The experiments of four papers, played again."""

"""The display of a running search, on a terminal or in a log."""

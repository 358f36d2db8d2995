"""Programs for those who work on the tree itself."""

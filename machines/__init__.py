"""Machine classes (what machines of one architecture have in common), and target files."""

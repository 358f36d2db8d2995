"""For tests: a call whose partition can go two ways."""

"""Test fixtures: a call whose partition has two alternatives."""

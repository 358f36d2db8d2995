"""Tests of what crosses packages, and of the tree as a whole."""

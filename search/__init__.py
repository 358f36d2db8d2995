"""The search: ask for candidates, evaluate them, keep what is better, and remember all of it."""

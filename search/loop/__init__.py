"""The search loop: ask, evaluate, tell, and what policies and operators are given."""

"""The ablation of the search: policies, operators and memory at an equal number of evaluations."""

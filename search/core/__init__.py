"""The data of a search: candidates, evaluations, the graph, the archive, outcomes."""

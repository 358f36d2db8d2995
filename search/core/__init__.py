"""What a search is made of and finds: candidates, evaluations, the graph, the archive, outcomes."""

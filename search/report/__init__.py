"""The report: a page about a search and its results."""

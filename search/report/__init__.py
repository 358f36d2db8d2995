"""The report: a page that shows how a search went, and what it found."""

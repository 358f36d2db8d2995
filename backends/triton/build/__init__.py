"""Building: a source compiled for a GPU, which need not be present, and the analysis of its
code."""

"""Building: a source compiled for a GPU that need not be there, and what its code shows."""

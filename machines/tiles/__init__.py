"""NPUs: each computes one tile of the grid in its own local memory."""

"""The machine class of NPUs: each processing element computes one tile of the grid in its own local memory."""

"""A network as a whole: measured end to end, and recorded so that another process can repeat it."""

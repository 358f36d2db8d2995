"""A network as a whole: timed end to end, and recorded so that another process finds it again."""

"""Fields of the tables in target files: their allowed values, and errors that name them."""

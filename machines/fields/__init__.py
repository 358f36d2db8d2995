"""Fields of the tables in target files: what each may hold, and errors that name them."""

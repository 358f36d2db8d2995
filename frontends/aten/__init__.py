"""ATen operators as equations: one table, a file for each sort of operator."""

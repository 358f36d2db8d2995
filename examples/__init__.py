"""Examples: whole models through all of it."""

"""Thread programs: which thread owns each element of a tile, and what each thread of a block does."""

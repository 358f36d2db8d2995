"""GPUs: threads of a block share registers, and a multiprocessor holds several blocks."""

"""The interpreter of thread programs: runs all threads of a block and finds their faults."""

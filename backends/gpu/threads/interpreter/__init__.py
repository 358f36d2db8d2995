"""The interpreter of thread programs: runs all threads of a block in numpy and reports their faults."""

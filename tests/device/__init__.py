"""The device suite: every documented command of a GPU machine, run for real on the GPU."""

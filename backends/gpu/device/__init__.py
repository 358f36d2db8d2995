"""A GPU as a device: its identity, exclusive turns on it, its clocks, and cold-cache times."""

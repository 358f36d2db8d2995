"""A GPU as a device: its identity, exclusive use, clocks, and cold-cache times."""

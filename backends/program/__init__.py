"""Networks as programs on torch tensors: one workspace, launchers bound once."""

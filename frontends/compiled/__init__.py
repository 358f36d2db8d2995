"""Modules as programs of a target: compiled, called on tensors, saved and loaded."""

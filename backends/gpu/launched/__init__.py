"""Shared by backends whose code objects a GPU driver launches."""

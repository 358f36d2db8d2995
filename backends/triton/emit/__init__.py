"""Emits a loop nest as a Triton program."""

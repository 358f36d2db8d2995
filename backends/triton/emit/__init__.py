"""Emission: a loop nest as the lines of a Triton program."""

"""Provenance: how a result was obtained, and the stages that lead to it."""

STAGES = ("verify", "emit", "build", "check", "time")
CORRECT_BY = ("device", "interpreter", "emulator", "simulator")
TIME_KINDS = ("measured", "simulated", "modelled")

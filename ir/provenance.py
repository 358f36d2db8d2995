"""Provenance: the words for how a result was had, and for the stages that lead to one."""

STAGES = ("verify", "emit", "build", "check", "time")
CORRECT_BY = ("device", "interpreter", "emulator", "simulator")
TIME_KINDS = ("measured", "simulated", "modelled")

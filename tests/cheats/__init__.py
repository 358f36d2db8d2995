"""Cheats that the evaluator refuses, and honest oddities that it accepts."""

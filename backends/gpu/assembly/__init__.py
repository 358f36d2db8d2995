"""Compiled GPU code: instructions counted by class, registers and spills."""

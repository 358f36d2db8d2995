"""Formulations: what the algebraic decisions of a schedule make of the equations."""

"""Lowering of a spec and a schedule to a loop nest, and the legality rules of decisions."""

"""Lowers a spec and a schedule to a loop nest; the legality rules of decisions."""

"""Estimates the cost of a spec or a loop nest before anything runs."""

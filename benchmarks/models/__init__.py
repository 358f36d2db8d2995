"""Measures the value of a language model: searches with and without one, recorded once and replayed
without it."""

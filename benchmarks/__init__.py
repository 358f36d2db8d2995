"""Benchmarks: programs that measure, and their results (`results/<machine>/*.json`)."""

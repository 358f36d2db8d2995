"""Benchmarks: programs that measure, and what they found (`results/<machine>/*.json`)."""

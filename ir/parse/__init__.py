"""Parses specs, workloads and schedules."""

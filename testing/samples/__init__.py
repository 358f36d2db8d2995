"""Samples for tests: small machines, kernels, random specs."""

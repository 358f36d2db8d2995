"""Shared fixtures for tests of evaluators."""

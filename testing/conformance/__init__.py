"""Conformance: what every backend must do, whatever language it emits."""

"""Support for tests: nothing but tests may import it."""

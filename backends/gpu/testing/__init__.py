"""Support for tests of GPU languages: nothing but tests may import it."""

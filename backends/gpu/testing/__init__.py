"""Support for tests of GPU languages; only tests may import it."""

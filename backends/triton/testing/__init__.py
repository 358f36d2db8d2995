"""Support for the tests of this backend; only tests may import it."""

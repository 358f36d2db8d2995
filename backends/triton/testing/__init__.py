"""Support for the tests of this backend: nothing but tests may import it."""

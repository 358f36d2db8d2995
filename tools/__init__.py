"""Commands for developers of this repository."""

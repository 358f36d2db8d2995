"""A server for tests, which answers as language models do."""

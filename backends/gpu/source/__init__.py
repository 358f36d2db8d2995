"""Thread programs as sources of languages that resemble C, and launches of what is compiled."""

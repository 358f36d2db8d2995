"""A source that never ends while it is loaded."""

while True:
    pass

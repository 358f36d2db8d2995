"""A source that never ends while it is loaded."""

while True:
    pass


def launch(x, y):
    """Runs nothing."""

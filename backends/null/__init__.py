"""A backend without hardware: the whole search runs on it in milliseconds, and proves nothing."""

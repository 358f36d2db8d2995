"""The loop nest that templates render, its operations, and what it takes of a machine."""

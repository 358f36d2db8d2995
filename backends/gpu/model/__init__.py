"""The time model: estimates a nest's time on a GPU from its statements and its build."""

"""The time model: how long a nest would take, from its statements and its build."""

"""The parts of the `evolve` command: its arguments, its actions and its output."""

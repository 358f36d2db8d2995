"""The parts of the `evolve` command: what is asked for, what it means, what is done."""

"""Languages with their toolchains: the contract of a backend, the registry, and a folder for each backend."""

"""Languages with their toolchains: the contract, the registry, and a folder for each."""

"""Ways into the language: PyTorch modules, ATen operators, problem files."""

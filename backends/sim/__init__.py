"""C++ for a custom accelerator, run on its simulator."""

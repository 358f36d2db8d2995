"""Layouts: CuTe's layout algebra, and the memory access cost of a layout."""

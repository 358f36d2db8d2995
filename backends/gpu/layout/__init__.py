"""Layouts: CuTe's layout algebra, and what follows from a layout for memory accesses."""

"""What backends of C-like languages have in common: texts, functions, arrays, compilers, clocks."""

"""Records: what `kernels_generated/` keeps of a kernel that a search found."""

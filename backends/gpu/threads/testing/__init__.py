"""What tests of this folder share: kernels lowered to thread programs."""

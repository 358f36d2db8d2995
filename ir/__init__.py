"""What a kernel computes and how: no target, no device, no I/O."""

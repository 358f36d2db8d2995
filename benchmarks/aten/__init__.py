"""ATen's operators on a target, by PyTorch's own samples."""

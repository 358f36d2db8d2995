"""PyTorch modules as equations, by way of torch.export."""

"""The partition: one large spec becomes a network of kernels."""

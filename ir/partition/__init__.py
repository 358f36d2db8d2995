"""Partitioning of one large spec into a network of kernels."""

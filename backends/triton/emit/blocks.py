"""Blocks of a launch by Triton's rules."""

from __future__ import annotations

from backends.gpu import blocks
from backends.gpu.blocks import sides
from backends.triton.rules import RULES
from ir.nest.nest import Launch

__all__ = ["Blocks", "sides"]


class Blocks(blocks.Blocks):
    """How wide each index of a launch is in Triton's tensors."""

    def __init__(self, launch: Launch):
        super().__init__(launch, RULES)

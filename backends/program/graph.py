"""A CUDA graph of a program: its launches are captured once and replayed with one host call."""

from __future__ import annotations

import torch

from backends.program.program import Program, Tensors
from backends.program.tensors import require, require_no_gradients
from ir.errors import KernelError

WARM_UP = 2  # calls before the capture, which load the kernels


class ProgramGraph:
    """A program as a graph. It is called the same way as the program.

    inputs: those of the first call. Each call copies its inputs into the tensors that the graph
    reads, and returns the same output tensors, which the next call overwrites. KernelError if the
    program runs on the CPU, or if its network pauses for calls from outside.
    """

    def __init__(self, program: Program, inputs: Tensors):
        if program.network.pauses:
            raise KernelError(
                f"a graph holds launches of kernels alone, and `{program.network.pauses[0].name}` "
                "is called between them",
                hint="leave the graph out",
            )
        if program.place == "cpu":
            raise KernelError(
                "kernels run on the CPU here, which has no graphs", hint="leave the graph out"
            )
        self.program = program
        self.given = {b.name: inputs[b.name].clone() for b in program.inputs}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                program(self.given)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.made = program(self.given)

    def __call__(self, inputs: Tensors) -> list[torch.Tensor]:
        """The outputs in order."""
        require_no_gradients(inputs)
        for b in self.program.inputs:
            require(inputs[b.name], b.name, b.dtype, b.shape, self.program.place)
            self.given[b.name].copy_(inputs[b.name])
        self.graph.replay()
        return list(self.made)

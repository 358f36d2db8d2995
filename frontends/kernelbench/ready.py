"""What each process apart would load and make again, made once in the process that they are forked
from: PyTorch's exporter, its decompositions, and all rules. That takes seconds, an import less."""

import torch

from frontends.pytorch.module import imported

imported(torch.nn.ReLU(), [torch.zeros(2)])

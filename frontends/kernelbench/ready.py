"""What every process apart would import and build again, done once in the server that forks them:
PyTorch's exporter, its decompositions, and all rules. Exporting takes seconds, an import less."""

import torch

from frontends.pytorch.module import imported

# Exporting asks the driver for devices, and no process that is forked afterwards can open one.
if not (torch.version.cuda or torch.version.hip):
    imported(torch.nn.ReLU(), [torch.zeros(2)])

"""ResNets with bottleneck blocks (He et al. 2015, stride in the 3x3 convolution), in PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn


class Bottleneck(nn.Module):
    """Three convolutions, 1x1, 3x3 and 1x1, with a residual."""

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        wide = 4 * width
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            nn.Conv2d(width, width, 3, stride, 1, bias=False),
            *(nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide)),
        )
        shortcut: Sequence[Any] = ()
        if stride != 1 or channels != wide:
            shortcut = nn.Conv2d(channels, wide, 1, stride, bias=False), nn.BatchNorm2d(wide)
        self.shortcut = nn.Sequential(*shortcut)

    def forward(self, x: Tensor) -> Tensor:
        """Maps B C H W to B 4*width H/stride W/stride."""
        return nn.functional.relu(self.body(x) + self.shortcut(x))


def resnet(depths: Sequence[int], width: int = 64, classes: int = 1000) -> nn.Sequential:
    """Makes a ResNet for images of three channels.

    depths: blocks of each stage; `(3, 4, 6, 3)` is ResNet-50.
    width: channels after the first convolution.
    """
    layers: list[nn.Module] = [
        *(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
        nn.MaxPool2d(3, 2, 1),
    ]
    channels = width
    for stage, depth in enumerate(depths):
        for block in range(depth):
            stride = 2 if stage and not block else 1
            layers.append(Bottleneck(channels, width << stage, stride))
            channels = 4 * (width << stage)
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)
    )

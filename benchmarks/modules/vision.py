"""Blocks of timm, and networks and parts of torchvision. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from benchmarks.modules.entry import Arguments, Entry, part

Made = tuple[nn.Module, Callable[[], Arguments]]


def _drawn(*shape: int) -> Callable[[], Arguments]:
    return lambda: (torch.randn(*shape),)


def convnext_block(batch: int, width: int, side: int) -> Made:
    """Makes a block of ConvNeXt: depthwise 7x7, LayerNorm over channels, two linear layers, layer
    scale."""
    block = part("timm.models.convnext", "ConvNeXtBlock")(width)
    return block, _drawn(batch, width, side, side)


def mbconv_block(batch: int, width: int, side: int, ratio: int) -> Made:
    """Makes an inverted residual of EfficientNet: 1x1, depthwise 5x5, squeeze and excite, 1x1, with
    SiLU."""
    blocks = "timm.models._efficientnet_blocks"
    block = part(blocks, "InvertedResidual")(
        width,
        width,
        dw_kernel_size=5,
        exp_ratio=ratio,
        act_layer=nn.SiLU,
        se_layer=lambda channels, **given: part(blocks, "SqueezeExcite")(
            channels, rd_ratio=0.25 / ratio, **given
        ),
    )
    return block, _drawn(batch, width, side, side)


def swin_block(batch: int, width: int, side: int, heads: int, window: int) -> Made:
    """Makes a block of Swin with shifted windows. Its argument is channels last."""
    block = part("timm.models.swin_transformer", "SwinTransformerBlock")(
        width, (side, side), heads, window_size=window, shift_size=window // 2
    )
    return block, _drawn(batch, side, side, width)


def mixer_block(batch: int, length: int, width: int) -> Made:
    """Makes a block of MLP-Mixer: a network over tokens, one over channels."""
    return part("timm.models.mlp_mixer", "MixerBlock")(width, length), _drawn(batch, length, width)


def resnet18(batch: int, side: int) -> Made:
    """Makes ResNet-18."""
    return part("torchvision.models", "resnet18")(), _drawn(batch, 3, side, side)


def resnet50(batch: int, side: int) -> Made:
    """Makes ResNet-50."""
    return part("torchvision.models", "resnet50")(), _drawn(batch, 3, side, side)


def mobilenet_v2_stage(batch: int, side: int) -> Made:
    """Makes inverted residuals 2 to 6 of MobileNetV2, from 16 channels to 32."""
    features = part("torchvision.models", "mobilenet_v2")().features
    return nn.Sequential(*list(features)[2:7]), _drawn(batch, 16, side, side)


def densenet121_block(batch: int, side: int) -> Made:
    """Makes the second dense block of DenseNet-121, from 128 channels to 512, and its
    transition."""
    features = part("torchvision.models", "densenet121")().features
    block = nn.Sequential(features.denseblock2, features.transition2)
    return block, _drawn(batch, 128, side, side)


TIMM, VISION = "timm", "torchvision"
ENTRIES = (
    Entry(
        "convnext_block",
        TIMM,
        "bf16",
        convnext_block,
        dict(batch=64, width=256, side=28),
        dict(batch=1, width=8, side=8),
    ),
    Entry(
        "mbconv_block",
        TIMM,
        "bf16",
        mbconv_block,
        dict(batch=128, width=40, side=28, ratio=6),
        dict(batch=1, width=8, side=8, ratio=2),
    ),
    Entry(
        "swin_block",
        TIMM,
        "bf16",
        swin_block,
        dict(batch=32, width=128, side=56, heads=4, window=7),
        dict(batch=1, width=16, side=8, heads=2, window=4),
    ),
    Entry(
        "mixer_block",
        TIMM,
        "bf16",
        mixer_block,
        dict(batch=64, length=196, width=768),
        dict(batch=1, length=16, width=32),
    ),
    Entry("resnet18", VISION, "f16", resnet18, dict(batch=32, side=224), dict(batch=1, side=32)),
    Entry("resnet50", VISION, "bf16", resnet50, dict(batch=32, side=224), dict(batch=1, side=32)),
    Entry(
        "mobilenet_v2_stage",
        VISION,
        "bf16",
        mobilenet_v2_stage,
        dict(batch=64, side=112),
        dict(batch=1, side=16),
    ),
    Entry(
        "densenet121_block",
        VISION,
        "bf16",
        densenet121_block,
        dict(batch=32, side=28),
        dict(batch=1, side=8),
    ),
)

"""Modules in plain PyTorch, as model code has them."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.modules.entry import TORCH, Arguments, Entry

Made = tuple[nn.Module, Callable[[], Arguments]]


class GatedNetwork(nn.Module):
    """RMSNorm, then SwiGLU with a residual."""

    def __init__(self, width: int, hidden: int):
        super().__init__()
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.gate = nn.Linear(width, hidden, bias=False)
        self.up = nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class TokenLoss(nn.Module):
    """Cross-entropy of each token. The mean over all would hide an error in one."""

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        return F.cross_entropy(logits, targets, reduction="none")


class Recurrent(nn.Module):
    """LSTM layers over sequences, batch first."""

    def __init__(self, width: int, layers: int):
        super().__init__()
        self.lstm = nn.LSTM(width, width, layers, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x)[0]


class DecodeAttention(nn.Module):
    """Attention of one new token of each sequence over its cache of keys and values."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


class ResidualConvolutions(nn.Module):
    """A residual block of a diffusion UNet, with the embedding of its step."""

    def __init__(self, width: int, embedding: int, groups: int):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, width), nn.GroupNorm(groups, width)
        self.conv1 = nn.Conv2d(width, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1)
        self.project = nn.Linear(embedding, width)

    def forward(self, x: Tensor, step: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.project(F.silu(step))[:, :, None, None]
        return x + self.conv2(F.silu(self.norm2(h)))


class Interaction(nn.Module):
    """Embeddings, a network for dense features, and their pairwise products, as in DLRM."""

    first: Tensor
    left: Tensor
    right: Tensor

    def __init__(self, tables: int, rows: int, width: int, dense: int):
        super().__init__()
        self.tables, self.rows = tables, rows
        self.embedding = nn.Embedding(tables * rows, width)
        self.bottom = nn.Sequential(
            nn.Linear(dense, 512), nn.ReLU(), nn.Linear(512, width), nn.ReLU()
        )
        below = torch.tril_indices(tables + 1, tables + 1, -1)
        self.register_buffer("left", below[0].contiguous())
        self.register_buffer("right", below[1].contiguous())
        self.register_buffer("first", torch.arange(tables) * rows)

    def forward(self, dense: Tensor, ids: Tensor) -> Tensor:
        found = self.embedding(ids + self.first)
        bottom = self.bottom(dense)
        features = torch.cat((bottom[:, None], found), 1)
        products = torch.bmm(features, features.transpose(1, 2))
        return torch.cat((bottom, products[:, self.left, self.right]), 1)


def swiglu_rmsnorm(tokens: int, width: int, hidden: int) -> Made:
    return GatedNetwork(width, hidden), lambda: (torch.randn(tokens, width),)


def cross_entropy(tokens: int, classes: int) -> Made:
    return TokenLoss(), lambda: (
        torch.randn(tokens, classes),
        torch.randint(classes, (tokens,)),
    )


def lstm(batch: int, length: int, width: int, layers: int) -> Made:
    return Recurrent(width, layers), lambda: (torch.randn(batch, length, width),)


def decode_attention(batch: int, heads: int, groups: int, length: int, width: int) -> Made:
    return DecodeAttention(), lambda: (
        torch.randn(batch, heads, 1, width),
        torch.randn(batch, groups, length, width),
        torch.randn(batch, groups, length, width),
    )


def unet_block(batch: int, width: int, side: int, embedding: int, groups: int) -> Made:
    return ResidualConvolutions(width, embedding, groups), lambda: (
        torch.randn(batch, width, side, side),
        torch.randn(batch, embedding),
    )


def dlrm_interaction(batch: int, tables: int, rows: int, width: int, dense: int) -> Made:
    return Interaction(tables, rows, width, dense), lambda: (
        torch.randn(batch, dense),
        torch.randint(rows, (batch, tables)),
    )


ENTRIES = (
    Entry(
        "swiglu_rmsnorm",
        TORCH,
        "bf16",
        swiglu_rmsnorm,
        dict(tokens=4096, width=4096, hidden=11008),
        dict(tokens=16, width=32, hidden=48),
    ),
    Entry(
        "cross_entropy_128k",
        TORCH,
        "bf16",
        cross_entropy,
        dict(tokens=4096, classes=128256),
        dict(tokens=8, classes=300),
    ),
    Entry(
        "lstm",
        TORCH,
        "f16",
        lstm,
        dict(batch=64, length=128, width=512, layers=2),
        dict(batch=2, length=5, width=16, layers=2),
    ),
    Entry(
        "decode_attention",
        TORCH,
        "bf16",
        decode_attention,
        dict(batch=32, heads=32, groups=8, length=4096, width=128),
        dict(batch=2, heads=4, groups=2, length=32, width=16),
    ),
    Entry(
        "unet_block",
        TORCH,
        "f16",
        unet_block,
        dict(batch=8, width=320, side=64, embedding=1280, groups=32),
        dict(batch=1, width=16, side=8, embedding=24, groups=4),
    ),
    Entry(
        "dlrm_interaction",
        TORCH,
        "f32",
        dlrm_interaction,
        dict(batch=8192, tables=26, rows=100_000, width=128, dense=13),
        dict(batch=4, tables=3, rows=20, width=16, dense=5),
    ),
)

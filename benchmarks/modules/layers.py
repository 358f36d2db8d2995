"""Layers of transformers' language and vision models, made from a configuration. Nothing is
downloaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from benchmarks.modules.entry import Arguments, Called, Entry, part

MODELS = "transformers.models"
Made = tuple[nn.Module, Callable[[], Arguments]]


def _drawn(*shape: int) -> Callable[[], Arguments]:
    return lambda: (torch.randn(*shape),)


def bert_layer(batch: int, length: int, width: int, heads: int, hidden: int) -> Made:
    """Makes a layer of BERT: attention and a GELU network, each followed by a residual and
    LayerNorm."""
    config = part(f"{MODELS}.bert.configuration_bert", "BertConfig")(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=hidden,
        attn_implementation="sdpa",
    )
    layer = part(f"{MODELS}.bert.modeling_bert", "BertLayer")(config)
    return Called(layer), _drawn(batch, length, width)


def llama_layer(batch: int, length: int, width: int, heads: int, groups: int, hidden: int) -> Made:
    """Makes a decoder layer of Llama: RMSNorm, causal grouped-query attention with rotary
    embedding, SwiGLU."""
    return _decoder("llama", "Llama", batch, length, width, heads, groups, hidden)


def qwen2_layer(batch: int, length: int, width: int, heads: int, groups: int, hidden: int) -> Made:
    """Makes a decoder layer of Qwen2: as Llama's, with biases of q, k and v and few key heads."""
    return _decoder("qwen2", "Qwen2", batch, length, width, heads, groups, hidden)


def _decoder(name: str, title: str, batch: int, length: int, width: int, *sizes: int) -> Made:
    heads, groups, hidden = sizes
    config = part(f"{MODELS}.{name}.configuration_{name}", f"{title}Config")(
        hidden_size=width,
        num_attention_heads=heads,
        num_key_value_heads=groups,
        intermediate_size=hidden,
        num_hidden_layers=1,
        attn_implementation="sdpa",
    )
    modeling = f"{MODELS}.{name}.modeling_{name}"
    layer = part(modeling, f"{title}DecoderLayer")(config, 0)
    rotary = part(modeling, f"{title}RotaryEmbedding")(config)
    cos, sin = rotary(torch.zeros(1, length, width), torch.arange(length)[None])
    return Called(layer, position_embeddings=(cos, sin)), _drawn(batch, length, width)


def gpt2_block(batch: int, length: int, width: int, heads: int) -> Made:
    """Makes a block of GPT-2: LayerNorm before causal attention, and before a network with GELU by
    tanh."""
    config = part(f"{MODELS}.gpt2.configuration_gpt2", "GPT2Config")(
        n_embd=width, n_head=heads, attn_implementation="sdpa"
    )
    layer = part(f"{MODELS}.gpt2.modeling_gpt2", "GPT2Block")(config, 0)
    return Called(layer), _drawn(batch, length, width)


def t5_block(batch: int, length: int, width: int, heads: int, hidden: int) -> Made:
    """Makes an encoder block of T5 1.1: attention with a relative position bias and no scale, gated
    GELU."""
    config = part(f"{MODELS}.t5.configuration_t5", "T5Config")(
        d_model=width,
        num_heads=heads,
        d_kv=width // heads,
        d_ff=hidden,
        feed_forward_proj="gated-gelu",
        is_decoder=False,
        attn_implementation="sdpa",
    )
    make: Any = part(f"{MODELS}.t5.modeling_t5", "T5Block")
    return Called(make(config, has_relative_attention_bias=True)), _drawn(batch, length, width)


def vit_layer(batch: int, length: int, width: int, heads: int, hidden: int) -> Made:
    """Makes a layer of a vision transformer on patches and a class token."""
    config = part(f"{MODELS}.vit.configuration_vit", "ViTConfig")(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=hidden,
        attn_implementation="sdpa",
    )
    layer = part(f"{MODELS}.vit.modeling_vit", "ViTLayer")(config)
    return Called(layer), _drawn(batch, length, width)


FROM = "transformers"
ENTRIES = (
    Entry(
        "bert_layer",
        FROM,
        "bf16",
        bert_layer,
        dict(batch=16, length=512, width=1024, heads=16, hidden=4096),
        dict(batch=2, length=16, width=32, heads=2, hidden=64),
    ),
    Entry(
        "llama_layer",
        FROM,
        "bf16",
        llama_layer,
        dict(batch=1, length=2048, width=4096, heads=32, groups=8, hidden=14336),
        dict(batch=1, length=16, width=64, heads=4, groups=2, hidden=96),
    ),
    Entry(
        "qwen2_layer",
        FROM,
        "bf16",
        qwen2_layer,
        dict(batch=4, length=1024, width=1536, heads=12, groups=2, hidden=8960),
        dict(batch=1, length=16, width=64, heads=4, groups=2, hidden=96),
    ),
    Entry(
        "gpt2_block",
        FROM,
        "bf16",
        gpt2_block,
        dict(batch=8, length=1024, width=1024, heads=16),
        dict(batch=2, length=16, width=32, heads=2),
    ),
    Entry(
        "t5_block",
        FROM,
        "bf16",
        t5_block,
        dict(batch=8, length=512, width=1024, heads=16, hidden=2816),
        dict(batch=2, length=16, width=32, heads=2, hidden=48),
    ),
    Entry(
        "vit_layer",
        FROM,
        "bf16",
        vit_layer,
        dict(batch=64, length=197, width=768, heads=12, hidden=3072),
        dict(batch=2, length=17, width=32, heads=2, hidden=64),
    ),
)

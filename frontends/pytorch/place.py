"""Where in a module an operator is called, for errors."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.fx import Node

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n\s*(.*)')
_LIBRARY = str(Path(torch.__file__).parent)


def place_of(node: Node) -> str:
    """`layers.0 (Attention), model.py:12: y = torch.sort(x)`; what of that is known."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or node.stack_trace or "")
    own = [f for f in frames if not f[0].startswith((_LIBRARY, "<"))]
    parts = [_module(node)]
    if own:
        file, line, _, text = own[-1]
        parts.append(f"{Path(file).name}:{line}: {text.strip()}")
    return ", ".join(p for p in parts if p) or f"`{node.target}`"


def _module(node: Node) -> str:
    stack = node.meta.get("nn_module_stack") or {}
    if not stack:
        return ""
    path, kind = list(stack.values())[-1]
    name = (kind if isinstance(kind, str) else kind.__name__).rpartition(".")[2]
    if name.startswith("_"):  # what a function is wrapped in
        return path
    return f"{path} ({name})" if path else name

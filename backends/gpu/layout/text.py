"""Parses the text of layouts: `(4,8):(8,1)`, `Sw<3,4,3>`, `Sw<3,4,3> o 0 o (8,64):(64,1)`."""

from __future__ import annotations

import ast
import re

from backends.gpu.layout.layout import IntTuple, Layout
from backends.gpu.layout.swizzle import ComposedLayout, Swizzle
from ir.errors import KernelError

ALLOWED = (
    "SHAPE:STRIDE, such as (4,8):(8,1); "
    "or Sw<bits,base,shift>, alone or followed by o OFFSET o SHAPE:STRIDE"
)
_INTEGERS = re.compile(r"[\d(), ]+")
_SWIZZLE = re.compile(r"Sw<(\d+),(\d+),(-?\d+)>")
_COMPOSED = re.compile(r"(Sw<.*>) o (\d+) o (.*)")


def parse(text: str) -> Layout | Swizzle | ComposedLayout:
    """The layout or swizzle of a text; `str` of it gives the text again. Raises KernelError for other texts."""
    if found := _COMPOSED.fullmatch(text.strip()):
        return ComposedLayout(parse_swizzle(found[1]), int(found[2]), parse_layout(found[3]))
    if text.strip().startswith("Sw"):
        return parse_swizzle(text)
    return parse_layout(text)


def parse_layout(text: str) -> Layout:
    """Parses a layout without a swizzle."""
    shape, colon, stride = text.partition(":")
    if not colon:
        raise _refused(text)
    try:
        return Layout(_integers(shape, text), _integers(stride, text))
    except KernelError as error:
        raise error.within(f"layout `{text}`") from None


def parse_swizzle(text: str) -> Swizzle:
    """Parses a swizzle without a layout."""
    if found := _SWIZZLE.fullmatch(text.strip()):
        return Swizzle(*map(int, found.groups()))
    raise _refused(text)


def _integers(part: str, whole: str) -> IntTuple:
    if not _INTEGERS.fullmatch(part):
        raise _refused(whole)
    try:
        return ast.literal_eval(part.strip())
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise _refused(whole) from None


def _refused(text: str) -> KernelError:
    return KernelError(f"`{text}` is no layout", allowed=ALLOWED)

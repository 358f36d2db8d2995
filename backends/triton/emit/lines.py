"""Breaks long lines."""

from __future__ import annotations


def terms(text: str, within: int = 0, groups: bool = True) -> tuple[str, ...]:
    """A text in parts that begin with the operator that joins them, `+` or `&`, where at most
    `within` brackets are open. groups: whether parentheses without a name before them count."""
    found, start = [], 0
    opened: list[bool] = []
    for at, sign in enumerate(text):
        if sign in "([{":
            opened.append(groups or sign != "(" or text[at - 1].isalnum())
        elif sign in ")]}":
            opened.pop()
        elif sign in "+&" and sum(opened) <= within and text[at - 1 : at + 2] == f" {sign} ":
            found.append(text[start : at - 1])
            start = at
    return (*found, text[start:])

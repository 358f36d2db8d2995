"""Renders the templates of prompts. Only this module uses the template engine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "templates" / "prompts"


def rendered(template: str, **values: object) -> str:
    """The text of `templates/prompts/<template>.md.j2`. A missing value is an error."""
    return _environment().get_template(f"{template}.md.j2").render(**values).strip("\n") + "\n"


@cache
def _environment() -> Any:
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )

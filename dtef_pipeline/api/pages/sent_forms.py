"""What a form of a page brought."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import Request


async def form_fields(request: Request) -> dict[str, str]:
    """The last value of every field of a form; what is no text is replaced. `form_lists` has all values."""
    return {name: values[-1] for name, values in (await form_lists(request)).items()}


async def form_lists(request: Request) -> dict[str, list[str]]:
    """All values of every field of a form."""
    try:
        return parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, errors="replace")
    except ValueError:
        return {}

"""Parts that several pages have: tables in a box that scrolls, times, states as a word in a colour."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from dtef_pipeline.api.elements import Content, Html, element, html

Tone = Literal["good", "busy", "waiting", "bad", "plain"]
_TONES: Mapping[str, Tone] = {
    **dict.fromkeys(("completed", "approved", "production", "ok", "on"), "good"),
    **dict.fromkeys(("running", "started", "item"), "busy"),
    **dict.fromkeys(("queued", "draft", "experimental", "cancelling"), "waiting"),
    **dict.fromkeys(("failed", "off", "down"), "bad"),
}
_LONGEST_ASKED = 200


def badge(state: str) -> Html:
    """A state as a word, with a colour beside it."""
    return element("span", state, class_=f"badge {_TONES.get(state, 'plain')}")


def asked_in_words(asks: Mapping[str, Any]) -> str:
    """What a run was asked to do, in one line: `persona: calm:v2; seeds: 1-40`. Of a long list the beginning; `–`: there is nothing to tell."""
    told = {name: ", ".join(map(str, one)) if isinstance(one, list) else str(one) for name, one in asks.items()}
    short = {name: one if len(one) <= _LONGEST_ASKED else f"{one[:_LONGEST_ASKED]}…" for name, one in told.items() if one}
    return "; ".join(f"{name}: {one}" for name, one in short.items()) or "–"


def moment(time: datetime | None) -> Html:
    """A time (UTC) to the second, which scripts and readers of the markup get exactly."""
    if time is None:
        return html("–")
    return element("time", time.strftime("%Y-%m-%d %H:%M:%S"), datetime=time.isoformat(timespec="milliseconds"))


def box_of_table(
    caption: str, headings: Sequence[str], rows: Iterable[Content], *, numbers: Sequence[str] = (), nothing: str = "Nothing."
) -> Html:
    """A table in a box that scrolls by itself. `rows`: of `row_of`; `numbers`: headings of columns of numbers; `nothing`: said without rows."""
    lines = list(rows)
    if not lines:
        return element("p", nothing, class_="how")
    head = [element("th", one, scope="col", class_=None if one in numbers else "text") for one in headings]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", head)), element("tbody", lines), class_="plain"
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row_of(head: Content, *cells: Content, **attributes: str | None) -> Html:
    """A row whose first cell says what it is about. Numbers stand to the right."""
    shown = [
        element("td", f"{one:,}" if isinstance(one, int) else one, class_=None if isinstance(one, int) else "text")
        for one in cells
    ]
    return element("tr", element("th", head, scope="row", class_="text"), shown, **attributes)


def as_lines(value: Any) -> Html:
    """A document as JSON that is read line by line."""
    return element("pre", json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True), class_="raw", tabindex="0")


def listed(terms: Mapping[str, Content]) -> Html:
    """Terms and what holds of each."""
    return element("dl", [[element("dt", name), element("dd", said)] for name, said in terms.items()])


def folded(heading: str, *body: Content, is_open: bool = False) -> Html:
    """A part that opens and closes."""
    return element("details", element("summary", element("h3", heading)), *body, open=is_open)


def button_form(action: str, words: str, kind: str = "", **fields: str) -> Html:
    """A button that sends a form of hidden fields."""
    hidden = [element("input", type="hidden", name=name, value=value) for name, value in fields.items()]
    return element(
        "form",
        hidden,
        element("button", words, type="submit", class_=kind or None),
        method="post",
        action=action,
        class_="inline",
    )

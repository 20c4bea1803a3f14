"""Parts that several pages have: tables in a box that scrolls, times, states as a word in a colour."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple

from dtef_pipeline.api.pages.elements import Content, Html, element, html
from dtef_pipeline.text.counted import counted
from dtef_pipeline.text.unknown_cost import unknown_cost

Tone = Literal["good", "partly", "busy", "waiting", "bad", "plain"]
_TONES: Mapping[str, Tone] = {
    **dict.fromkeys(("completed", "approved", "production", "ok", "on"), "good"),
    **dict.fromkeys(("running", "started", "item"), "busy"),
    **dict.fromkeys(("queued", "draft", "experimental", "cancelling"), "waiting"),
    **dict.fromkeys(("failed", "off", "down"), "bad"),
}
_LONGEST_ASKED = 200
"""Characters of what a run was asked."""
_LONGEST_BRIEF = 240
"""Characters of a text that are shown before it is opened."""


def badge(state: str, tone: Tone | None = None) -> Html:
    """A state as a word, with a colour beside it. `tone`: None, as usual for this word."""
    return element("span", state, class_=f"badge {tone or _TONES.get(state, 'plain')}")


def asked_in_words(asks: Mapping[str, Any]) -> str:
    """What a run was asked to do, in one line: `persona: calm:v2; seeds: 1-40`. Of a long list the beginning; `–`: there is nothing to tell."""
    told = {name: ", ".join(map(str, one)) if isinstance(one, list) else str(one) for name, one in asks.items()}
    short = {name: one if len(one) <= _LONGEST_ASKED else f"{one[:_LONGEST_ASKED]}…" for name, one in told.items() if one}
    return "; ".join(f"{name}: {one}" for name, one in short.items()) or "–"


def cost_in_words(cost: Mapping[str, Any]) -> str:
    """`0.0120 US dollars, 40 calls (3 attempts of unknown cost, at most $0.0120)`. `cost`: the fields of `Spent`."""
    known = "cost not known" if cost["usd"] is None else f"{cost['usd']:.4f} US dollars"
    unknown = unknown_cost(cost["unpriced"], cost.get("unpriced_usd_most"))
    return f"{known}, {counted(cost['calls'], 'call')}{f' ({unknown})' if unknown else ''}"


def moment(time: datetime | None) -> Html:
    """A time (UTC) to the second, which scripts and readers of the markup get exactly."""
    if time is None:
        return html("–")
    return element("time", time.strftime("%Y-%m-%d %H:%M:%S"), datetime=time.isoformat(timespec="milliseconds"))


class TableRow(NamedTuple):
    """A row whose first cell says what it is about."""

    cells: Sequence[Content]
    attributes: Mapping[str, str | None]

    def under(self, headings: Sequence[str]) -> Html:
        """The row, each cell with its heading: narrow screens have the cells below each other. Numbers stand to the right."""
        shown = [
            element(
                "td" if at else "th",
                f"{cell:,}" if isinstance(cell, int) and at else _cell(cell),
                scope=None if at else "row",
                class_="text" if not at or not isinstance(cell, int) else None,
                data_label=heading,
            )
            for at, (heading, cell) in enumerate(zip(headings, self.cells, strict=True))
        ]
        return element("tr", shown, **self.attributes)


def box_of_table(
    caption: str, headings: Sequence[str], rows: Iterable[TableRow], *, numbers: Sequence[str] = (), nothing: str = "Nothing."
) -> Html:
    """A table in a box that scrolls by itself. `rows`: of `row_of`; `numbers`: headings of columns of numbers; `nothing`: said without rows."""
    lines = [row.under(headings) for row in rows]
    if not lines:
        return element("p", nothing, class_="how")
    head = [element("th", one, scope="col", class_=None if one in numbers else "text") for one in headings]
    table = element(
        "table", element("caption", caption), element("thead", element("tr", head)), element("tbody", lines), class_="plain"
    )
    return element("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row_of(head: Content, *cells: Content, **attributes: str | None) -> TableRow:
    """A row of a table; `head` says what it is about."""
    return TableRow((head, *cells), attributes)


def foreign(words: str) -> Html:
    """A text of a user or a model among words of the page: whatever its direction, it turns round nothing beside it."""
    return element("bdi", words)


def with_code(words: str) -> Html:
    """A text of this software, in which commands stand between backticks: these become code."""
    return html([element("code", part) if at % 2 else part for at, part in enumerate(re.split("`([^`]+)`", words))])


def brief(words: str | None, **attributes: str | None) -> Content:
    """The beginning of a text of a user or a model; nothing where there is none."""
    if not words:
        return None
    return element("bdi", words if len(words) <= _LONGEST_BRIEF else f"{words[:_LONGEST_BRIEF]}…", **attributes)


def long_text(words: str | None, **attributes: str | None) -> Content:
    """A text of a user or a model, in brief where it is long, and whole when opened; nothing where there is none."""
    if words is None or len(words) <= _LONGEST_BRIEF:
        return brief(words, **attributes)
    whole = element("div", words, class_="raw", dir="auto", tabindex="0")
    return element("details", element("summary", brief(words)), whole, class_="long")


def _cell(content: Content) -> Content:
    """A text that is no markup yet is a text of others, however long it is."""
    return long_text(content) if isinstance(content, str) and not isinstance(content, Html) else content


def as_lines(value: Any) -> Html:
    """A document as JSON that is read line by line."""
    return element("pre", json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True), class_="raw", tabindex="0")


def listed(terms: Mapping[str, Content]) -> Html:
    """Terms and what holds of each."""
    return element("dl", [[element("dt", name), element("dd", _cell(said))] for name, said in terms.items()])


def folded(heading: str, *body: Content, is_open: bool = False, level: Literal[2, 3] = 2) -> Html:
    """A part that opens and closes. `level`: of its heading, 3 within a part that has one of its own."""
    return element("details", element("summary", element(f"h{level}", heading)), *body, open=is_open, class_="part")


def sure_button(question: str, warning: str, *sent: Content, **attributes: str | None) -> Html:
    """A button that asks once more: it opens the warning with `sent`, the button that sends."""
    heading = element("summary", question, class_="button danger")
    return element("details", heading, element("p", warning), *sent, class_="confirm", **attributes)


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

"""Fields of forms with what is wrong beside them, and what a refused form is told."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple
from urllib.parse import parse_qs

from fastapi import Depends, Request

from dtef_pipeline.api.pages.elements import Content, Html, element, html
from dtef_pipeline.api.plans.plan import BodyFault
from dtef_pipeline.api.problems import Problem, answer_error


async def form_lists(request: Request) -> dict[str, list[str]]:
    """All values of every field of a form; what is no text is replaced."""
    try:
        return parse_qs((await request.body()).decode("utf-8", "replace"), keep_blank_values=True, errors="replace")
    except ValueError:
        return {}


async def form_fields(request: Request) -> dict[str, str]:
    """The last value of every field of a form."""
    return {name: values[-1] for name, values in (await form_lists(request)).items()}


SentForm = Annotated[dict[str, list[str]], Depends(form_lists)]
"""All values of every field, of a request."""
TypedForm = Mapping[str, Sequence[str]]
"""Likewise; without any, nothing was sent yet."""
_SHOWN_OF_JSON = 40
IS_NEEDED = "this is needed"


class Refusal(NamedTuple):
    """Why a form was not taken."""

    status: int
    faults: Sequence[BodyFault]

    def of(self, field: str) -> list[BodyFault]:
        return [one for one in self.faults if one.is_of(field)]

    def beside(self, fields: Collection[str]) -> list[BodyFault]:
        """Those that stand beside none of these fields."""
        return [one for one in self.faults if not any(one.is_of(field) for field in fields)]

    def within(self, field: str) -> Refusal:
        """The same, of a field that has the whole document."""
        parts = {one: "" if one.path == "body" else one.path for one in self.faults}
        return Refusal(self.status, [BodyFault(f"{field}.{part}".rstrip("."), one.message) for one, part in parts.items()])


NOT_REFUSED = Refusal(200, ())


def refusal_of(request: Request, error: Exception, fields: Collection[str]) -> Refusal:
    """What an error says of the fields. Raises the error again where it is one of the server."""
    answer = answer_error(request, error)
    if answer.status_code >= 500:
        raise error
    told = json.loads(bytes(answer.body))
    errors = told.get("errors")
    if errors:
        return Refusal(answer.status_code, [BodyFault(**one) for one in errors])
    field, _, message = told["detail"].partition(": ")
    found = BodyFault(field, message) if field in fields else BodyFault("", told["detail"])
    return Refusal(answer.status_code, [found])


def one_of(form: TypedForm, name: str) -> str:
    """The last value of a field without white space around it; empty where it was not sent."""
    return form[name][-1].strip() if form.get(name) else ""


def number_typed(said: str) -> Any:
    """A number that was typed; what is none stays as it was typed, for the check to refuse."""
    return (
        float(said) if re.fullmatch(r"\d{1,15}\.\d{1,15}", said) else int(said) if re.fullmatch(r"[0-9]{1,15}", said) else said
    )


def read_json(words: str) -> Any:
    """What a JSON text says. Raises Problem with the line and the column where it is none."""
    if not words:
        raise Problem(422, IS_NEEDED)
    try:
        found = json.loads(words)
        json.dumps(found, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        rest = words[error.pos : error.pos + _SHOWN_OF_JSON].strip()
        there = f"before {rest!r}" if rest else "at the end of the text"
        raise Problem(422, f"no JSON in line {error.lineno}, column {error.colno}: {error.msg}, {there}") from None
    except UnicodeEncodeError:
        raise Problem(422, "it has half a surrogate pair, which is no text") from None
    except ValueError as error:
        raise Problem(422, f"no JSON: {error}") from None
    except RecursionError:
        raise Problem(422, "no JSON: too many brackets in one another") from None
    return found


def faults_above(refusal: Refusal, fields: Collection[str], said: str = "This was not taken:") -> Content:
    """What is wrong with the form as a whole, which gets the focus; nothing where nothing is."""
    if not refusal.faults:
        return None
    others = refusal.beside(fields)
    items = [element("li", f"{one.path}: " if one.path else None, one.message) for one in others]
    words = said if others else "This was not taken; what is wrong stands beside the fields."
    body = element("p", words, class_="fault"), element("ul", items) if items else None
    return element("div", *body, role="alert", tabindex="-1", autofocus=True)


def faults_of(refusal: Refusal, field: str) -> Content:
    """What is wrong with a field, and with which part of it where the field has several."""
    found: list[Content] = []
    for one in refusal.of(field):
        part = one.path.removeprefix(field).strip(".[]")
        found.append(html(f"{part}: " if part and not part.isdigit() else None, one.message))
    if len(found) > 1:
        return element("ul", [element("li", one) for one in found], class_="fault", id=f"{field}-fault")
    return element("p", found, class_="fault", id=f"{field}-fault") if found else None


def text_field(
    name: str, label: str, value: str, refusal: Refusal, hint: str = "", type_: str = "text", **further: str | bool | None
) -> Html:
    """A line of text."""
    control = element("input", type=type_, id=name, name=name, value=value, **_described(name, hint, refusal), **further)
    return _field(name, label, control, hint, refusal)


def area_field(
    name: str, label: str, value: str, refusal: Refusal, hint: str = "", rows: int = 8, **further: str | bool | None
) -> Html:
    """Several lines of text."""
    # A line end at the very beginning is not part of the text, as browsers read it.
    control = element(
        "textarea",
        f"\n{value}",
        id=name,
        name=name,
        rows=rows,
        spellcheck="false",
        **_described(name, hint, refusal),
        **further,
    )
    return _field(name, label, control, hint, refusal)


def select_field(name: str, label: str, choices: Sequence[str], chosen: str, refusal: Refusal, hint: str = "") -> Html:
    """One of several."""
    options = [element("option", one, value=one, selected=one == chosen) for one in choices]
    return _field(name, label, element("select", options, id=name, name=name, **_described(name, hint, refusal)), hint, refusal)


def choices_field(
    name: str, label: str, choices: Mapping[str, Content], chosen: Collection[str], refusal: Refusal, hint: str = ""
) -> Html:
    """Boxes to tick, by value what stands beside each."""
    boxes = [
        element("label", element("input", type="checkbox", name=name, value=value, checked=value in chosen), " ", said)
        for value, said in choices.items()
    ]
    told = html(element("span", hint, class_="hint", id=f"{name}-hint") if hint else None, faults_of(refusal, name))
    return element(
        "fieldset",
        element("legend", label),
        told,
        element("div", boxes, class_="boxes"),
        id=name,
        **_described(name, hint, refusal),
    )


def _field(name: str, label: str, control: Html, hint: str, refusal: Refusal) -> Html:
    told = element("span", hint, class_="hint", id=f"{name}-hint") if hint else None
    return element("div", element("label", label, for_=name), control, told, faults_of(refusal, name), class_="field")


def _described(name: str, hint: str, refusal: Refusal) -> dict[str, str | bool | None]:
    found = [f"{name}-hint"] if hint else []
    wrong = bool(refusal.of(name))
    found += [f"{name}-fault"] if wrong else []
    return {"aria_describedby": " ".join(found) or None, "aria_invalid": "true" if wrong else None}

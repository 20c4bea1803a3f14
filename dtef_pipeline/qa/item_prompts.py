"""Prompts about choices, word problems and programs: build messages from an item and a condition.

The wording is part of a prompt's identity: a changed letter requests every response again. A text of an item cannot be mistaken for a part
of the form: lines that begin like the form are indented, and the fence around code is longer than any in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dtef_pipeline.asking.request import Message
from dtef_pipeline.errors import ConfigError
from dtef_pipeline.identity import compute_messages_id
from dtef_pipeline.judging.prompts import INVISIBLE
from dtef_pipeline.qa.item_files.gsm8k import CODE_TYPE, FINAL_MARK, NUMBER_TYPE
from dtef_pipeline.qa.item_files.layout import ITEM_LETTERS
from dtef_pipeline.qa.item_files.mmlu import CHOICE_TYPE
from dtef_pipeline.qa.item_files.splits import ONE_PART
from dtef_pipeline.qa.model import QaItem
from dtef_pipeline.qa.option_order import rotate_options, rotate_order
from dtef_pipeline.qa.settings import CHOICE_TEMPLATES, COT, LETTERS, PARENS, PLAIN_TEMPLATE, QaCondition
from dtef_pipeline.text.number_words import format_count

PROMPTED_TYPES = (CHOICE_TYPE, NUMBER_TYPE, CODE_TYPE)
ROOM_FOR_WORKING = 1024
"""Minimum token limit for responses with working or a program."""
_FORM_LINE = re.compile(
    rf"([\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029])([ \t\xa0{INVISIBLE}]*+)"
    r"(?=(?:question|problem|solution|answer)\b|\(?[a-j][.)]|####|```|~~~)",
    re.IGNORECASE,
)
_FORM_INDENT = 4
"""Indentation in characters of lines that are not part of the prompt's form."""
_CHOICE_ITEM, _FURTHER_ITEM_LABELS, _SHORT_REPLY = "Question", "Problem", "Answer"
_CALCULATED = re.compile(r"<<[^<>\n]{0,200}>>")
"""Calculator annotations in the solutions of GSM8K: 2/2=<<2/2=1>>1."""
_BACKTICKS = re.compile("`{3,}")
_LETTER_TASK = {
    LETTERS: "Reply with its letter and nothing else: {letters}.",
    PARENS: "Reply with its letter in parentheses and nothing else: {letters}.",
    COT: 'Think step by step first. Then end with a line of its own that says "Answer: " and the letter: {letters}.',
}
_NUMBER_TASK = (
    f"Write down the working first. Then end with a line of its own that says {FINAL_MARK} and the result as a number in digits, "
    f"without a unit and with nothing after it."
)
_CODE_TASK = (
    "Complete this Python function. Reply with the complete function, with all imports that it needs, in one fenced block of Python code "
    "and nothing else."
)


@dataclass(frozen=True, slots=True)
class ItemPrompt:
    """The prompt of one item under one condition."""

    item_id: str
    condition: str
    messages: tuple[Message, ...]
    answer_tokens: int | None
    """Minimum token limit for the response; None: the model's own limit is enough."""
    option_order: tuple[int, ...] | None
    """Places in the file's order of the options as shown; None: the file's order, or no options."""
    n_examples: int
    response_schema: str | None = None

    @property
    def prompt_id(self) -> str:
        """A hash of everything that the model sees."""
        turns = ((message.role, message.text) for message in self.messages)
        return compute_messages_id(turns, response_schema=self.response_schema, answer_tokens=self.answer_tokens)


class _Form(NamedTuple):
    """Labels of an item and of its reply."""

    item: str
    reply: str

    def format_block(self, block: str, number: int | None = None) -> str:
        """Format the block under its label, with its number if the message has several. Code begins on a new line."""
        name = self.item if number is None else f"{self.item} {number}"
        return f"{name}:{block}" if block.startswith("\n") else f"{name}: {block}"


def build_item_prompt(item: QaItem, condition: QaCondition, examples: Sequence[QaItem] = ()) -> ItemPrompt:
    """Build the messages about an item of one of PROMPTED_TYPES.

    Args:
        item: the item as in the file; its options are rotated here.
        condition: template, examples and order of options.
        examples: development items of its part in file order; the first ones are shown, with the file's order of options.

    Raises:
        ConfigError: for another type, a template that the type does not have, rotated options of an item without options, and for more
            examples than there are.
    """
    _check(item, condition, examples)
    shots = [(_format_item_block(shot, condition), _format_worked(shot, condition)) for shot in examples[: condition.shots]]
    question = _format_item_block(rotate_options(item, condition.rotation), condition)
    form = _Form(
        _CHOICE_ITEM if item.type == CHOICE_TYPE else _FURTHER_ITEM_LABELS,
        _SHORT_REPLY if condition.template in (LETTERS, PARENS) else "Solution",
    )
    messages = (_build_turns if condition.as_turns else _build_message)(_describe_task(item, condition), shots, question, form)
    return ItemPrompt(
        item_id=item.item_id,
        condition=str(condition),
        messages=messages,
        answer_tokens=ROOM_FOR_WORKING if condition.template in (COT, PLAIN_TEMPLATE) else None,
        option_order=rotate_order(len(item.options), condition.rotation) if condition.rotation else None,
        n_examples=condition.shots,
    )


def stop_sequences(n_examples: int, n_messages: int) -> tuple[str, ...]:
    """Return the texts with which a response would continue to a next question, after examples in one message."""
    if not n_examples or n_messages > 1:
        return ()
    return tuple(f"\n{item} {n_examples + 2}:" for item in (_CHOICE_ITEM, _FURTHER_ITEM_LABELS))


def guard_lines(text: str, *, begins_line: bool = False) -> str:
    """Indent by four spaces the lines of an item's text that begin like the prompt's form.

    `begins_line`: whether its first line begins a line of the prompt.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    return _FORM_LINE.sub(_indent_line, f"\n{lines}")[1:] if begins_line else _FORM_LINE.sub(_indent_line, lines)


def _indent_line(match: re.Match[str]) -> str:
    blanks = sum(character in " \t" for character in match[2])
    return match[0] if blanks >= _FORM_INDENT else f"{match[1]}{' ' * _FORM_INDENT}{match[2].lstrip()}"


def fence_code(code: str) -> str:
    """Enclose code in fences that nothing in it can close."""
    longest = max((len(run) for run in _BACKTICKS.findall(code)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}python\n{code.strip(chr(10))}\n{fence}"


def _check(item: QaItem, condition: QaCondition, examples: Sequence[QaItem]) -> None:
    if item.type not in PROMPTED_TYPES:
        raise ConfigError(f"{item.item_id}: no prompt is known for type {item.type!r}: allowed: {', '.join(PROMPTED_TYPES)}")
    templates = CHOICE_TEMPLATES if item.type == CHOICE_TYPE else (PLAIN_TEMPLATE,)
    if condition.template not in templates:
        raise ConfigError(
            f"{item.item_id}: template {condition.template!r} for type {item.type!r}: allowed: {', '.join(templates)}"
        )
    if condition.shots > len(examples):
        count = format_count(len(examples), "development item") if examples else "no development items"
        bounds = f"few-shot 0 to {len(examples)}" if examples else "few-shot 0"
        raise ConfigError(
            f"{item.item_id}: few-shot {condition.shots}, where {item.suite}/{item.part} has {count}: allowed: {bounds}"
        )


def _describe_task(item: QaItem, condition: QaCondition) -> str:
    """Describe the task, for the beginning of the first message."""
    if item.type == CODE_TYPE:
        return _CODE_TASK
    if item.type == NUMBER_TYPE:
        return f"Solve the problem. {_NUMBER_TASK}"
    letters = ITEM_LETTERS[: len(item.options)]
    labels = [f"({letter})" if condition.template == PARENS else letter for letter in letters]
    topic = "" if item.part == ONE_PART else f" about {guard_lines(item.part.replace('_', ' '))}"
    intro = f"These are multiple choice questions{topic}" if condition.shots else f"This is a multiple choice question{topic}"
    right = "one option of each is right" if condition.shots else "one option is right"
    instruction = _LETTER_TASK[condition.template].format(letters=f"{', '.join(labels[:-1])} or {labels[-1]}")
    return f"{intro}, and {right}. {instruction}"


def _build_turns(task: str, shots: Sequence[tuple[str, str]], question: str, form: _Form) -> tuple[Message, ...]:
    """Return the task with the first block, and every example as a block with a reply."""
    blocks = [form.format_block(block) for block in (*(block for block, _ in shots), question)]
    turns = [Message("user", block) for block in (f"{task}\n\n{blocks[0]}", *blocks[1:])]
    replies = [Message("assistant", reply) for _, reply in shots]
    return (*(message for pair in zip(turns, replies, strict=False) for message in pair), turns[-1])


def _build_message(task: str, shots: Sequence[tuple[str, str]], question: str, form: _Form) -> tuple[Message, ...]:
    """Build a single message that ends where the reply begins."""
    if shots:
        task = f"{task} Reply to the last one only; those before it are examples."
    break_ = " " if form.reply == _SHORT_REPLY else "\n"
    blocks = [
        f"{form.format_block(block, number)}\n{form.reply}:{break_}{reply}" for number, (block, reply) in enumerate(shots, 1)
    ]
    last = f"{form.format_block(question, len(shots) + 1 if shots else None)}\n{form.reply}:"
    return (Message("user", "\n\n".join((task, *blocks, last))),)


def _format_item_block(item: QaItem, condition: QaCondition) -> str:
    """Format the item, without its label and expected answer."""
    if item.type == CODE_TYPE:
        return f"\n{fence_code(item.text)}"
    pairs = zip(ITEM_LETTERS, item.options, strict=False)
    named = ((f"({letter})" if condition.template == PARENS else f"{letter}.", guard_lines(text)) for letter, text in pairs)
    return "\n".join((guard_lines(item.text), *(f"{letter} {text}".rstrip() for letter, text in named)))


def _format_worked(item: QaItem, condition: QaCondition) -> str:
    """Format the expected answer of an example in the requested form."""
    if item.type == CODE_TYPE:
        return fence_code(f"{item.text}{item.solution}")
    working = (
        guard_lines(_CALCULATED.sub("", item.solution), begins_line=True) if condition.template in (COT, PLAIN_TEMPLATE) else ""
    )
    if item.type == NUMBER_TYPE:
        last = f"{FINAL_MARK} {item.reference}"
    elif condition.template == COT:
        last = f"Answer: {item.reference}"
    else:
        last = f"({item.reference})" if condition.template == PARENS else item.reference
    return f"{working}\n{last}" if working else last

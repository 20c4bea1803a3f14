"""The end of a reply before the model went on: an end mark, another speaker's turn, or a next question by the model."""

from __future__ import annotations

import re
from typing import NamedTuple

END_MARK = re.compile(
    r"<\|(?:endoftext|end_of_text|im_end|eot_id|eom_id|eot|eos|end|return|im_start|start_header_id|user)\|>(?!['\"]|\s*<\|start\|>)"
    r"|<｜(?:end▁of▁sentence|User)｜>"
    r"|(?:</s>|<eos>|<end_of_turn>|<start_of_turn>user|\[INST\])[ \t]*$|^[ \t]*(?:<s>[ \t]*)?\[INST\](?![\w'\"`])"
    r"|</s>(?=[ \t]*(?:<s>|\[INST\]|(?:Question|Problem|User|Human|Q):))",
    re.MULTILINE | re.IGNORECASE,
)
"""End marks that models and their templates write after a reply. A mark at the end of a string literal belongs to a program."""
_TURN_HEAD = re.compile(
    r"\s*(?:<\|im_start\|>|<\|start_header_id\|>|<start_of_turn>|<\|)(?:assistant|model)(?:<\|end_header_id\|>|\|>)?\s*",
    re.IGNORECASE,
)
_NEXT_TURN = re.compile(
    r"""^[ \t]*(?:[*_>#]{1,4}[ \t]*)?
        (?:(?:Question|QUESTION|Problem|PROBLEM|Exercise|EXERCISE|Q|(?:Task|Example)(?=[ \t]{1,3}[0-9])
            |Frage|Aufgabe|Problème|Exercice|Pregunta|Ejercicio|Problema|Вопрос|Задача|[问問][题題]|[题題]目|[质質][问問]|[问問])
            [ \t]{0,3}(?P<number>[0-9]{0,3})
        |User|USER|Human|HUMAN|Instruction|Benutzer|Nutzer|Utilisateur|Usuario|Пользователь|用[户戶]|ユーザー)[*_]{0,3}[ \t]{0,3}[:：]""",
    re.VERBOSE | re.MULTILINE,
)
_ENDS_IN_COLON = re.compile(r":[*_\s]*\Z")


class ReplyEnd(NamedTuple):
    """A reply up to its end mark, and whether it had one."""

    text: str
    has_mark: bool


def cut_at_end(text: str) -> ReplyEnd:
    """Return the reply up to the first end mark after a word, without a leading turn header of the template."""
    if "<" not in text and "[INST]" not in text:
        return ReplyEnd(text, False)
    head = _TURN_HEAD.match(text)
    begins = head.end() if head else 0
    mark = next(
        (end for end in END_MARK.finditer(text, begins) if not text[begins : end.start()].isspace() and end.start() > begins),
        None,
    )
    return ReplyEnd(text[begins : mark.start()] if mark else text[begins:], mark is not None)


def cut_before_next_turn(text: str) -> str | None:
    """Return the text before the first line that opens another question or turn, or None without such a line.

    A reply that begins with a numbered question (`Question 1:`) repeats the questions of the prompt, and text that ends in a colon
    introduces what follows, such as the question itself: neither is cut there.
    """
    for turn in _NEXT_TURN.finditer(text):
        before = text[: turn.start()]
        if turn["number"] == "1":
            return None
        if before.strip():
            return None if _ENDS_IN_COLON.search(before, max(0, len(before) - 50)) else before
    return None

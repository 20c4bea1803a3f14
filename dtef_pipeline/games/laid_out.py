"""Episodes as people read them: lines of rules run on, and what the game asks again in the same words is not there twice.

Only for display: what is stored, hashed and shown to models that judge is the text itself. Nothing that a player wrote is left out, unless it
pretends to be the game and says what can be read above.
"""

from __future__ import annotations

import re

from dtef_pipeline.preference.blinded_pair import BlindedPair

ASKED_AGAIN = "(the same request again)"
"""In place of paragraphs of the game that the reader has seen word for word."""
_FULL_LINE = 90
"""Characters from which on a line may be broken for its length alone; lines of boards, cards and lists are shorter."""
_SHORTEST_REPEATED = 60
"""Characters of a paragraph that is left out where it stands again."""
_LINE_OF_ITS_OWN = re.compile(r"[-*|>{\[]|[A-Z][^\n:>]{0,40}[:>] ")
"""How lines begin that stand alone: items of a list, `Pot: 3 chips`, `ACTION: bid 37`, and words of another party, `B > I offer`."""


def laid_out(pair: BlindedPair) -> BlindedPair:
    """The pair of two episodes of one item as people read it. Linear in the length of the texts."""
    told = {one.strip() for one in pair.prompt.split("\n\n")}
    return pair._replace(
        prompt=run_on(pair.prompt), run_a=_without_repeats(pair.run_a, told), run_b=_without_repeats(pair.run_b, told)
    )


def run_on(text: str) -> str:
    """The text with lines joined that were broken for their length; all other lines stay."""
    parts: list[list[str]] = []
    before = ""
    for line in text.split("\n"):
        if parts and _goes_on(before, line):
            parts[-1].append(line)
        else:
            parts.append([line])
        before = line
    return "\n".join(" ".join(part) for part in parts)


def _goes_on(before: str, line: str) -> bool:
    """Whether a sentence of the line before goes on in this one."""
    if len(before) < _FULL_LINE or not line or _LINE_OF_ITS_OWN.match(before) or _LINE_OF_ITS_OWN.match(line):
        return False
    return line[0].islower() if before[-1] in ".:;!?" else line[0].isalnum() or line[0] in "(`'\""


def _without_repeats(transcript: str, told: set[str]) -> str:
    """A transcript of `Player:` and `Game:` in paragraphs. `told`: paragraphs of what both were asked."""
    seen, by_game = set(told), False
    shown: list[str] = []
    for part in transcript.split("\n\n"):
        if part.startswith(("Player: ", "Game: ")):
            by_game = part.startswith("Game: ")
        elif by_game and len(part) >= _SHORTEST_REPEATED and part.strip() in seen:
            shown += [ASKED_AGAIN] if shown[-1] != ASKED_AGAIN else []
            continue
        elif by_game:
            seen.add(part.strip())
        shown.append(run_on(part) if by_game else part)
    return "\n\n".join(shown)

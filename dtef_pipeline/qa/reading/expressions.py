"""Plain arithmetic in an answer (`3 \\times 4`, `\\sqrt{16}`, `2^3 + 1`; nothing with variables is evaluated), LaTeX and programs in
replies, and forms of `The answer is` in German, French, Spanish, Russian, Chinese and Japanese with their number formats.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

_SYMBOL = re.compile(
    r"""\s*(?:(?P<number>(?:[0-9]{1,3}(?:(?:\{,\}|,)[0-9]{3})+(?![0-9])|[0-9]+)(?:\.[0-9]+)?|\.[0-9]+)
        |(?P<name>\\[dtc]?frac(?![a-zA-Z])|\\sqrt(?![a-zA-Z])|sqrt(?![a-zA-Z])|√)
        |(?P<sign>\*\*|\\times(?![a-zA-Z])|\\cdot(?![a-zA-Z])|\\div(?![a-zA-Z])|(?<=[0-9\s)])[xX](?=\s*[0-9(])|[-+*×·÷/^!(){}])
        |(?P<none>\\left|\\right|\\[,!;: ]|\\?\$|[€£]))""",
    re.VERBOSE,
)
_OPERATORS = {
    "**": "^",
    "\\times": "*",
    "\\cdot": "*",
    "×": "*",
    "·": "*",
    "x": "*",
    "X": "*",
    "÷": "/",
    "\\div": "/",
    "sqrt": "\\sqrt",
    "√": "\\sqrt",
}
_TRAILING_UNIT = re.compile(
    r"(?:[\s%°.,;)*_]|\\(?:text|mathrm|mbox|textbf)\s*\{[^{}0-9]*\}|\\?[$%]|[^\W\d_]{2,20}|/(?=[a-z]))*\Z"
)
_ARITHMETIC_FOLLOWS = re.compile(r"\s{0,3}[+*×·÷/^]\s{0,3}[0-9(]|\s{0,3}\\(?:times|cdot|div)(?![a-zA-Z])")
_MAX_TOKENS, _MAX_BRACKETS, _LONGEST_FIGURES, _LARGEST_FACTORIAL = 60, 12, 300, 150


class ExpressionValue(NamedTuple):
    """The value of an arithmetic expression, or None if it has none."""

    value: Fraction | None


class _NoValue(Exception):
    pass


def evaluate(text: str, *, as_formula: bool) -> ExpressionValue | None:
    """Evaluate a text that is arithmetic with an operation and an optional unit, or return None for any other text.

    `as_formula`: the text is a formula, for example in a box, so that `5!` is a factorial and `5-3` a difference. Otherwise a `-` needs
    blanks around it, and a `!` without a following operation is an exclamation mark. A lone `a - b` with a < b is a range.
    """
    tokens, end = _tokenize_expression(text, as_formula=as_formula)
    signs = [token for token in tokens[1:] if isinstance(token, str) and token not in ("(", ")", "{", "}", "\\frac")]
    if not signs and not {"\\sqrt", "\\frac"} & set(map(str, tokens)):
        return None
    numbers = [token for token in tokens if isinstance(token, Fraction)]
    if not numbers or not _TRAILING_UNIT.match(text, end) or _is_other_than_arithmetic(tokens, signs, numbers):
        return None
    try:
        return ExpressionValue(_Reader(tokens).value())
    except (_NoValue, ZeroDivisionError, OverflowError):
        return ExpressionValue(None) if signs else None


def _tokenize_expression(text: str, *, as_formula: bool) -> tuple[list[Fraction | str], int]:
    tokens: list[Fraction | str] = []
    end = 0
    while len(tokens) < _MAX_TOKENS and (match := _SYMBOL.match(text, end)):
        sign = match["name"] or match["sign"]
        symbol = "\\frac" if sign and sign.endswith("frac") else _OPERATORS.get(sign or "", sign)
        if symbol == "(" and tokens and isinstance(tokens[-1], Fraction) and not (as_formula and text[end] == "("):
            break  # an aside, no factor
        is_joint = symbol == "-" and tokens and not text[end : end + 1].isspace()
        is_exclamation = symbol == "!" and "!" not in tokens and not _ARITHMETIC_FOLLOWS.match(text, match.end())
        if not as_formula and (is_exclamation or is_joint):
            break
        if match["number"]:
            figures = match["number"].replace("{,}", "").replace(",", "")
            if len(figures) > _LONGEST_FIGURES:
                break
            tokens.append(Fraction(figures))
        elif symbol:
            tokens.append(symbol)
        end = match.end()
    return tokens, end


def _is_other_than_arithmetic(tokens: list[Fraction | str], signs: list[str], numbers: list[Fraction]) -> bool:
    """Return whether it is a date, an ascending range, or two adjacent numbers (`2 1/2`)."""
    is_date = len(signs) > 1 and set(signs) == {"/"} and "(" not in tokens
    is_range = len(tokens) == 3 and signs == ["-"] and numbers[0] < numbers[1]
    return is_date or is_range or any(isinstance(a, Fraction) and isinstance(b, Fraction) for a, b in pairwise(tokens))


class _Reader:
    """A reader of sums of products of powers, from left to right."""

    def __init__(self, tokens: list[Fraction | str]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0

    def value(self) -> Fraction:
        total = self._sum()
        if self._at != len(self._tokens):
            raise _NoValue
        return total

    def _peek(self) -> Fraction | str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, *signs: str) -> str | None:
        following = self._peek()
        if isinstance(following, str) and following in signs:
            self._at += 1
            return following
        return None

    def _sum(self) -> Fraction:
        self._depth += 1
        if self._depth > _MAX_BRACKETS:
            raise _NoValue
        total = self._read_product()
        while sign := self._take("+", "-"):
            total += self._read_product() * (1 if sign == "+" else -1)
        self._depth -= 1
        return total

    def _read_product(self) -> Fraction:
        product = self._read_signed_value()
        while True:
            sign = self._take("*", "/")
            if sign is None and self._peek() not in ("(", "\\sqrt"):
                return product
            factor = self._read_signed_value()
            product = product / factor if sign == "/" else product * factor

    def _read_signed_value(self) -> Fraction:
        sign = 1
        while symbol := self._take("+", "-"):
            sign *= 1 if symbol == "+" else -1
        return sign * self._read_power()

    def _read_power(self) -> Fraction:
        base = self._read_atom()
        while self._take("!"):
            base = _compute_factorial(base)
        return _compute_power(base, self._read_signed_value()) if self._take("^") else base

    def _read_atom(self) -> Fraction:
        following = self._peek()
        self._at += 1
        if isinstance(following, Fraction):
            # `2\\frac{1}{2}` is two and a half.
            return following + self._read_atom() if self._peek() == "\\frac" else following
        if following == "\\frac":
            return self._read_argument() / self._read_argument()
        if following == "\\sqrt":
            return _compute_root(self._read_argument() if self._peek() in ("{", "(") else self._read_atom())
        if following in ("(", "{"):
            self._at -= 1
            return self._read_argument()
        raise _NoValue

    def _read_argument(self) -> Fraction:
        bracket = self._take("(", "{")
        if bracket is None:
            raise _NoValue
        total = self._sum()
        if not self._take(")" if bracket == "(" else "}"):
            raise _NoValue
        return total


def _compute_factorial(number: Fraction) -> Fraction:
    if number.denominator != 1 or not 0 <= number <= _LARGEST_FACTORIAL:
        raise _NoValue
    return Fraction(math.factorial(int(number)))


def _compute_power(base: Fraction, exponent: Fraction) -> Fraction:
    digits = len(str(max(abs(base.numerator), base.denominator)))
    if exponent == Fraction(1, 2):
        return _compute_root(base)
    if exponent.denominator != 1 or abs(exponent) * digits > _LONGEST_FIGURES or (exponent < 0 and not base):
        raise _NoValue
    return base ** int(exponent)


def _compute_root(number: Fraction) -> Fraction:
    """Return the square root: exact if it is a fraction, else a float."""
    if number < 0 or len(str(number.numerator)) > _LONGEST_FIGURES or len(str(number.denominator)) > _LONGEST_FIGURES:
        raise _NoValue
    numerator, denominator = math.isqrt(number.numerator), math.isqrt(number.denominator)
    exact = numerator * numerator == number.numerator and denominator * denominator == number.denominator
    return Fraction(numerator, denominator) if exact else Fraction(math.sqrt(number))


_BOX = re.compile(r"(?:\\f?|\x08)(?:boxed|oxed|box)\s*\{")
_BRACE = re.compile(r"\\?[{}]")
_LONGEST_BOX = 300
_LAST_BOXES = 60
_FENCED_PROGRAM = re.compile(
    r"```[ ]*(?:python[0-9.]*|py|tool_code|javascript|js|java|c\+\+|cpp|c|sh|bash)[ \t]*\n.*?(?:```|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_REWRITTEN = (
    (re.compile(r"\\(?:text|mbox|textbf|textit|mathrm|mathbf|mathit|rm|bf|operatorname)\b\s*\{([^{}]*)\}"), r" \1 "),
    (re.compile(r"(?<=[0-9])(?:\{,\}|\\,|\\!|\\ )(?=[0-9]{3})"), ","),
    (re.compile(r"(?<=[0-9])\s*(?:\\[dtc]?|\x0c)f?rac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r" \1/\2"),
    (re.compile(r"(?:\\[dtc]?|\x0c)f?rac\s*\{([^{}]*)\}\s*\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"(?:\\[dtc]?|\x0c)f?rac\s*([0-9])\s*([0-9])"), r"\1/\2"),
    (re.compile(r"\^\s*\{?\s*\\circ\s*\}?"), " "),
    (re.compile(r"\\(?:times|cdot)(?![a-zA-Z])"), "×"),
    (re.compile(r"\\([$%#&_])"), r"\1"),
    (re.compile(r"\\(?:[a-zA-Z]+|[^a-zA-Z0-9])|\\"), " "),
    (re.compile(r"(?<!\^)\{|(?<![0-9])\}|~"), " "),
)


class Box(NamedTuple):
    """The content of a `\\boxed{}`, and the start and end of the box in the text."""

    content: str
    start: int
    end: int


def find_boxes(text: str) -> Iterator[Box]:
    r"""Return the closed `\boxed{}` and `\fbox{}` of a text, from left to right: among the last 60, those of at most 300 characters."""
    for match in deque(_BOX.finditer(text), maxlen=_LAST_BOXES) if "box" in text or "oxed" in text else ():
        depth = 1
        for brace in _BRACE.finditer(text, match.end(), match.end() + _LONGEST_BOX):
            depth += {"{": 1, "}": -1}.get(brace[0], 0)
            if not depth:
                yield Box(text[match.end() : brace.start()], match.start(), brace.end())
                break


def strip_latex(text: str) -> str:
    r"""Replace `\frac{3}{4}` by `3/4`, `1{,}234` by `1,234`, `\text{dollars}` by its words, and other commands by spaces."""
    if "\\" not in text and "{" not in text and "\x0c" not in text:
        return text
    for pattern, replacement in _REWRITTEN:
        text = pattern.sub(replacement, text)
    return text


def strip_programs(text: str) -> str:
    """Remove fenced blocks labelled as code of a programming language: a program is not its own output."""
    return _FENCED_PROGRAM.sub("\n", text) if "```" in text else text


_CUES = re.compile(
    r"""(?:\b(?:antwort|l[öo]sung|ergebnis|endergebnis)(?:\s(?:auf\sdie\sfrage|daher|also|somit))?\s?(?:lautet|ist|betr[äa]gt|w[äa]re|:)(?:\s(?:daher|also|somit))?
        |\b(?:r[ée]ponse|r[ée]sultat)(?:\s(?:finale?|correcte|exacte))?\s?(?:est|:)(?:\sdonc)?
        |\b(?:respuesta|resultado)(?:\s(?:final|correcta|correcto))?\s?(?:es|:)
        |\b(?:ответ|результат)(?:\s(?:равен|равна|будет|—\sэто|это))?\s?(?:[:—–-]|(?<=равен)|(?<=равна)|(?<=будет)|(?<=это))
        |(?:答案|正解|正确选项|正確選項|答え|解答|回答)(?:应该|應該|应|應|就)?(?:是|为|為|选|選|は|:|：))(?:[\s*_:]|\\[(\[]|选项|選項)*""",
    re.VERBOSE,
)
_FIRST_IDEOGRAPH = "\u2e80"
_WITH_POINTS = re.compile(r"(?<![\w.,])([1-9][0-9]{0,2})((?:\.[0-9]{3})+)(?:,([0-9]{1,2}))?(?![0-9]|[.,][0-9])")
_WITH_COMMA = re.compile(r"(?<![\w.,])([0-9]+),([0-9]{1,2}|[0-9]{4,})(?![0-9]|[.,][0-9])")
_EUROS = re.compile(
    r"(?<![\w.,])([1-9][0-9]{0,2})((?:\.[0-9]{3})+)(?:,([0-9]{2}))?(?![0-9]|[.,][0-9])(?=\s?(?:€|euros?\b|eur\b))",
    re.IGNORECASE,
)


class ForeignCue(NamedTuple):
    """The start of a statement in another language than English, and the start of the value that it states."""

    start: int
    end: int
    has_commas: bool
    """Whether the language uses decimal commas and points between thousands."""


def find_foreign_cues(lower: str) -> Iterator[ForeignCue]:
    """Return the statements of a text in lower case, from left to right."""
    for match in _CUES.finditer(lower):
        yield ForeignCue(match.start(), match.end(), match[0][0] < _FIRST_IDEOGRAPH)


def normalize_points(sentence: str) -> str:
    """Convert the numbers of a sentence to English form: `1.319` to 1319, `1.319,50` to 1319.50, `12,5` to 12.5."""
    return _WITH_COMMA.sub(r"\1.\2", _WITH_POINTS.sub(_strip_grouping, sentence))


def normalize_euros(text: str) -> str:
    """Convert `1.319 Euro` to `1319 Euro`, because no sum of money has three decimals."""
    return _EUROS.sub(_strip_grouping, text) if "€" in text or "eur" in text.lower() else text


def _strip_grouping(match: re.Match[str]) -> str:
    first, thousands, cents = match.groups()
    return first + thousands.replace(".", "") + (f".{cents}" if cents else "")

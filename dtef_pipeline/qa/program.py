"""Extracts the program from a model's reply: removes fences and prose, restores a lost indent, and detects what cannot run.

Replies are hostile text: all functions are linear in its length, or bounded by constants.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.identity import digest
from dtef_pipeline.judging.code_checks import UNDECIDED_CHECKS, CheckResult, SandboxTask
from dtef_pipeline.qa.reading.reply_end import END_MARK
from dtef_pipeline.qa.tables import QA_EXECUTIONS, QA_RESPONSE_KEY, RESPONSE_COLUMNS
from dtef_pipeline.text.plain import strip_thinking

EMPTY_PROGRAM, NOT_PYTHON = "empty", "syntax"
LONGEST_PROGRAM = 60_000
"""Largest length of a program in characters. Requested programs have a few thousand; longer ones take longer to compile."""
_MAX_COMPILED = 600_000
"""Largest number of characters compiled for one program in all attempts."""
_MAX_CUTS = 60
_FENCE = re.compile(r"^([ \t]*)(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*$", re.MULTILINE)
_PYTHON_LABELS = frozenset({"python", "python3", "py", "py3", "python2"})
_FUTURE = re.compile(r"^from[ \t]+__future__[ \t]+import[^\n]*\n?", re.MULTILINE)
_FIRST_CODE = re.compile(
    r"^(?:from[ \t]+[\w.]+[ \t]+import\b|import[ \t]+[\w.]+|(?:async[ \t]+)?def[ \t]|class[ \t]+\w|@\w)", re.MULTILINE
)
_DEFINITION_AT_MARGIN = re.compile(
    r"^(?:(?:async[ \t]+)?def[ \t]+(\w+)|class[ \t]+(\w+)|(\w+)[ \t]*(?::[^=\n]*)?=(?!=)|(?:from[ \t]+[\w.]+[ \t]+)?import[ \t]+([\w., \t]+))",
    re.MULTILINE,
)
"""Finds the names that a line at the left margin defines, assigns or imports."""
_DEFINES_ANY = re.compile(r"^(?:async[ \t]+)?def[ \t]+\w", re.MULTILINE)
_RETURNS_AT_MARGIN = re.compile(r"^return\b", re.MULTILINE)
_IDENTIFIER = re.compile(r"\w+")
_PYTHON_TAG = re.compile(r"^[ \t]*\[(/?)PYTHON\][ \t]*", re.MULTILINE)
"""Tags around the code of Code Llama."""
_ODD_SPACE = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"
_NO_WIDTH = "\u200b\u2060\ufeff"
_STRING_OR_ODD_SPACE = re.compile(
    r"(\"{3}|'{3})(?:\\.|[^\\])*?(?:\1|\Z)|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*"
    rf"|(?P<space>[{_ODD_SPACE}])|(?P<none>[{_NO_WIDTH}])",
    re.DOTALL,
)
_HAS_ODD_SPACE = re.compile(f"[{_ODD_SPACE}{_NO_WIDTH}]")
_UNINDENTED = re.compile(r"^[^\s]", re.MULTILINE)
_INDENTED = re.compile(r"^[ \t]+[^\s]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeProgram:
    """The program in a reply, or why there is none."""

    source: str
    """Source that defines the wanted function; empty if there is an error."""
    fault: str | None = None
    """`empty`: there is no text; `syntax`: it is not Python; None: it can be run."""
    detail: str | None = None
    """Message of the compiler; None: no error."""


def build_program(text: str | None, prompt: str, entry_point: str) -> CodeProgram:
    """Build the program of a reply to a prompt that ends inside the function `entry_point`. Never raises.

    Thinking, fences and text after an end mark are removed. Code that defines the function follows the prompt's lines before it (imports,
    other functions); any other code follows the whole prompt as the function's body. Prose after the code is removed; prose before an
    indented body is removed if the two together are not Python.
    """
    code = extract_code(_normalize_spaces(_normalise_newlines(text or "")), entry_point)
    if not code.strip():
        return CodeProgram("", EMPTY_PROGRAM)
    if len(code) > LONGEST_PROGRAM:
        code = code[:LONGEST_PROGRAM].rpartition("\n")[0]
    compiler = _Compiler()
    for candidate in _iterate_candidate_programs(code):
        if (source := _build_source(candidate, _normalise_newlines(prompt), entry_point, compiler)) is not None:
            return CodeProgram(source)
    return CodeProgram("", NOT_PYTHON, compiler.first_fault or "no part of the code defines the function")


def build_helpers(prompt: str) -> str:
    """Build the prompt as a program with an empty function, so that tests can use the prompt's other definitions."""
    return f"{_normalise_newlines(prompt).rstrip()}\n{_find_indent(prompt)}pass\n"


def compile_definition(name: str) -> re.Pattern[str]:
    """Return a pattern that finds the definition of a function at the left margin, by `def` or by assignment."""
    escaped = re.escape(name)
    return re.compile(rf"^(?:(?:async[ \t]+)?def[ \t]+{escaped}\b|{escaped}[ \t]*(?::[^=\n]*)?=(?!=))", re.MULTILINE)


def extract_code(text: str, entry_point: str) -> str:
    """Return the code in a text: the last fenced Python block that defines the function, else the last Python block, else the first block.

    Blocks that define names used by it are included. A fence that is never closed runs to the end, and one inside a docstring does not
    count. If no block defines the function but the text before the first fence does, or begins like a body, that text is the code: its
    opening fence was lost.
    """
    text = strip_thinking(text)
    if "[PYTHON]" in text and "```" not in text:
        text = _PYTHON_TAG.sub(lambda tag: "```\n" if tag[1] else "```python\n", text)
    blocks = list(_find_code_blocks(text))
    if not blocks:
        return text
    defines = compile_definition(entry_point)
    defining = [block for block in blocks if defines.search(block.code)]
    python = [block for block in defining if block.label in _PYTHON_LABELS]
    if candidates := python or [block for block in defining if not block.label] or defining:
        return _add_helpers(candidates[-1], blocks, entry_point)
    before = text[: blocks[0].start]
    if before.strip() and (defines.search(before) or before.lstrip("\n")[:1].isspace()):
        return text if _is_inside_text(before) else before
    return blocks[0].code


def _iterate_candidate_programs(code: str) -> Iterator[str]:
    """Yield the programs that the code may mean, the likeliest first: up to an end mark, all of it, the indented body after prose."""
    mark = END_MARK.search(code)
    program = code[: mark.start()] if mark else code
    if program.strip():
        yield program
    if mark:
        yield code
    body = _INDENTED.search(program)
    prose = program[: body.start()] if body else ""
    if prose.strip() and not prose.splitlines()[-1].strip() and not _FIRST_CODE.search(prose):
        yield program[len(prose) :]


def _build_source(code: str, prompt: str, entry_point: str, compiler: _Compiler) -> str | None:
    """Build the program of the code; None if it is not Python, or does not define the function."""
    defines = compile_definition(entry_point)
    match, first_is_indented = defines.search(code), code.lstrip("\n")[:1].isspace()
    # Code that returns at the margin is a body that lacks its indent.
    if not match and not first_is_indented and _DEFINES_ANY.search(code) and not _RETURNS_AT_MARGIN.search(code):
        program = _add_preamble(code, prompt, entry_point, compiler, _DEFINES_ANY)
        if program is not None:
            return program
    source = None if match and not first_is_indented else _try_as_body(code, prompt, compiler)
    return _add_preamble(code, prompt, entry_point, compiler, defines) if source is None and match else source


def _normalize_spaces(text: str) -> str:
    """Replace spaces that Python does not accept by blanks and remove invisible characters, except inside strings."""
    if text.isascii() or not _HAS_ODD_SPACE.search(text):
        return text
    return _STRING_OR_ODD_SPACE.sub(lambda match: " " if match["space"] else "" if match["none"] else match[0], text)


@dataclass(frozen=True, slots=True)
class _Block:
    label: str
    code: str
    start: int


def _find_code_blocks(text: str) -> Iterator[_Block]:
    opening: re.Match[str] | None = None
    place, is_inside = 0, False
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening, place, is_inside = fence, fence.end(), False
            continue
        is_inside ^= _is_inside_text(text[place : fence.start()])
        place = fence.end()
        if not is_inside and fence[2].startswith(opening[2]) and not fence[3]:
            yield _make_code_block(text, opening, fence.start())
            opening = None
    if opening is not None:
        yield _make_code_block(text, opening, len(text))


def _make_code_block(text: str, opening: re.Match[str], end: int) -> _Block:
    code = text[opening.end() + 1 : end]
    if indent := opening[1]:  # a fence inside a list: its code is indented as far as it is
        code = "\n".join(line.removeprefix(indent) for line in code.split("\n"))
    return _Block(opening[3].casefold(), code, opening.start())


def _is_inside_text(code: str) -> bool:
    """Return whether the code ends inside a triple-quoted string."""
    return (code.count('"""') + code.count("'''")) % 2 == 1


def _add_helpers(main_block: _Block, blocks: Sequence[_Block], entry_point: str) -> str:
    """Return the code of a block with the other Python blocks that define names it uses but does not define, and that do not call it."""
    definitions, references = _find_names_at_margin(main_block.code), set(_IDENTIFIER.findall(main_block.code))

    def is_helpful(block: _Block) -> bool:
        names = _find_names_at_margin(block.code)
        is_for_it = bool(names & references) and not names & definitions and entry_point not in _IDENTIFIER.findall(block.code)
        if not is_for_it or block.label not in (*_PYTHON_LABELS, "") or len(block.code) > LONGEST_PROGRAM:
            return False
        return _Compiler().find_bad_line(block.code) is None

    return "\n".join(block.code for block in blocks if block is main_block or is_helpful(block))


def _find_names_at_margin(code: str) -> set[str]:
    names = (name for groups in _DEFINITION_AT_MARGIN.findall(code) for name in groups if name)
    return {word for name in names for word in _IDENTIFIER.findall(name)}


class _Compiler:
    """A bounded check of whether texts are Python; remembers the first error."""

    def __init__(self) -> None:
        self.first_fault: str | None = None
        self._left = _MAX_COMPILED

    def find_bad_line(self, source: str) -> int | None:
        """Return the line of the first error, from 1, or 0 if unknown; None if valid."""
        self._left -= len(source)
        if self._left < 0:
            return self._record_fault("the code is too long for further attempts", 0)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(source, "<reply>", "exec", dont_inherit=True)
        except SyntaxError as error:
            return self._record_fault(f"{type(error).__name__}: {error.msg}", error.lineno or 0)
        except (ValueError, OverflowError, RecursionError, MemoryError) as error:
            return self._record_fault(f"{type(error).__name__}: {error}", 0)
        return None

    def find_longest_prefix(self, head: str, lines: Sequence[str]) -> int:
        """Return the largest number of first lines that are Python after `head`; 0: none."""
        above, count = head.count("\n"), len(lines)
        for _ in range(_MAX_CUTS):
            if count <= 0:
                break
            line = self.find_bad_line(head + "".join(lines[:count]))
            if line is None:
                return count
            if line == 0:
                break
            count = min(count - 1, line - above - 1)
        return 0

    def _record_fault(self, words: str, line: int) -> int:
        self.first_fault = self.first_fault or words[:200].encode("utf-8", "replace").decode()
        return line


def _add_preamble(code: str, prompt: str, entry_point: str, compiler: _Compiler, defines: re.Pattern[str]) -> str | None:
    """Join the prompt's lines before its function and the code as far as it is Python. None: no part of the code has a definition that
    `defines` finds."""
    matches = list(compile_definition(entry_point).finditer(prompt))
    future = "".join(line.rstrip("\n") + "\n" for line in _FUTURE.findall(code))
    head = future + (prompt[: matches[-1].start()] if matches else "").rstrip() + "\n\n\n"
    code = _FUTURE.sub("", code)
    starts = [0, *(match.start() for match in (_FIRST_CODE.search(code), defines.search(code)) if match)]
    for start in dict.fromkeys(starts):
        lines = code[start:].splitlines(keepends=True)
        body = "".join(lines[: compiler.find_longest_prefix(head, lines)])
        if defines.search(body):
            return head + body
    return None


def _try_as_body(code: str, prompt: str, compiler: _Compiler) -> str | None:
    """Join the prompt and the code as the body of its function, up to the first line at the left margin; None if the result is not Python."""
    head = prompt.rstrip("\n") + "\n"
    code = code.lstrip("\n") if code[:1] == "\n" else code
    if code[:1].isspace():
        return _find_body_end(head, code, compiler)
    indent = _find_indent(prompt)
    first = _find_body_end(head, indent + code, compiler)
    lines = [indent + line if line.strip() else line for line in code.splitlines(keepends=True)]
    every = head + "".join(lines[: compiler.find_longest_prefix(head, lines)])
    if first is not None and len(first.splitlines()) >= len(every.rstrip().splitlines()):
        return first
    return every if every != head else first


def _find_body_end(head: str, body: str, compiler: _Compiler) -> str | None:
    """Find the shortest body that ends before a line at the left margin, or at the end, and is Python."""
    for attempt, end in enumerate((*(match.start() for match in _UNINDENTED.finditer(body)), len(body))):
        if attempt >= _MAX_CUTS:
            break
        source = head + body[:end].rstrip() + "\n"
        if body[:end].strip() and compiler.find_bad_line(source) is None:
            return source
    return None


def _find_indent(prompt: str) -> str:
    """Return the indentation of the prompt's last line, which is that of its function's body."""
    last = prompt.rstrip().rpartition("\n")[2]
    return last[: len(last) - len(last.lstrip())] or "    "


def _normalise_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


CODE_SCORER, CODE_VERSION = "code_execution", 2


@dataclass(frozen=True, slots=True)
class Execution:
    """One response whose code is checked."""

    response: Mapping[str, Any]
    """The columns that identify it."""
    task: SandboxTask | None
    """None: there is no program to run, and `verdict` says why."""
    program_hash: str
    verdict: CheckResult | None = None


def plan_executions(responses: pa.Table, items: pa.Table, timeout_s: float) -> list[Execution]:
    """Return one execution per answered response to an item whose scorer runs code, in their order.

    `responses`: rows of `qa_responses`; `items`: rows of `qa_items`. Empty responses and those that are not Python get their verdict here.
    """
    columns = (items[name].to_pylist() for name in ("item_id", "scorers", "reference"))
    references = {
        item: json.loads(reference) for item, scorers, reference in zip(*columns, strict=True) if CODE_SCORER in scorers
    }
    mask = pc.is_in(responses["item_id"], pa.array(list(references), pa.string()))
    replies = responses.filter(pc.and_(mask, pc.equal(responses["call_status"], "answered")))
    texts = replies["response"].to_pylist()
    named = replies.select(RESPONSE_COLUMNS).to_pylist()
    return [_plan_execution(row, text, references[row["item_id"]], timeout_s) for row, text in zip(named, texts, strict=True)]


def load_known_verdicts(earlier: pa.Table, level: str | None) -> dict[str, CheckResult]:
    """Load by program hash the verdicts of earlier runs at the same level; these programs are not run again."""
    return {
        row["program_hash"]: CheckResult(
            row["verdict"], row["message"] or "", row["isolation"], row["python"], row["wall_s"] or 0.0
        )
        for row in earlier.filter(pc.equal(earlier["isolation"], level or "")).to_pylist()
        if row["verdict"] not in UNDECIDED_CHECKS
    }


def select_programs_to_run(runs: Sequence[Execution], verdicts: Mapping[str, CheckResult]) -> dict[str, SandboxTask]:
    """Return the distinct programs that must run, by hash."""
    return {run.program_hash: run.task for run in runs if run.task is not None and run.program_hash not in verdicts}


def build_execution_rows(runs: Sequence[Execution], results: Mapping[str, CheckResult]) -> pa.Table:
    """Return the rows of `qa_executions`, in the order of the executions. `results`: by program hash."""
    rows = []
    for run in runs:
        result = run.verdict or results[run.program_hash]
        outcome = {"verdict": result.status, "message": result.detail or None, "wall_s": result.seconds}
        place = {"isolation": result.level, "python": result.python}
        rows.append({**run.response, "program_hash": run.program_hash, **outcome, **place})
    return pa.Table.from_pylist(rows, schema=QA_EXECUTIONS)


def merge_rows_so_far(runs: Sequence[Execution], results: Mapping[str, CheckResult], earlier: pa.Table) -> pa.Table:
    """Return one row per response with a known result before all programs have run: the new row, else the earlier one.

    `results`: by program hash, of the finished programs. `earlier`: rows of `qa_executions` before this run, at any level.
    """
    done, waiting = [], set()
    for run in runs:
        if run.verdict is not None or run.program_hash in results:
            done.append(run)
        else:
            waiting.add(tuple(run.response[name] for name in QA_RESPONSE_KEY))
    rows = build_execution_rows(done, results)
    keys = zip(*(earlier[name].to_pylist() for name in QA_RESPONSE_KEY), strict=True)
    return pa.concat_tables([rows, earlier.filter(pa.array([key in waiting for key in keys], pa.bool_()))])


def _plan_execution(row: Mapping[str, Any], text: str | None, reference: Mapping[str, str], timeout_s: float) -> Execution:
    prompt, entry_point, tests = reference["prompt"], reference["entry_point"], reference["test"]
    program = build_program(text, prompt, entry_point)
    if program.fault:
        verdict = CheckResult(program.fault, program.detail or "")
        return Execution(row, None, digest("program", program.fault, entry_point), verdict)
    helpers = build_helpers(prompt)
    key = digest("program", CODE_VERSION, program.source, entry_point, tests, helpers, timeout_s)
    return Execution(row, SandboxTask(program.source, entry_point, tests, helpers), key)

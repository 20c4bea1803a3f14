"""What a model wrote becomes the program that was meant, and no text makes the reader fail or wait."""

from __future__ import annotations

import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.qa.program import EMPTY_PROGRAM, LONGEST_PROGRAM, NOT_PYTHON, CodeProgram, build_helpers, build_program
from tests.conftest import SHARED

PROMPT = '''from typing import List


def helper(x: int) -> int:
    return x + 1


def add(x: int, y: int) -> int:
    """Add two numbers.
    >>> add(2, 3)
    5
    """
'''
WHOLE = "def add(x, y):\n    return x + y\n"


def result(text: str | None, *, prompt: str = PROMPT) -> object:
    """What `add(2, 3)` of the program is, or the fault."""
    program = build_program(text, prompt, "add")
    if program.fault:
        return program.fault
    space: dict[str, object] = {}
    exec(program.source, space)
    return space["add"](2, 3)  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        "    return x + y\n",
        "return x + y",
        "\n\n    return x + y",
        "z = x\n    return z + y",
        "z = x\nreturn z + y",
        "for i in range(y):\n    x += 1\nreturn x",
        "for i in range(y):\n        x += 1\n    return x",
        "z = x\nreturn z + y\n\nThis adds the numbers.",
        "    return x + y\n\n\ndef test():\n    assert add(1, 1) == 2\n",
        "    return x + y\n\nprint(add(1, 2))\nThis is how it works",
        "    return x + y\n# the end\nThis is how it works",
        '    text = """\nnot indented\n"""\n    return x + y\n',
        "    z = [\nx, y\n]\n    return sum(z)\nif True:\n    add = None\n",
        WHOLE,
        PROMPT + "    return x + y\n",
        f"Here is the function:\n\n{WHOLE}\nIt adds the two numbers, doesn't it?",
        f"```python\n{WHOLE}```",
        f"Sure:\n```Python\n{WHOLE}```\nDone.",
        f"```\n{WHOLE}```",
        f"```python\n{WHOLE}",
        f"~~~py\n{WHOLE}~~~",
        f"````python\n{WHOLE}````",
        f"{WHOLE}\n```\n\nThis function adds.",
        "    return x + y\n```\nThis adds.",
        "```python\n    return x + y\n```",
        "```python\nreturn x + y\n```",
        f"First\n```python\ndef add(x, y):\n    return 0\n```\nbetter\n```python\n{WHOLE}```",
        f"```python\n{WHOLE}```\nUse it:\n```python\nprint(add(1, 2))\n```",
        f"```bash\npip install x\n```\n```python\n{WHOLE}```",
        f"```\n{WHOLE}```\n```text\ndef add(x, y): none\n```",
        "1. do\n   ```python\n   def add(x, y):\n       return x + y\n   ```",
        f"<think>\n```python\ndef add(x, y):\n    return 0\n```\n</think>\n{WHOLE}",
        "<think>hm</think>    return x + y",
        "def add(x, y):\r\n    return x + y\r\n",
        "def add(x, y):\n    return helper(x) + y - 1\n",
        "def add(x: List[int], y):\n    return x + y\n",
        "from __future__ import annotations\n\ndef add(x: Nothing, y):\n    return x + y\n",
        "import math\n\ndef one(x):\n    return x\n\ndef add(x, y):\n    return one(x) + y\n",
        "add = lambda x, y: x + y",
        "async def nothing():\n    pass\n\n" + WHOLE,
        "    ####\n    return x + y\n####\n",
        f"{WHOLE}\nif __name__ == '__main__':\n    print(add(1, 2))\n",
        "    return x + y\n\n\ndef add(x, y):\n    return 0\n",
        "\\d = 1\n" + WHOLE,
        "    return x + y<|endoftext|>",
        "    return x + y</s>",
        "    return x + y<|im_end|>\n<|im_start|>user\nAnd now?",
        "    x += y\n    return x<|EOT|>import math\n    return 0\n",
        "def add(x, y):\n    x += y\n    return x<|endoftext|>",
        f"```python\n{WHOLE}```<|eot_id|>",
        "```python\n    return x + y<|end|>\n```",
        "<|endoftext|>\n" + WHOLE,
        f"Done.<|im_end|>\n{WHOLE}",
        "    if x in ('<|endoftext|>', '</s>'):\n        return 0\n    return x + y",
        "Sure! \n\n    return x + y",
        "Sure:\n \n    x += y\n\n    return x\nThat's all.",
        "Here you are:\n\n    return x + y<|im_end|>",
        f"[PYTHON]\n{WHOLE}[/PYTHON]\nIt adds.",
        f"Sure:\n[PYTHON] {WHOLE}[/PYTHON]",
        "    return x +\u00a0y",
        "\ufeff" + WHOLE,
        "\ufeff```python\n" + WHOLE.replace(" ", "\u00a0") + "```",
        "    return x + y if '\u00a0' != ' ' else 0",
        "The helper:\n```python\ndef plus(a, b):\n    return a + b\n```\nNow:\n```python\ndef add(x, y):\n    return plus(x, y)\n```",
        "```python\nimport operator\n```\n```\ndef add(x, y):\n    return operator.add(x, y)\n```",
        "```python\ndef add(x, y):\n    return plus(x, y)\n```\nwith\n```python\ndef plus(a, b):\n    return a + b\n```",
        f"```python\n{WHOLE}```\nUse it:\n```python\nx = 1\ny = add(x, 2)\nraise SystemExit\n```",
        '```python\ndef add(x, y):\n    """Adds.\n\n    ```\n    >>> add(1, 2)\n    3\n    ```\n    """\n    return x + y\n```\nDone.',
        '```python\ndef add(x, y):\n    """Adds:\n```\nadd(1, 2)\n```\n"""\n    return x + y\n```\nDone.',
        'def add(x, y):\n    """Adds.\n\n    ```python\n    add(1, 2)\n    ```\n    """\n    return x + y\n',
        "def plus(a):\n    return a\nreturn plus(x) + y",
    ],
)
def test_the_code_that_was_meant_is_run(text: str) -> None:
    assert result(text) == 5


@pytest.mark.parametrize(
    "text", ["def plus(x, y):\n    return x + y", "```python\nimport math\n\n\ndef plus(x, y):\n    return x + y\n```\nDone."]
)
def test_a_function_of_another_name_is_a_program_without_the_function(text: str) -> None:
    """It was taken for the body of the function, which then returned nothing: `assertion` in place of `load`."""
    space: dict[str, object] = {}
    exec(build_program(text, PROMPT, "add").source, space)
    assert "add" not in space
    assert "plus" in space


@pytest.mark.parametrize("text", [None, "", "  \n\n\t", "<think>def add(x, y): return 5", "```python\n```", "```python\n\n\n"])
def test_nothing_is_empty(text: str | None) -> None:
    assert result(text) == EMPTY_PROGRAM


@pytest.mark.parametrize(
    "text",
    [
        "    return x +\n",
        "I cannot help with that.",
        "def add(x, y:\n    return 1",
        "    return '\ud800'",
        "    return 1\0",
        "(((",
        "Sure!\n\n\treturn x + y",
        "Sure!\n\n    I cannot help with that.",
        "for\n    return x + y",
        "def sum(:\n\n    return x + y",
    ],
)
def test_what_is_no_python_is_reported_with_the_compilers_words(text: str) -> None:
    program = build_program(text, PROMPT, "add")
    assert program.fault == NOT_PYTHON
    assert program.source == ""
    assert program.detail


def test_helpers_do_nothing_but_are_python() -> None:
    space: dict[str, object] = {}
    exec(build_helpers(PROMPT), space)
    assert space["add"](1, 2) is None  # type: ignore[operator]
    assert space["helper"](1) == 2  # type: ignore[operator]


HOSTILE_TEXTS = {
    "brackets": "(" * 1_000_000,
    "attributes": "    return a" + ".a" * 29_000,
    "strings": "    return " + "'a' " * 14_000,
    "ifs": "    return " + "1 if 1 else " * 4_500 + "1",
    "indents": "".join(" " * level + "if 1:\n" for level in range(1, 130)),
    "fences": "```\n" * 250_000,
    "functions": "def add(x, y):\n" * 70_000,
    "faults at the margin": "\n".join("    x = (\ny" for _ in range(90_000)),
    "f-strings": "    return " + "f'{" * 100,
    "thinking": "<think>" * 100_000,
    "marks of the end": "    </s> <|end|>" * 80_000,
    "indented prose": "Sure\n" + "    I will\n" * 90_000,
    "imports": "from __future__ import x\n" * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE_TEXTS)
def test_hostile_text_is_read_within_a_bound_also_in_a_thread(name: str) -> None:
    found: list[CodeProgram] = []
    thread = threading.Thread(target=lambda: found.append(build_program(HOSTILE_TEXTS[name], PROMPT, "add")))
    began = time.perf_counter()
    thread.start()
    thread.join()
    assert len(found) == 1
    assert found[0].fault in (None, EMPTY_PROGRAM, NOT_PYTHON)
    assert len(found[0].source) < 4 * LONGEST_PROGRAM
    assert time.perf_counter() - began < 30


PIECES = [
    "```",
    "```python\n",
    "\n",
    "    ",
    "def add(x, y):",
    "return x + y",
    "(",
    '"""',
    "#",
    "\t",
    "<think>",
    "</think>",
    "\0",
    "\r",
    "~~~",
]


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=5)), max_size=30).map("".join))
def test_any_text_is_a_program_or_a_fault(text: str) -> None:
    program = build_program(text, PROMPT, "add")
    assert (program.fault is None) == bool(program.source)
    if program.source:
        compile(program.source, "<test>", "exec")


def test_prompts_are_bodies_of_every_published_problem() -> None:
    path = SHARED / "benchmarks" / "humaneval" / "HumanEval.jsonl"
    if not path.is_file():
        pytest.skip(f"no problems at {path}")
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        prompt, name, body = row["prompt"], row["entry_point"], row["canonical_solution"]
        for text in (body, body.strip(), prompt + body, f"Sure!\n```python\n{prompt}{body}```\nDone."):
            assert build_program(text, prompt, name).fault is None, row["task_id"]
        compile(build_helpers(prompt), "<test>", "exec")

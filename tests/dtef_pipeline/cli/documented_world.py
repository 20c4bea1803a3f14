"""The folder of a reader of the docs: small files with the names that the pages use, and servers in place of models and of a retriever."""

from __future__ import annotations

import csv
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import cycle
from pathlib import Path

import pytest
import yaml

from assets.plugin_assets import load_definitions
from dtef_pipeline.asking.request import Request
from resources.gateway.local_model import LocalTransport
from resources.gateway.prices import Bill
from resources.gateway.transport import Reply
from resources.settings import Settings
from resources.votes.vote_store import VoteStore
from tests.conftest import ROOT
from tests.dtef_pipeline.cli.commands import distribution, skip_charts, skip_site, use
from tests.fake_llm_server import Call, FakeLLM
from tests.json_server import answers, serving
from tests.made.qa_replies import qa_role_of
from tests.made.rubric_replies import Players, role_of

KEPT_COLUMNS = r"(?!O\d|44\+|Africa|Asia|Europe)|O3: (Fem|M)ale"
DROPPED_QUESTIONS = ("s1-02", "s1-04", "s1-05")
"""Of the sample round: small rounds have few segments, and no question about attributes without any."""
CHUNKS = {"context": [{"page_content": "I came by boat.", "metadata": {"FILE": "FR-068.csv", "PROJECT": "FR-068"}}]}
"""Reply of the retrieval server."""
FIRST_BLUEPRINT = ROOT / "docs" / "how-to" / "write-a-blueprint.md"


@contextmanager
def documented_world(folder: Path) -> Iterator[None]:
    """Make the folder the working directory, with an empty state. Models answer from this process."""
    write_files(folder)
    with (
        pytest.MonkeyPatch.context() as patch,
        FakeLLM(reply, embeddings=Players().embeddings) as server,
        serving(answers(200, CHUNKS)) as retriever,
    ):
        use(folder / ".dtef", patch)
        skip_site(patch)
        # With the checks that other tests of commands skip.
        patch.setattr("assets.launch._load_definitions", cache(load_definitions))
        skip_charts(patch)
        patch.setattr(LocalTransport, "ask", ask_local)
        patch.setattr(LocalTransport, "problem", lambda transport, spec: None)
        patch.setenv("DTEF_API_TOKENS", str(folder / "tokens.yaml"))
        patch.setenv("DTEF_MODELS", str(write_models(folder / "models.yaml", server)))
        patch.setenv("DTEF_SOCIOSCOPE_URL", retriever.url)
        patch.setenv("OPENAI_API_KEY", "sk-made-up")
        patch.setenv("OPENAI_API_BASE", server.base_url)
        patch.chdir(folder)
        yield


async def ask_local(transport: LocalTransport, request: Request) -> Reply:
    """Reply in place of the local model, which has tests of its own."""
    text = json.dumps([100 / len(request.choices)] * len(request.choices)) if request.choices else "ACTION: pass"
    return Reply(text, "stop", None, Bill(1, 1, 0.0))


def reply(call: Call) -> str:
    """Return a usable answer to a prompt of any family."""
    if role_of(call.body) == "judge":
        return Players(unreadable=False).reply(call)
    if "CLASS_A" in json.dumps(call.body):
        return "<reflection>The first.</reflection><classification>CLASS_A</classification>"
    if legal := re.search(r"Legal commands: (.*)", call.user):
        return f"Move {len(json.dumps(call.body))}.\nACTION: {legal[1].split(', ')[0]}"
    if "array of" in call.user:
        return distribution(call, 30.0)
    if qa_role_of(call.body) == "judge":
        return '{"score": 0.8, "reason": "It agrees."}'
    return f"Paris, says {len(call.body['model'])}. The answer is A."


def write_models(path: Path, server: FakeLLM) -> Path:
    """Write a models file in which the server plays the models that the pages name. Returns its path."""
    spec = {"api_base": server.base_url, "transport": "direct", "input_price": 1.0, "output_price": 2.0}
    names = {"gpt-4.1": "gpt-4.1", "gpt-4.1-mini": "gpt-4.1-mini", "openai/gpt-4.1-mini": "gpt-4.1-mini", "mine": "mine"}
    models = {name: {"model": f"openai/{served}", **spec} for name, served in names.items()}
    collections = {"core": ["gpt-4.1", "gpt-4.1-mini"], "judges": ["gpt-4.1-mini"]}
    path.write_text(yaml.safe_dump({"collections": collections, "models": models}), encoding="utf-8")
    return path


def write_files(folder: Path) -> None:
    """Write the files that the pages name."""
    (folder / "data").mkdir()
    for path in (ROOT / "data").iterdir():
        if path.name != "rounds":
            (folder / "data" / path.name).symlink_to(path)
    for name in ("data/rounds/S1", "path/to/GD4", "path/to/GD5", "path/to/GD6"):
        write_small_round(folder / name)
    shutil.copytree(ROOT / "data" / "questions" / "mmlu", folder / "path" / "to" / "mmlu")
    for name, text in files_of_questions().items():
        (folder / name).write_text(text, encoding="utf-8")
    shutil.copytree(ROOT / "data" / "questions" / "socioscope", folder / "path" / "to" / "interviews")
    shutil.copy(ROOT / "data" / "questions" / "socioscope" / "questions.json", folder / "path" / "to")
    example = FIRST_BLUEPRINT.read_text(encoding="utf-8")
    for name, language in (("blueprints/trips.yml", "yaml"), ("blueprints/travel.yml", "yaml"), ("models/QUICK.json", "json")):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(re.findall(rf"```{language}\n(.*?)```", example, re.DOTALL)[0], encoding="utf-8")


def files_of_questions() -> dict[str, str]:
    """Return the text of files of questions, answers and votes, by name."""
    program = json.loads((ROOT / "data/questions/humaneval/HumanEval.jsonl").read_text(encoding="utf-8").splitlines()[0])
    completion = {"task_id": program["task_id"], "model": "gpt-4", "completion": "    return None\n"}
    return {
        "HumanEval.jsonl": json.dumps(program) + "\n",
        "completions.jsonl": json.dumps(completion) + "\n",
        "path/to/answers.jsonl": json.dumps({"item_id": "everyday_logic/0", "model": "theirs", "text": "C"}) + "\n",
        "answers.jsonl": json.dumps({"subject": "everyday_logic", "index": 0, "model": "mine", "text": "C"}) + "\n",
        "weights.yaml": "rubric: {beta: 0}\n",
        "votes.csv": "reviewer_id,prompt_id,left,right,choice,confidence\nada,1,x,y,A,4\n",
        "responses.jsonl": "".join(json.dumps({"prompt_id": 1, "model": name, "text": name}) + "\n" for name in "xy"),
        "prompts.jsonl": json.dumps({"prompt_id": 1, "text": "Name a letter."}) + "\n",
    }


def write_small_round(folder: Path) -> None:
    """Write the sample round under the folder's name, with a few segments."""
    folder.mkdir(parents=True)
    for name in ("aggregate_standardized", "segment_counts_by_question"):
        path, target = ROOT / "data" / "rounds" / "S1" / f"S1_{name}.csv", folder / f"{folder.name}_{name}.csv"
        with path.open(encoding="utf-8", newline="") as source, target.open("w", encoding="utf-8", newline="") as written:
            head, *rows = csv.reader(source)
            kept = [at for at, name in enumerate(head) if re.match(KEPT_COLUMNS, name)]
            csv.writer(written).writerows([row[at] for at in kept] for row in (head, *rows) if row[0] not in DROPPED_QUESTIONS)


def write_votes() -> None:
    """Write votes.jsonl as the voting page of a reviewer does."""
    vote = {"kind": "ballot", "schema": 1, "reviewer_id": "class-of-may-1", "confidence": 4, "justification": ""}
    with VoteStore(Settings.read_environment().responses_url) as store:
        pair_ids = store.waiting("class-of-may-1", 200)
    assert pair_ids
    votes = [vote | {"pair_id": pair_id, "choice": choice} for pair_id, choice in zip(pair_ids, cycle(("A", "tie", "B")))]
    Path("votes.jsonl").write_text("\n".join(map(json.dumps, votes)), encoding="utf-8")


def remove_sheet() -> None:
    """Remove sheet.csv, as `dtef export labels` writes new files only."""
    Path("sheet.csv").unlink()


def fill_sheet() -> None:
    """Label all rows of sheet.csv."""
    with Path("sheet.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    with Path("sheet.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(row | {"class": "MAJORLY_MET"} for row in rows)

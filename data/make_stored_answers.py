"""Writes `stored_answers.jsonl`: what the model in this process replied to the sample items that the demo does not have it answer afresh.

The texts are the model's own: it is really asked, with the prompts of `dtef qa run`. What the file has already is not asked again, and what
nobody asks for any more is left out. This script has to be run again when the sample items or the wording of prompts change; all 74 replies
take some ten minutes:

    python data/make_stored_answers.py [file]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from dtef_pipeline.asking.models import load_models
from dtef_pipeline.asking.request import Request
from dtef_pipeline.families import COMPUTED_MODELS
from dtef_pipeline.qa.item_files.suite_files import read_added
from dtef_pipeline.qa.prompt_rows import AskSettings, build_cited_prompts, build_plain_prompts
from dtef_pipeline.qa.stages import build_qa_requests
from dtef_pipeline.qa.suites import load_suites
from dtef_pipeline.qa.transcripts.retriever import make_retriever
from resources.gateway.gateway import Gateway
from resources.responses.files import export_responses, import_responses
from resources.responses.store import ResponseStore

HERE = Path(__file__).resolve().parent
ANSWERED_BY = "local/smollm2-135m"
SNAPSHOT = "base"


class Sample(NamedTuple):
    """Sample items of a suite."""

    suite: str
    path: str
    """Below `data/questions`."""
    corpus: str | None = None
    """The same for the documents that the items are about."""
    answered_live: tuple[str, ...] = ()
    """Parts that the demo has the model answer afresh."""


SAMPLES = (
    Sample("demo-mmlu", "mmlu", answered_live=("everyday_logic",)),
    Sample("demo-gsm8k", "gsm8k"),
    Sample("demo-humaneval", "humaneval"),
    Sample("demo-socioscope", "socioscope/questions.json", "socioscope"),
)
"""What `make demo` adds."""


def replayed_requests(sample: Sample) -> list[Request]:
    """What `dtef qa run` asks the model about the items, with no option given, of those parts that are not answered live."""
    folder = HERE / "questions"
    spec = load_suites(folder / "suites.yaml").route(sample.suite)
    added = read_added(spec, folder / sample.path, folder / sample.corpus if sample.corpus else None, strict=True)
    items, how = added.loaded_items.items, AskSettings()
    if added.documents is None:
        tables = build_plain_prompts(items, added.loaded_items.examples, how)
    else:
        tables = build_cited_prompts(items, added.documents, how, make_retriever(how.retriever, added.documents, None))
    replayed = pc.invert(pc.is_in(tables.qa_prompts["part"], pa.array(sample.answered_live, pa.string())))
    (model,) = load_models(HERE / "models.yaml", computed=COMPUTED_MODELS).resolve([ANSWERED_BY])
    return build_qa_requests(tables.qa_prompts.filter(replayed), model, 1, SNAPSHOT)


def main(path: Path) -> None:
    """Write the file, after each suite: what was answered until then is kept where the script is ended."""
    requests = {sample: replayed_requests(sample) for sample in SAMPLES}
    wanted = {request.key for of_sample in requests.values() for request in of_sample}
    with tempfile.TemporaryDirectory() as folder, ResponseStore(Path(folder) / "responses.sqlite") as store:
        if path.is_file():
            import_responses(store, _still_wanted(path, wanted, Path(folder) / "earlier.jsonl"))
        gateway = Gateway(store)
        for sample, of_sample in requests.items():
            outcome = gateway.answer(of_sample)
            for failure in outcome.failures.values():
                raise SystemExit(f"{sample.suite}: {failure.message}")
            print(f"{sample.suite}: {outcome.asked} asked; {export_responses(store, path)} responses in {path}", flush=True)


def _still_wanted(path: Path, wanted: set[str], kept: Path) -> Path:
    """The file of the lines at `path` that are asked for."""
    with path.open(encoding="utf-8", newline="\n") as lines, kept.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(line for line in lines if json.loads(line)["request_key"] in wanted)
    return kept


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "stored_answers.jsonl")

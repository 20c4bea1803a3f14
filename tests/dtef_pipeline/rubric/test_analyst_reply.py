"""What an analyst wrote, read back: blocks in every form, grades, and ids that become names."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtef_pipeline.rubric.analyst_report import (
    DIMENSIONS,
    INSIGHT_KINDS,
    escape_markdown,
    extract_reasoning,
    read_replies,
    replace_refs,
    score_in,
)
from dtef_pipeline.rubric.anonymise import Participant, draw_pseudonyms
from tests.made.shared_cases import cases_beside

CASES = cases_beside(__file__)

GPT, CLAUDE = "openai/gpt-4o", "anthropic/claude-sonnet-4"
IDS = draw_pseudonyms([Participant(GPT, 0.5, 1), Participant(GPT, 0.0, 0), Participant(CLAUDE, 0.0, 0)], 7)
MAKER, MODEL = IDS.name_model(GPT).split("/")
REF = f'<ref maker="{MAKER}" model="{MODEL}" />'
VARIANT = f'<ref maker="{MAKER}" model="{MODEL}" sys="{IDS.systems[1]}" temp="{IDS.temperatures[0.5]}"/>'


def grade(dimension: str = "clarity", inside: str = "REASONING: good.\nSCORE: 8/10", model: str = GPT) -> str:
    maker, _, name = IDS.name_model(model).partition("/")
    return f'<grade maker="{maker}" model="{name}" dimension="{dimension}">{inside}</grade>'


def whole() -> str:
    findings = "\n".join(f"<{kind}>{kind} {REF}</{kind}>" for kind in INSIGHT_KINDS)
    return findings + "".join(grade(dimension, model=model) for dimension in DIMENSIONS for model in (GPT, CLAUDE))


class TestBlocks:
    def test_a_whole_reply_misses_nothing(self) -> None:
        reply = read_replies((whole(),), IDS)
        assert (reply.missing_blocks, reply.n_dropped) == ((), 0)
        assert [finding.kind for finding in reply.findings] == list(INSIGHT_KINDS)
        assert len(reply.grades) == 26
        assert reply.findings[0].text == "key_finding openai/gpt-4o"

    def test_what_is_missing_is_named_by_kind_and_by_ids(self) -> None:
        reply = read_replies((whole().replace("pattern>", "hunch>").replace(grade("tone"), ""),), IDS)
        assert reply.missing_blocks == ("pattern", f"{MAKER}/{MODEL} tone")

    def test_a_second_reply_adds_what_was_missing(self) -> None:
        first = whole().replace(grade("tone"), "")
        reply = read_replies((first, grade("tone", "SCORE: 3")), IDS)
        assert reply.missing_blocks == ()
        assert next(one.score for one in reply.grades if (one.model, one.dimension) == (GPT, "tone")) == 3

    def test_a_second_reply_repeats_no_finding(self) -> None:
        """Asked for one missing kind, an analyst may write all kinds again, in other words; both stood in the summary."""
        first = whole().replace("<pattern>", "<hunch>").replace("</pattern>", "</hunch>")
        reply = read_replies((first, whole().replace("<topic>", "<topic>again: ")), IDS)
        assert [finding.kind for finding in reply.findings] == [
            *(kind for kind in INSIGHT_KINDS if kind != "pattern"),
            "pattern",
        ]

    def test_tags_are_read_in_any_case_and_thoughts_are_not(self) -> None:
        text = f"<think><strength>no</strength>{grade()}</think><Strength>yes</STRENGTH>"
        reply = read_replies((text,), IDS)
        assert [finding.text for finding in reply.findings] == ["yes"]
        assert reply.grades == ()

    def test_unknown_models_and_dimensions_are_dropped_and_counted(self) -> None:
        text = grade("charm") + grade().replace(MODEL, "MD_6999") + grade(inside="SCORE: 2") + grade(inside="SCORE: 9")
        reply = read_replies((text,), IDS)
        assert reply.n_dropped == 3
        assert [one.score for one in reply.grades] == [9]

    def test_a_grade_of_n_a_is_there_and_null(self) -> None:
        reply = read_replies((grade(inside="REASONING: none was asked.\nSCORE: N/A"),), IDS)
        assert (reply.grades[0].score, reply.grades[0].reasoning) == (None, "none was asked.")
        assert f"{MAKER}/{MODEL} clarity" not in reply.missing_blocks


class TestNames:
    def test_refs_become_models_variants_makers_and_prompts(self) -> None:
        text = f'{REF}, {VARIANT}, <ref maker="{MAKER}"/>, <ref maker="{MAKER}" model="{MODEL}" prompt="P_2"></ref>'
        of_variant = "openai/gpt-4o[temp:0.5][sp_idx:1]"
        assert replace_refs(text, IDS, {"P_2": "second"}) == f"openai/gpt-4o, {of_variant}, OpenAI, openai/gpt-4o"

    @pytest.mark.parametrize(
        "form", [escape(REF), escape(REF, quote=False), REF.replace(" />", ">"), REF.upper().replace("MAKER=", "maker=")]
    )
    def test_escaped_and_otherwise_written_refs_are_read(self, form: str) -> None:
        assert replace_refs(f"a {form} b", IDS) == "a openai/gpt-4o b"

    def test_bare_ids_become_names(self) -> None:
        """Only ids in a `<ref>` became names."""
        of_variant = IDS.format_pseudonym(Participant(GPT, 0.5, 1))
        text = f"{MODEL} wins, {MAKER}/{MODEL} too, **{MODEL}**'s {of_variant}, {MAKER}."
        name = "openai/gpt-4o"
        named = f"{name} wins, {name} too, **{name}**'s {name}[temp:0.5][sp_idx:1], OpenAI."
        assert replace_refs(text, IDS) == named
        assert replace_refs(text.lower(), IDS) == named

    def test_markdown_around_an_id_and_in_it_hides_no_name(self) -> None:
        text = f"_{MODEL}_, __{MODEL}__, {MODEL.replace('_', '&_')}".replace("&", chr(92))
        assert replace_refs(text, IDS) == "_openai/gpt-4o_, __openai/gpt-4o__, openai/gpt-4o"

    @pytest.mark.parametrize("text", ["MD_9999 wins", "XMD_6000", "MK_5009/MD_6000 (sys:S_7000)", "MD_60000", "MD_"])
    def test_an_unknown_bare_id_stays_as_it_is(self, text: str) -> None:
        assert replace_refs(text, IDS) == text

    @pytest.mark.parametrize(
        "ref",
        [
            '<ref maker="MK_5000" model="MD_9999" />',
            '<ref maker="MK_1"/>',
            "<ref/>",
            '<ref model="" />',
            "<ref",
            '<ref prompt="P_9"/>',
        ],
    )
    def test_an_unknown_ref_stays_as_it_is(self, ref: str) -> None:
        assert replace_refs(f"a {ref} b", IDS, {}) == f"a {ref} b"

    def test_what_the_analyst_wrote_is_no_markup(self) -> None:
        written = escape_markdown(replace_refs(f"[x](javascript:1) <script>a</script> **b** {REF} https://evil.example", IDS))
        assert r"\[x\]\(javascript\:1\) \<script\>" in written
        assert r"openai/gpt\-4o" in written
        assert r"https\://" in written

    def test_a_model_goes_by_the_name_that_tables_have_for_it(self) -> None:
        names = {GPT: "my-gpt", "else": "other"}
        text = replace_refs(f"{REF} and {VARIANT} by <ref maker='{MAKER}'/>", IDS, names=names)
        assert text == "my-gpt and my-gpt[temp:0.5][sp_idx:1] by OpenAI"

    @given(st.text(max_size=60), st.sampled_from([REF, VARIANT, escape(VARIANT)]), st.text(max_size=60))
    def test_everything_around_a_mention_is_kept(self, before: str, ref: str, after: str) -> None:
        before, after = before.replace("<", "").replace("&", ""), after.replace("<", "").replace(">", "").replace("&", "")
        name = "openai/gpt-4o" if ref == REF else "openai/gpt-4o[temp:0.5][sp_idx:1]"
        assert replace_refs(f"{before}{ref} {after}", IDS) == f"{before}{name} {after}"


@pytest.mark.parametrize(("text", "score"), CASES["scores"])
def test_the_score_is_the_first_number_behind_its_word(text: str, score: float | None) -> None:
    assert score_in(text) == (None if score is None else pytest.approx(score))


def test_reasoning_may_span_lines() -> None:
    assert extract_reasoning("REASONING: one\ntwo\nSCORE: 8/10") == "one\ntwo"
    assert extract_reasoning("**REASONING:** one") == "one"


@given(st.text(max_size=80))
def test_whatever_is_written_a_score_is_none_or_from_1_to_10(text: str) -> None:
    score = score_in(f"SCORE: {text}")
    assert score is None or 1 <= score <= 10

"""Texts in place of shipped prompts: checked, in force for what runs inside, known by a hash."""

from __future__ import annotations

import asyncio
from string import Template

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import InvalidInputError
from pipelines.prompts import (
    MAX_PROMPT,
    Prompts,
    checked_text,
    checked_wording,
    load_prompts,
    own_prompts,
    prompt_files,
    prompt_problems,
    used_wording,
    with_text,
    worded,
)

VERIFY = ("ever", "en", "verify")
OWN = {"ever": {"en": {"verify": "From $passages alone: is it so? $question"}}}
NAMES = ["passages", "question"]


def test_every_shipped_prompt_is_one_that_could_be_written_by_hand():
    for file in prompt_files():
        prompts = load_prompts(file)
        for language in prompts.languages:
            for key in prompts.keys(language):
                text = prompts.default(language, key)
                assert checked_text(file, language, key, text) == text
                assert not prompt_problems(text, prompts.placeholders(language, key))
    assert "answer_judge" not in prompt_files()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$passages $question", []),
        ("${passages}: ${question}$$", []),
        ("$passages", [("missing", "question", 0, 0)]),
        (
            "$passages\n  $questions",
            [("unknown", "questions", 2, 3), ("missing", "question", 0, 0)],
        ),
        ("$passages $question costs $5", [("dollar", "", 1, 27)]),
        ("$passages $question $", [("dollar", "", 1, 21)]),
        ("$passages\n\n$question ${", [("dollar", "", 3, 11)]),
        (" \n", [("empty", "", 0, 0)]),
        ("x" * (MAX_PROMPT + 1), [("long", "", 0, 0)]),
        # The same placeholder may stand twice; a Chinese character ends its name.
        ("$passages$passages，$question。", []),
    ],
)
def test_what_is_wrong_is_found_with_its_place(text: str, found: list[tuple[str, str, int, int]]):
    assert [tuple(one) for one in prompt_problems(text, NAMES)] == found


@given(st.text(alphabet="ab$ {}\n_éß字passagesquestion", max_size=60))
def test_a_text_without_a_problem_can_be_filled_and_no_other(text: str):
    values = {"passages": "P", "question": "Q"}
    if prompt_problems(text, NAMES):
        template = Template(text)
        fits = template.is_valid() and set(template.get_identifiers()) == set(values)
        assert not (fits and text.strip())
    else:
        Template(text).substitute(values)


@given(st.text(max_size=200).map(lambda text: text.replace("$", "$$")))
def test_any_text_with_its_dollars_doubled_is_a_prompt(text: str):
    assert [one.kind for one in prompt_problems(f"{text} $passages", ["passages"])] == []


@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        (("none", "en", "verify"), "x", "no prompt file 'none'"),
        (("answer_judge", "en", "judge"), "x", "no prompt file"),
        (("ever", "fr", "verify"), "x", "language 'fr'"),
        (("ever", "en", "shots"), "x", "no prompt 'shots'"),
        (VERIFY, "$passages", r"ever/verify \(en\) cannot be used: The placeholder \$question is"),
        (VERIFY, "$passages $question\n$x", r"Line 2, column 1: there is no value for \$x"),
        (VERIFY, "$passages $question $", "Line 1, column 21: a single dollar sign"),
        (VERIFY, " ", "There is no text"),
        (VERIFY, "x" * (MAX_PROMPT + 1), "8,000"),
    ],
)
def test_what_cannot_be_used_is_refused_with_its_place(
    place: tuple[str, str, str], text: str, said: str
):
    file, language, key = place
    with pytest.raises(InvalidInputError, match=said):
        checked_wording({file: {language: {key: text}}})


def test_only_what_differs_is_kept():
    default = load_prompts("ever").default("en", "verify")
    assert checked_wording({"ever": {"en": {"verify": f"\r\n{default}\n"}}}) == {}
    own = OWN["ever"]["en"]["verify"]
    assert checked_wording({"ever": {"en": {"verify": f"{own}\r\n"}, "zh": {}}}) == OWN


def test_one_text_is_put_in_and_taken_out():
    both = with_text(OWN, "drad", "zh", "system", "简短。")
    assert own_prompts(both) == own_prompts(OWN) | {("drad", "zh", "system"): "简短。"}
    assert with_text(both, "drad", "zh", "system", None) == OWN
    assert with_text(OWN, *VERIFY, None) == {}
    assert with_text({}, *VERIFY, "x") == {"ever": {"en": {"verify": "x"}}}


def test_a_wording_is_in_force_inside_only_and_has_another_hash():
    prompts = load_prompts("ever")
    usual, shipped = prompts.text("en", "verify"), prompts.hash
    with worded(OWN):
        filled = prompts.fill("en", "verify", passages="P", question="Q")
        assert filled == "From P alone: is it so? Q"
        assert prompts.text("zh", "verify") == prompts.default("zh", "verify") + "\n"
        assert prompts.hash == prompts.hash_with(OWN) != shipped
        with worded({}):
            assert prompts.hash == shipped
        assert load_prompts("drad").hash == load_prompts("drad").hash_with({})
    assert (prompts.text("en", "verify"), prompts.hash) == (usual, shipped)
    other = {"ever": {"en": {"verify": "$passages $question"}}}
    assert len({prompts.hash_with(one) for one in ({}, OWN, other)}) == 3
    assert len(prompts.hash_with(OWN)) == 16
    # Another file of the same name is not the shipped one.
    assert Prompts("ever", '[en]\nverify = "x"\n').hash_with({}) != shipped


def test_the_part_of_a_method_is_what_its_files_are_in():
    wording = with_text(OWN, "drad", "en", "system", "Short.")
    assert used_wording(wording, [load_prompts("ever"), load_prompts("rag")]) == OWN


async def test_tasks_that_begin_inside_inherit_the_wording_and_others_do_not():
    prompts = load_prompts("direct")
    ready, go = asyncio.Event(), asyncio.Event()
    seen: dict[str, str] = {}

    async def look(name: str) -> None:
        await go.wait()
        seen[name] = prompts.text("en", "system").strip()

    async def inside(text: str) -> None:
        with worded({"direct": {"en": {"system": text}}}):
            ready.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(look(text))

    async with asyncio.TaskGroup() as group:
        group.create_task(inside("One."))
        group.create_task(inside("Two."))
        group.create_task(look("none"))
        await ready.wait()
        go.set()
    assert seen == {"One.": "One.", "Two.": "Two.", "none": prompts.default("en", "system")}

"""What can be checked, by which detectors, and the run that does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pipelines.base import Language
from pipelines.engine.asking import RunRequest, make_plan, plan_run
from pipelines.engine.checking import (
    FEWER,
    MAX_SENTENCES,
    STANDARD,
    TextToCheck,
    detectors,
    is_check,
    models_for,
    problem_of,
    split_sources,
    text_of,
    title_of,
    unmet_needs,
)
from pipelines.engine.executor import left_out
from pipelines.errors import InvalidInputError
from pipelines.methods.registry import METHODS
from pipelines.models.base import JUDGE, Capabilities
from pipelines.retrieval.documents import TextRetriever
from pipelines.run.events import (
    MAX_QUESTION,
    MAX_SOURCES,
    MAX_TEXT,
    EvidenceSpec,
    MethodSpec,
    ModelSpec,
    RunSpec,
    default_models,
)
from pipelines.run.view import RunView
from pipelines.samples.walkthroughs import sample_texts
from pipelines.text import detect_language, split_sentences

TEXT = "Curie was born in Warsaw. She died in 1934."
SLM = (MethodSpec(name="slm"),)
BOTH: frozenset[Language] = frozenset({"en", "zh"})
READS = Capabilities(languages=BOTH, logprobs=True, scores=True)


def checked(given: TextToCheck, methods: Sequence[MethodSpec] = SLM, **asked: Any) -> RunSpec:
    return plan_run(RunRequest(text=given, methods=methods, **asked)).spec


def test_the_standard_detectors_come_first_and_all_can_check():
    names = list(detectors())
    assert names[: len(STANDARD)] == list(STANDARD)
    assert set(names) == {name for name, method in METHODS.items() if method.checks}
    assert set(FEWER) <= set(STANDARD)


def test_a_check_is_a_run_whose_answer_is_given():
    given = TextToCheck(text=f"  {TEXT}\n", question="Who was Curie? ")
    spec = checked(given)
    assert is_check(spec)
    assert spec.answer is not None
    assert (spec.answer.text, spec.answer.asked) == (TEXT, True)
    # Two sentences: neither answers the question by itself.
    assert spec.answer.alone
    short = checked(TextToCheck(text="In Warsaw.", question="Where?"))
    assert short.answer is not None
    assert not short.answer.alone
    assert spec.question == "Who was Curie?"
    assert spec.evidence == EvidenceSpec()
    assert make_plan(spec).question.about == ""


@pytest.mark.parametrize(
    ("text", "language"), [(TEXT, "en"), ("居里夫人出生于华沙。她于1934年去世。", "zh")]
)
def test_without_a_question_the_text_stands_alone(text: str, language: str):
    spec = checked(TextToCheck(text=text))
    assert spec.answer is not None
    assert not spec.answer.asked
    assert spec.language == language
    question = make_plan(spec).question
    assert (question.language, question.about, question.query) == (language, text, text)
    # Nothing of the text stands in it: what a question names counts as given.
    assert detect_language(question.text) == language
    assert not {"Curie", "居里"} & set(question.text.split())
    assert text_of(spec) == TextToCheck(text=text, language=spec.language)


def test_sources_are_the_evidence_each_kept_apart():
    given = TextToCheck(text=TEXT, sources=("One.\n\nStill one.", "", "Two."))
    spec = checked(given, evidence=EvidenceSpec(library="other"))
    assert spec.evidence == EvidenceSpec(source="given", text="One.\nStill one.\n\nTwo.")
    assert text_of(spec).sources == ("One.\nStill one.", "Two.")


async def test_a_passage_holds_nothing_of_two_sources():
    found = await TextRetriever("Tea is hot.\n\nIce is cold.\n").search("ice", 5)
    assert [(one.id, one.text) for one in found] == [
        ("given-2#0", "Ice is cold."),
        ("given-1#0", "Tea is hot."),
    ]
    (alone,) = await TextRetriever("Tea is hot.\nIce is cold.").search("ice", 5)
    assert alone.id == "given#0"


def test_blocks_are_separated_by_empty_lines():
    assert split_sources(" \na\nb\n \n\nc \n") == ["a\nb", "c"]
    assert split_sources("") == []


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (TextToCheck(text=" \n"), "no_text"),
        (TextToCheck(text="…!?"), "no_words"),
        (TextToCheck(text="x" * (MAX_TEXT + 1)), "long_text"),
        (TextToCheck(text=TEXT, question="q" * (MAX_QUESTION + 1)), "long_question"),
        (TextToCheck(text=TEXT, sources=("s" * (MAX_SOURCES + 1),)), "long_sources"),
        (TextToCheck(text=TEXT, sources=("???",)), "no_words_in_sources"),
        (TextToCheck(text="So it is. " * (MAX_SENTENCES + 1)), "many_sentences"),
        (TextToCheck(text="Who was Curie?", question="Who was Curie?"), "repeats"),
    ],
)
def test_what_cannot_be_checked_says_what_to_do(given: TextToCheck, name: str):
    wrong = problem_of(given)
    assert wrong is not None
    with pytest.raises(InvalidInputError) as caught:
        checked(given)
    assert (caught.value.key, wrong.name) == (f"checking.{name}", name)
    assert caught.value.remedy


def test_haarag_only_aligns_unless_settings_say_otherwise():
    methods = [MethodSpec(name="haarag", settings={"rephrase": "widen"})]
    spec = checked(TextToCheck(text=TEXT), methods)
    assert spec.methods[0].settings == {"max_iterations": 1, "rephrase": "widen"}


def reasons(models: dict[str, Capabilities], **known: object) -> dict[str, str]:
    given = {"asked": True, "has_evidence": True, **known}
    found = unmet_needs(models, **given)  # pyright: ignore[reportArgumentType]
    return {name: need.reason for name, need in found.items() if need is not None}


def test_with_everything_every_detector_can_work():
    assert reasons({"main": READS, "judge_1": JUDGE}) == {}


def test_without_the_question_those_that_compare_answers_say_so():
    found = reasons({"main": READS}, asked=False)
    assert found == {
        name: "question" for name, method in METHODS.items() if method.checks == "answer"
    }


def test_without_scores_tokens_cannot_be_measured():
    blind = READS.model_copy(update={"scores": False})
    # With the question, samples stand in for DRAD.
    assert reasons({"main": blind}) == {"token_probability": "scores"}
    found = reasons({"main": blind}, asked=False)
    assert (found["drad"], found["token_probability"]) == ("scores", "scores")
    assert "drad" not in reasons({"main": blind, "proxy": READS}, asked=False)
    # A choice of whose probabilities count is kept to.
    settings = {"drad": {"confidence": "logprobs"}, "token_probability": {"source": "proxy"}}
    found = reasons({"main": READS}, settings=settings)
    assert found == {"token_probability": "scores"}


def test_without_evidence_what_is_compared_with_none_is_left():
    able = set(detectors()) - set(reasons({"main": READS}, has_evidence=False))
    assert {"drad", "token_probability", "selfcheck"} <= able
    assert not {"ever", "haarag", "slm", "p_yes"} & able


def test_where_nobody_speaks_the_language_only_judges_may():
    english = READS.model_copy(update={"languages": frozenset({"en"})})
    judge = JUDGE.model_copy(update={"languages": BOTH})
    found = reasons({"main": english, "judge_1": judge}, language="zh", asked=False)
    able = set(detectors()) - set(found)
    assert able == {"slm", "haarag", "p_yes"}
    assert found["ever"] == "speaks"
    assert "slm" in reasons({"main": english, "judge_1": JUDGE}, language="zh")


def test_a_list_calls_a_check_by_its_question_or_its_beginning():
    assert title_of(TextToCheck(text=TEXT, question="Who?")) == "Who?"
    assert title_of(TextToCheck(text="a  b\n" * 100), 10) == "a b a b a…"


def test_nothing_is_added_to_a_check():
    assert left_out(RunView()) == []


@pytest.mark.parametrize("sample", sample_texts(), ids=lambda one: one.id)
def test_the_examples_can_be_checked_and_say_what_is_wrong(sample: object):
    from pipelines.samples.walkthroughs import SampleText

    assert isinstance(sample, SampleText)
    assert problem_of(sample.given) is None
    assert detect_language(sample.text) == sample.language
    count = len(split_sentences(sample.text))
    assert sample.wrong
    assert all(1 <= number <= count for number in sample.wrong)
    assert len(sample.wrong) < count


def test_there_are_examples_with_and_without_sources_in_both_languages():
    kinds = {(one.language, bool(one.sources)) for one in sample_texts()}
    assert kinds == {("en", True), ("en", False), ("zh", True), ("zh", False)}


def test_models_are_those_of_the_texts_language_unless_chosen():
    chosen = {"main": ModelSpec(kind="scripted", name="A script", model="one.json")}
    assert models_for(TextToCheck(text="埃菲尔铁塔在巴黎。"), chosen) == chosen
    texts: dict[Language, str] = {"zh": "埃菲尔铁塔在巴黎。", "en": "It is in Paris."}
    for language, text in texts.items():
        found = models_for(TextToCheck(text=text), default_models())
        assert found == default_models(language)
    said = TextToCheck(text="1889", language="zh")
    assert models_for(said, default_models()) == default_models("zh")

"""What a validation question decides: whether it is used, what it claims, what is searched for."""

from __future__ import annotations

import pytest

from pipelines.base import Language
from pipelines.methods.ever import Ever
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.ever.concepts import concepts_in
from pipelines.methods.ever.questions import Checked, Validation, is_usable, validation_for
from pipelines.methods.subjects import main_subject
from pipelines.models.judges.base import ClaimVerdict
from pipelines.text import Span, detect_language
from tests.scripted.bench import FULL, ClaimReader, run_method
from tests.scripted.ever import (
    FIRST,
    QUESTION,
    Archive,
    EverModel,
    Part,
    asked_of,
    detail_of,
    ever_run,
    judged_of,
)
from tests.scripted.slm import JudgeModel


def span(sentence: str, text: str) -> Span:
    start = sentence.index(text)
    return Span.of(sentence, start, start + len(text))


def made(
    reply: str,
    concept: str = "chemist",
    sentence: str = FIRST,
    question: str = QUESTION,
    others: tuple[str, ...] = (),
    context: str = "",
) -> Validation:
    about = Checked(
        question=question,
        sentence=sentence,
        concept=span(sentence, concept),
        others=tuple(span(sentence, other) for other in others),
        context=context,
    )
    return validation_for(reply, about, detect_language(question))


@pytest.mark.parametrize(
    ("reply", "concept"),
    [
        ("Was Ada Brandt a chemist?", "chemist"),
        ("Is it true that Ada was a chemist?", "chemist"),
        ("The question is: Was Brandt a chemist?", "chemist"),
        ("Did Ada Brandt work as a chemist? Yes, she did.", "chemist"),
        ("In later life, was Ada Brandt a chemist?", "chemist"),
        ("“Was Ada Brandt born in 1931?”", "1931"),
        ("Does chemist fit Ada Brandt?", "chemist"),
    ],
)
def test_a_yes_no_question_that_names_its_subject_is_used(reply, concept):
    validation = made(reply, concept)
    assert validation.kind == "written"
    assert validation.text in reply
    assert validation.text.endswith("?")
    assert validation.query == validation.text


@pytest.mark.parametrize(
    "reply",
    [
        "(1813)",
        "",
        "chemist",
        "Ada Brandt was a chemist.",
        # Not to be answered with yes or no.
        "The question is: Which year was Ada Brandt a chemist?",
        "What chemist was Ada Brandt?",
        "When, in her youth, was Ada Brandt a chemist?",
        # The concept is missing, or part of another word.
        "Was Ada Brandt a pianist?",
        "Was Ada Brandt a biochemist?",
        # Whom it is about is missing, or a pronoun.
        "Was she a chemist?",
        "Is a chemist somebody?",
        "Was it a chemist?",
        # A choice, a denial, another language.
        "Was Ada Brandt a chemist or a botanist?",
        "Was Ada Brandt not a chemist?",
        "Wasn't Ada Brandt a chemist?",
        "Ada Brandt 是 chemist 吗？",
    ],
)
def test_what_cannot_be_used_is_replaced_by_a_question_about_the_concept(reply):
    validation = made(reply, others=("1931",))
    assert validation == Validation(
        kind="template",
        text=("Does “chemist” belong in the blank of “Ada Brandt was a ____.”?"),
        claim="Ada Brandt was a chemist.",
        query="Who was Ada Brandt? Ada Brandt was a chemist.",
        whole=FIRST,
    )


def test_what_the_sentence_denies_the_question_has_to_deny():
    sentence, question = "Pluto is not a planet, but it has a moon.", "What is Pluto?"
    assert made("Is Pluto a planet?", "planet", sentence, question).kind == "template"
    assert made("Is Pluto not a planet?", "planet", sentence, question).kind == "written"
    assert made("Does Pluto have a moon?", "moon", sentence, question).kind == "written"


@pytest.mark.parametrize(
    ("concept", "reply", "used"),
    [
        ("5 June 1995", "Was Ada Brandt born on June 5, 1995?", True),
        ("5 June 1995", "Was Ada Brandt born on 5 June 1996?", False),
        ("the Salt Works", "Did Ada Brandt lead the Salt Works?", True),
        ("won the Crown Prize", "Did Ada Brandt win the Crown Prize?", True),
        ("won the Crown Prize", "Did Ada Brandt win the Queen Prize?", False),
        ("5 million people", "Did Ada Brandt lead 5 thousand people?", False),
        ("3.14 km", "Did Ada Brandt run 3.14 km?", True),
        ("3.14 km", "Did Ada Brandt run 3 km?", False),
    ],
)
def test_a_concept_is_found_by_its_words(concept, reply, used):
    sentence = f"Of Ada Brandt it is said: {concept}."
    assert (made(reply, concept, sentence).kind == "written") is used


@pytest.mark.parametrize(
    ("reply", "used"),
    [
        ("鲁明是化学家吗？", True),
        ("鲁明是否是化学家？", True),
        ("鲁明是不是化学家？", True),
        ("他是化学家吗？", False),
        ("是化学家吗？", False),
        ("鲁明是什么化学家？", False),
        ("鲁明不是化学家吗？", False),
        ("Was 鲁明 a 化学家?", False),
    ],
)
def test_chinese_questions_follow_the_same_rules(reply, used):
    validation = made(reply, "化学家", "鲁明是化学家，生于1931年。", "鲁明是谁？", ("1931年",))
    assert (validation.kind == "written") is used
    assert validation.claim == "鲁明是化学家。"


@pytest.mark.parametrize(
    ("reply", "used"), [("《边城》是1934年出版的吗？", True), ("是1934年出版的吗？", False)]
)
def test_what_a_chinese_question_shares_has_to_be_its_subject(reply, used):
    validation = made(reply, "1934年", "《边城》于1934年出版。", "《边城》是哪一年出版的？")
    assert (validation.kind == "written") is used


@pytest.mark.parametrize(
    ("asked", "sentence", "concept", "used"),
    [
        ("Was the capital of Australia chosen by Sydney in 1908?",
         "Sydney was chosen as the capital of Australia in 1908.", "Sydney", False),
        ("Was Sydney chosen as the capital of Australia in 1908?",
         "Sydney was chosen as the capital of Australia in 1908.", "Sydney", True),
        ("Was the capital of Australia chosen by Sydney in 1908?",
         "Sydney was chosen as the capital of Australia in 1908.", "1908", True),
        # It names somebody that neither text nor question name, or counts something else.
        ("Was Ada Brandt a chemist like Marie Curie?", FIRST, "chemist", False),
        ("Was Ada Brandt a chemist in 1950?", FIRST, "chemist", False),
    ],
)  # fmt: skip
def test_a_question_is_about_the_concept_in_its_place(asked, sentence, concept, used):
    question = "What is the capital of Australia?" if "Sydney" in sentence else QUESTION
    validation = made(asked, concept, sentence, question)
    assert (validation.kind == "written") is used
    # Whatever is asked, the claim is made from the sentence.
    assert concept in validation.claim


@pytest.mark.parametrize(
    ("sentence", "concept", "others", "claim"),
    [
        # What a sentence is not whole without stays, and is judged with the concept.
        (FIRST, "1931", ("chemist",), FIRST),
        (FIRST, "chemist", ("1931",), "Ada Brandt was a chemist."),
        ("Ada was born in York on 3 May 1931.", "3 May 1931", ("York",),
         "Ada was born on 3 May 1931."),
        ("In 1931, Ada led the works.", "works", ("1931",), "Ada led the works."),
        ("Ada, a chemist, was born in York.", "York", ("chemist",), "Ada was born in York."),
        ("Ada was an engineer and painter.", "painter", ("engineer",), "Ada was a painter."),
        ("The lamp was invented by Carr at Delft in 1902.", "Delft", ("Carr", "1902"),
         "The lamp was invented at Delft."),
        # What stands behind a comma may hang on what would go.
        ("Ada was born in York, where she led the works.", "works", ("York",),
         "Ada was born in York, where she led the works."),
        ("The novel (1813) is by Ada.", "Ada", ("1813",), "The novel is by Ada."),
        ("He was killed by a cart in 1906.", "1906", ("killed by a cart",),
         "Ada Brandt was killed by a cart in 1906."),
        ("Frida Kahlo created The Two Fridas.", "The Two Fridas", ("Frida Kahlo",),
         "Frida Kahlo created The Two Fridas."),
        ("The Danube is longer (2,700 km) than the Rhine.", "longer", ("2,700 km", "Rhine"),
         "The Danube is longer than the Rhine."),
        ("Ada Brandt (10 December 1815 – 27 November 1999) was born in York.",
         "27 November 1999", ("York",), "Ada Brandt died on 27 November 1999."),
        ("鲁明（1815年－1899年）是化学家。", "1815年", (), "鲁明生于1815年。"),
        ("鲁明是化学家，生于1931年。", "1931年", (), "鲁明生于1931年。"),
        # What the sentence is about stays.
        ("Ada Brandt led the works.", "works", ("Ada Brandt",), "Ada Brandt led the works."),
    ],
)  # fmt: skip
def test_a_question_made_from_the_sentence_claims_this_concept_only(
    sentence, concept, others, claim
):
    assert made("", concept, sentence, others=others).claim == claim


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("Who was Ada Brandt?", "Ada Brandt"),
        ("When did Jane Austen publish Pride and Prejudice?", "Jane Austen"),
        ("What is the capital of France?", "capital of France"),
        ("In which year did World War 2 end?", "World War 2"),
        ("What was Jane Austen's first novel?", "Jane Austen's first novel"),
        ("Tell me about Ada Brandt.", "Ada Brandt"),
        ("Can lightning strike the same place twice?", "lightning"),
        ("Is the speed of light constant?", "speed of light"),
        ("", ""),
        ("鲁明是谁？", "鲁明"),
        ("请介绍居里夫人。", "居里夫人"),
        ("谁写了《红楼梦》？", "红楼梦"),
        ("法国的首都是哪里？", "法国的首都"),
    ],
)
def test_a_question_tells_what_it_is_about(question, subject):
    assert main_subject(question) == subject


@pytest.mark.parametrize(
    ("question", "sentence", "listed", "kept"),
    [
        (QUESTION, FIRST, ["Ada Brandt", "chemist", "1931"], ["chemist", "1931"]),
        ("Who wrote Emma?", "Jane Austen wrote Emma.", ["Jane Austen", "Emma"], ["Jane Austen"]),
        ("What is the capital of France?", "Paris is the capital of France.",
         ["Paris", "capital of France"], ["Paris"]),
        ("Who led it?", "Ada Brandt was the head of it in 1931.",
         ["head", "1931"], ["Ada Brandt", "head", "1931"]),
        ("What is the capital of Australia?",
         "Sydney was chosen as the capital of Australia in 1908.",
         ["capital of Australia", "1908"], ["Sydney", "1908"]),
        ("", "Thomas Edison invented the telephone in 1876.", ["telephone", "1876"],
         ["Thomas Edison", "telephone", "1876"]),
        ("澳大利亚的首都是哪里？",
         "悉尼于1908年被选为澳大利亚的首都。", ["1908年"], ["悉尼", "1908年"]),
        ("", "爱迪生在1876年发明了电话。", ["1876年", "电话"], ["爱迪生", "1876年", "电话"]),
        # A comparison is a detail, listed or not.
        ("Is the Danube longer than the Rhine?", "The Danube is longer than the Rhine.", ["Rhine"],
         ["longer than the Rhine"]),
        ("长江比黄河长吗？", "长江比黄河长。", ["黄河"], ["比黄河长"]),
        # What comes first is not always what a sentence is about.
        ("Who led it?", "In 1931 Ada Brandt was its head.", ["1931", "head"], ["1931", "head"]),
        ("Who led it?", "Polish painter Ada led it.", ["Polish", "painter"], ["Polish", "painter"]),
        ("鲁明是谁？", "鲁明是化学家。", ["鲁明", "化学家"], ["化学家"]),
    ],
)  # fmt: skip
def test_only_what_the_question_is_about_is_given(question, sentence, listed, kept):
    found = concepts_in(sentence, listed, 9, question)
    assert [one.text for one in found.spans] == kept


async def test_a_question_made_from_the_sentence_is_marked_and_searched_by_its_claim():
    part = Part(
        texts={"": FIRST},
        concepts={FIRST: ["chemist", "1931"]},
        questions={"chemist": "(1813)", "1931": "The question is: Which year was it?"},
    )
    outcome = await ever_run(part)
    by_concept = {event.text: detail_of(event) for event in judged_of(outcome, "concept")}
    assert all(detail.fallback for detail in by_concept.values())
    assert by_concept["1931"].claim == FIRST
    assert sorted(outcome.queries) == [
        "Who was Ada Brandt? Ada Brandt was a chemist born in 1931.",
        "Who was Ada Brandt? Ada Brandt was a chemist.",
    ]


async def test_every_verdict_of_a_judge_is_about_a_claim_of_its_own():
    said = "Ada Brandt, a chemist, lived in Bergen."
    part = Part(
        texts={"": said},
        concepts={said: ["chemist", "Bergen"]},
        questions={"chemist": "Was Ada Brandt a chemist?", "Bergen": "(1813)"},
    )
    reader = ClaimReader(
        lambda claim: (
            ClaimVerdict(0.1, 0.8, 0.1) if "chemist" in claim.statement else ClaimVerdict(0.8, 0, 0)
        )
    )
    weak = FULL.model_copy(update={"judges": False})
    found = Archive(lambda _: ["Ada Brandt, a botanist, lived in Bergen."])
    outcome = await run_method(
        Ever(), QUESTION, EverModel(part, weak), shelf=found, models={"judge_1": reader}
    )
    verdicts = {event.text: event.verdict for event in judged_of(outcome, "concept")}
    assert verdicts == {"chemist": "contradicted", "Bergen": "supported"}
    assert {claim.statement for claim in reader.seen} == {
        "Ada Brandt, a chemist, lived in Bergen.",
        "Ada Brandt lived in Bergen.",
    }
    assert {detail_of(event).claim for event in judged_of(outcome, "concept")} == {
        claim.statement for claim in reader.seen
    }


async def test_a_weak_model_leaves_its_verdicts_to_a_judge_that_was_taught():
    said = "Ada Brandt lived in Bergen."
    part = Part(texts={"": said}, concepts={said: ["Bergen"]}, verdicts={"Bergen": "True"})
    taught = FULL.model_copy(update={"weak": True, "adapted": ("judge",)})
    judge = JudgeModel("A judge", lambda _: 0.1, taught)
    found = Archive(lambda _: ["Ada Brandt lived in Oslo."])
    outcome = await run_method(
        Ever(),
        QUESTION,
        EverModel(part, FULL.model_copy(update={"weak": True})),
        shelf=found,
        models={"judge_1": judge},
    )
    (event,) = (one for one in judged_of(outcome, "concept") if detail_of(one).round == 0)
    # By itself the main model would have said that it is true.
    assert event.verdict == "not_enough"


@pytest.mark.parametrize(
    ("judge", "question", "said", "p_yes", "verdict"),
    [
        # Nothing was fitted for it: twice as likely as not.
        ("A judge", QUESTION, "Ada Brandt lived in Bergen.", 0.6, "not_enough"),
        ("A judge", QUESTION, "Ada Brandt lived in Bergen.", 0.7, "supported"),
        # It says 0.95 of wrong claims, too (docs/verdicts.md: 0.964).
        (
            "Qwen2.5-Coder-0.5B",
            "李白是在哪里认识杜甫的？",
            "李白在成都认识杜甫。",
            0.95,
            "not_enough",
        ),
        (
            "Qwen2.5-Coder-0.5B",
            "李白是在哪里认识杜甫的？",
            "李白在洛阳认识杜甫。",
            0.98,
            "supported",
        ),
    ],
)
async def test_a_language_models_yes_counts_from_its_fitted_limit_on(
    judge: str, question: str, said: str, p_yes: float, verdict: str
):
    concept = next(name for name in ("Bergen", "成都", "洛阳") if name in said)
    taught = FULL.model_copy(update={"weak": True, "adapted": ("judge",)})
    outcome = await run_method(
        Ever(),
        question,
        EverModel(
            Part(texts={"": said}, concepts={said: [concept]}),
            FULL.model_copy(update={"weak": True}),
        ),
        shelf=Archive(lambda _: [f"{said} 李白和杜甫是朋友。"]),
        models={"judge_1": JudgeModel(judge, lambda _: p_yes, taught)},
    )
    checked = [one for one in judged_of(outcome, "concept") if detail_of(one).round == 0]
    assert {event.verdict for event in checked if event.text == concept} == {verdict}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_demonstrations_are_questions_that_could_be_used(language: Language):
    shots = PROMPTS.shots(language, "validate")
    assert len(shots) == 3
    for shot in shots:
        sentence, concept = shot["sentence"], span(shot["sentence"], shot["concept"])
        about = Checked(
            question=shot["subject"], sentence=sentence, concept=concept, context=shot["context"]
        )
        assert is_usable(shot["reply"], about, language), shot["reply"]


async def test_the_model_is_told_what_the_text_is_about():
    outcome = await ever_run(Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}))
    (asked,) = asked_of(outcome, "validate")
    assert [turn.role for turn in asked.messages[:3]] == ["system", "user", "assistant"]
    assert asked.messages[-1].content.startswith("What it is about: Ada Brandt\n")

"""Weak models: what is corrected is worded from the nearest sentence of the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from pipelines.methods.base import Method, load_wording
from pipelines.methods.direct import Direct
from pipelines.methods.drad import Drad
from pipelines.methods.ever import Ever
from pipelines.methods.haarag import Haarag
from pipelines.methods.rag import Rag
from pipelines.methods.rowen import Rowen
from pipelines.models.base import Capabilities, Claim, GenerationRequest
from pipelines.models.judges.base import ClaimVerdict
from pipelines.retrieval.base import Matrix, Similarity
from pipelines.run.events import Judged
from pipelines.run.findings import SentenceChosen, SentenceVerified
from pipelines.text import Entity
from tests.scripted.bench import (
    FULL,
    ClaimReader,
    FixedRecognizer,
    Outcome,
    PieceModel,
    Shelf,
    pieces,
    run_method,
)
from tests.scripted.slm import JudgeModel

WEAK = FULL.model_copy(update={"weak": True, "judges": False})
QUESTION = "When was the Carr lamp invented?"
DRAFT = "It was invented in Florida."
NEAREST = "The lamp was invented in 1904."
OTHER = "Carr kept bees."
SHORT = "The Carr lamp was invented in 1904."
QUOTED = f"“{NEAREST}” (A title)"
DENIAL = "The lamp was never sold in shops."


class Cosines(Similarity):
    """The cosine of the question with a text: what `near` says for its end, else `rest`."""

    name = "cosines"

    def __init__(self, near: dict[str, float], rest: float = 0.1) -> None:
        self.languages = frozenset({"en"})
        self._near = near
        self._rest = rest

    async def compare(self, left: Sequence[str], right: Sequence[str], *, asked: int = 0) -> Matrix:
        def cosine(text: str) -> float:
            return next((v for end, v in self._near.items() if text.endswith(end)), self._rest)

        return tuple(tuple(cosine(text) for text in right) for _ in left)


def judge(**supported: float) -> ClaimReader:
    """Supports a statement as `supported` says for a word in it, and others not at all."""

    def read(claim: Claim) -> ClaimVerdict:
        known = (v for word, v in supported.items() if word in claim.statement)
        value = next(known, 0.0)
        return ClaimVerdict(value, 1 - value, 0.0)

    return ClaimReader(read)


async def answered(
    method: Method[Any],
    *,
    question: str = QUESTION,
    found: Sequence[str] = (f"{OTHER} {NEAREST}",),
    found_later: Sequence[str] = (),
    short: str = SHORT,
    draft: str = DRAFT,
    reader: ClaimReader | None = None,
    near: dict[str, float] | None = None,
    can: Capabilities = WEAK,
    recognizer: FixedRecognizer | None = None,
    **settings: Any,
) -> Outcome:
    """A run on a model that writes `draft`, and `short` where it is shown one sentence.

    Where it is asked for another form of the question, that form finds `found_later`.
    """
    reworded = "When did the Carr lamp come into being?"

    def reply(request: GenerationRequest) -> Any:
        asked = request.messages[-1].content
        if asked.startswith("A title: ") or ("A title" in asked and can.weak):
            return short
        if request.messages[0].content.startswith("List the factual details"):
            return "- Florida"
        if asked.startswith("Somebody searches"):
            return reworded
        return pieces(draft, 0.9, Florida=0.1)

    judges = {} if reader is None else {"judge_1": reader}
    return await run_method(
        method,
        question,
        PieceModel(reply, can),
        shelf=Shelf(lambda query: list(found_later if query == reworded else found)),
        models=judges,
        similarity=Cosines({NEAREST: 0.9, DENIAL: 0.8} if near is None else near),
        recognizer=recognizer or FixedRecognizer("Florida"),
        **settings,
    )


def written(outcome: Outcome) -> list[GenerationRequest]:
    """What models were asked to write."""
    requests = (call.request for call in outcome.calls)
    return [one for one in requests if isinstance(one, GenerationRequest)]


def chosen(outcome: Outcome) -> tuple[SentenceChosen, dict[str, float | None]]:
    """What was recorded of the one sentence, with its numbers."""
    (event,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "correction")
    assert isinstance(event.detail, SentenceChosen)
    return event.detail, {score.name: score.value for score in event.scores}


async def test_a_supported_short_answer_is_taken():
    outcome = await answered(Rag(), reader=judge(Carr=0.7))
    assert outcome.answer.text == outcome.answer.original == SHORT
    assert outcome.answer.flags == ("correction_shortened",)
    detail, numbers = chosen(outcome)
    assert (detail.form, detail.sentence, detail.title) == ("shortened", NEAREST, "A title")
    passage = f"{OTHER} {NEAREST}"
    assert passage[detail.start : detail.end] == NEAREST
    # "lamp" and "invented" of the question's three content words stand in it: (0.9 + 2 / 3) / 2.
    assert numbers == {"nearness": 0.783333, "answer_supported": 0.7}


SAYING = "There is a saying that the Carr lamp was invented by bees in 1850."


@pytest.mark.parametrize(
    ("question", "found", "sentence"),
    [
        (QUESTION, f"{SAYING} {NEAREST}", NEAREST),
        # Nothing else was found, or the question asks for it.
        (QUESTION, SAYING, SAYING),
        ("What is often said about the Carr lamp?", f"{SAYING} {NEAREST}", SAYING),
    ],
)
async def test_what_people_say_is_left_out(question: str, found: str, sentence: str):
    near = {SAYING: 0.95, NEAREST: 0.9}
    outcome = await answered(Rag(), question=question, found=[found], near=near)
    assert chosen(outcome)[0].sentence == sentence


@pytest.mark.parametrize(
    ("sentence", "reports"),
    [
        ("According to a popular belief a goldfish remembers three seconds.", True),
        ("A favourite story says that he failed at school.", True),
        ("Many people think that it is warm because the Sun is near.", True),
        ("The rumour that he was poisoned has no support in the evidence.", False),
        ("The story is often told, yet the word is older.", False),
        ("He said that he had read it.", False),
    ],
)
def test_reports_are_known_by_their_words(sentence: str, reports: bool):
    assert bool(load_wording("nearest").pattern("reports_en").search(sentence)) == reports


@pytest.mark.parametrize(
    ("sentence", "reports"),
    [("相传他有弟子三千人。", True), ("民间传说他捞月而死，这并没有可靠的依据。", False)],
)
def test_chinese_reports_begin_with_their_words(sentence: str, reports: bool):
    assert bool(load_wording("nearest").pattern("reports_zh").search(sentence)) == reports


async def test_what_the_judge_does_not_support_is_quoted():
    outcome = await answered(Rag(), reader=judge(Carr=0.49))
    assert outcome.answer.text == QUOTED
    detail, _ = chosen(outcome)
    assert (detail.form, detail.shortened) == ("quoted", SHORT)


@pytest.mark.parametrize("short", ["I don't know.", "It was 1904. Or 1905, I think.", ""])
async def test_only_one_sentence_that_answers_is_shown_to_the_judge(short: str):
    reader = judge(It=1.0)
    outcome = await answered(Rag(), short=short, reader=reader)
    assert outcome.answer.text == QUOTED
    assert reader.seen == []


async def test_without_a_judge_the_model_is_not_asked():
    outcome = await answered(Rag())
    assert outcome.answer.text == QUOTED
    assert chosen(outcome)[0].shortened == ""


async def test_the_model_is_shown_two_examples_and_one_sentence():
    outcome = await answered(Haarag(), reader=judge(Carr=0.7))
    request = next(one for one in written(outcome) if "Question" in one.messages[-1].content)
    roles = [turn.role for turn in request.messages]
    assert roles == ["system", *["user", "assistant"] * 2, "user"]
    assert request.messages[-1].content == f"A title: {NEAREST}\n\nQuestion: {QUESTION}"


async def test_a_model_that_is_not_weak_writes_from_all_passages():
    outcome = await answered(Rag(), can=FULL, reader=judge(Carr=0.7))
    assert outcome.answer.text == DRAFT
    assert "nearest" not in outcome.steps


@pytest.mark.parametrize(
    ("can", "wording", "sentence"), [(FULL, "sentence", True), (WEAK, "model", False)]
)
async def test_the_setting_decides(can: Capabilities, wording: str, sentence: bool):
    outcome = await answered(Rag(), can=can, wording=wording)
    assert ("nearest" in outcome.steps) is sentence


@pytest.mark.parametrize(
    ("name", "sentence"), [("Qwen2.5-Coder-0.5B", True), ("Qwen2.5-Coder-1.5B", False)]
)
async def test_what_was_measured_of_a_model_decides(name: str, sentence: bool):
    model = PieceModel(lambda _: DRAFT, FULL)
    model.name = name
    outcome = await run_method(
        Rag(),
        QUESTION,
        model,
        shelf=Shelf(lambda _: [f"{OTHER} {NEAREST}"]),
        similarity=Cosines({NEAREST: 0.9}),
    )
    assert (outcome.answer.text == QUOTED) is sentence


async def test_nothing_near_is_not_quoted_and_nothing_written_from_it():
    outcome = await answered(Rag(), near={NEAREST: 0.43})
    assert outcome.answer.text == "The passages do not answer this question."
    assert (outcome.answer.abstained, outcome.answer.flags) == (True, ("correction_none",))
    assert outcome.drafts == [outcome.answer.text]
    assert not written(outcome)
    detail, numbers = chosen(outcome)
    assert (detail.form, numbers) == ("none", {"nearness": 0.548333})


async def test_a_sentence_has_to_give_what_is_asked_for():
    undated = "The Carr lamp was invented in a shed."
    near = {undated: 0.99, NEAREST: 0.9}
    outcome = await answered(Rag(), found=[f"{undated} {NEAREST}"], near=near)
    assert chosen(outcome)[0].sentence == NEAREST
    outcome = await answered(Rag(), found=[undated], near=near)
    detail, numbers = chosen(outcome)
    assert detail.form == "none"
    # It is near, and yet no answer: (0.99 + 1) / 2.
    assert numbers == {"nearness": 0.995}


CLOSED = "Carr developed the lamp until 1911."


@pytest.mark.parametrize(
    ("draft", "p", "sentence"),
    [
        # The nearest does not support it; one nearly as near gives its year.
        ("It was invented in 1904.", {"1904": 0.7}, NEAREST),
        # Nothing of the draft stands there, whatever the judge says.
        ("It was invented in 1905.", {}, None),
        # The year that is asked for is the sentence's: nobody need judge that.
        ("It was invented in 1904.", {}, NEAREST),
    ],
)
async def test_a_draft_stays_by_a_sentence_nearly_as_near(
    draft: str, p: dict[str, float], sentence: str | None
):
    def read(claim: Claim) -> ClaimVerdict:
        known = claim.evidence[0].endswith(NEAREST)
        value = next((v for word, v in p.items() if known and word in claim.statement), 0.0)
        return ClaimVerdict(value, 1 - value, 0.0)

    outcome = await answered(
        Rowen(),
        found=[f"{CLOSED} {NEAREST}"],
        near={CLOSED: 0.75, NEAREST: 0.9},
        draft=draft,
        reader=ClaimReader(read),
        recognizer=FixedRecognizer("1904", "1905"),
    )
    detail, _ = chosen(outcome)
    assert detail.sentence == (sentence or CLOSED)
    assert (detail.form == "kept") == (sentence is not None)


@pytest.mark.parametrize(
    ("question", "sentence", "draft", "names", "stays"),
    [
        # The judge supports nothing here: the value itself is compared.
        (
            "Who bred the lamp?",
            "The lamp was bred by Ada Carr.",
            "Ada Carr bred it.",
            "Ada Carr",
            True,
        ),
        (
            "Who bred the lamp?",
            "The lamp was bred by Ada Carr.",
            "Bob Hill bred it.",
            "Bob Hill",
            False,
        ),
        # Another name or year of the sentence is not what it answers with.
        (
            "Who bred the lamp?",
            "The lamp was bred by Ada Carr for Bob Hill.",
            "Bob Hill bred it.",
            "Bob Hill",
            False,
        ),
        (
            "When did Carr die?",
            "Carr was born in 1904 and died in 1950.",
            "In 1904.",
            "1904",
            False,
        ),
        ("When did Carr die?", "Carr was born in 1904 and died in 1950.", "In 1950.", "1950", True),
        (
            "Who bred the lamp?",
            "The lamp was bred by Ada Carr.",
            "Not Ada Carr.",
            "Ada Carr",
            False,
        ),
        ("谁制造了这盏灯？", "这盏灯由卡尔制造。", "卡尔制造的。", "卡尔", True),
        ("谁制造了这盏灯？", "这盏灯由卡尔制造。", "希尔制造的。", "希尔", False),
    ],
)
async def test_a_draft_with_the_value_of_the_sentence_stays(
    question: str, sentence: str, draft: str, names: str, stays: bool
):
    class People(FixedRecognizer):
        def recognize(self, text: str, language: str | None = None) -> list[Entity]:
            found = super().recognize(text, language)
            return [one.model_copy(update={"label": "PERSON"}) for one in found]

    outcome = await answered(
        Rowen(),
        question=question,
        found=[sentence],
        near={sentence: 0.9},
        draft=draft,
        recognizer=People("Ada Carr", "Bob Hill", "卡尔", "希尔", "1904", "1950"),
    )
    assert (chosen(outcome)[0].form == "kept") is stays
    assert (outcome.answer.text == draft) is stays


async def test_methods_write_in_their_own_ways():
    """RAG from all passages, HAARAG from the sentence; each text is taken if it is supported."""
    rag = await answered(Rag(), reader=judge(Carr=0.7))
    haarag = await answered(Haarag(), reader=judge(Carr=0.7))
    (by_rag,) = written(rag)
    assert OTHER in by_rag.messages[-1].content
    by_haarag = next(one for one in written(haarag) if "Question" in one.messages[-1].content)
    assert OTHER not in by_haarag.messages[-1].content


@pytest.mark.parametrize(
    ("short", "text"),
    [
        (f"{SHORT} It burned", SHORT),
        # A name, a figure that the sentence does not give.
        ("Florida Carr invented it in 1904.", QUOTED),
        ("The Carr lamp was invented in 1905.", QUOTED),
    ],
)
async def test_what_is_written_from_all_passages_has_to_stand_in_the_sentence(
    short: str, text: str
):
    outcome = await answered(Rag(), short=short, reader=judge(Carr=0.7))
    assert outcome.answer.text == text


@pytest.mark.parametrize("method", [Drad(), Ever(), Rowen()], ids=lambda one: one.name)
@pytest.mark.parametrize(
    ("draft", "remark"),
    [
        (QUESTION, "question_repeated"),
        ("The Carr lamp was invented.", "states_nothing"),
        ("Awesome!", "states_nothing"),
    ],
)
async def test_what_answers_takes_the_place_of_no_answer(
    method: Method[Any], draft: str, remark: str
):
    outcome = await answered(method, draft=draft, reader=judge(Carr=0.9))
    assert outcome.answer.text == SHORT
    assert {remark, "correction_shortened"} <= set(outcome.answer.flags)
    verdicts = [e.verdict for e in outcome.events if isinstance(e, Judged) and e.what == "answer"]
    assert verdicts == ["unchecked"]


async def test_a_model_that_is_not_weak_keeps_its_text_with_the_remark():
    strong = await answered(Drad(), draft=QUESTION, can=FULL)
    assert strong.answer.text == QUESTION
    assert "question_repeated" in strong.answer.flags
    direct = await answered(Direct(), draft=QUESTION)
    assert direct.answer.flags == ("question_repeated",)


SOLD = "The lamp was sold in Delft."


@pytest.mark.parametrize(
    ("question", "sentence", "p", "lead"),
    [
        ("Was the lamp sold?", SOLD, 0.5, "Yes. "),
        ("Was the lamp sold?", SOLD, 0.2, ""),
        ("Was the lamp sold?", SOLD, 0.4, ""),
        # Judges do not read "never": words decide.
        ("Was the lamp sold?", "The lamp was never sold.", 0.9, "No. "),
        ("Was the lamp never sold?", "The lamp was not sold.", 0.1, "Yes. "),
        ("Was the lamp never sold?", SOLD, 0.9, "No. "),
        ("Was the lamp sold?", "The lamp was not only sold but lent.", 0.9, "Yes. "),
        ("Was the lamp sold?", "The lamp was sold to Carr, who could not pay.", 0.9, "Yes. "),
        ("Was the lamp sold?", "The lamp, which was never sold, burned oil.", 0.9, "No. "),
        ("Isn't the lamp sold?", SOLD, 0.9, "Yes. "),
        # What is quoted denies nothing.
        ("Was the lamp “Do Not Sell” sold?", "The lamp was never sold.", 0.9, "No. "),
        ('Was the lamp "Do Not Sell" sold?', SOLD, 0.9, "Yes. "),
    ],
)
async def test_yes_and_no(question: str, sentence: str, p: float, lead: str):
    outcome = await answered(
        Rag(),
        question=question,
        found=[sentence],
        near={sentence: 0.9},
        reader=judge(**{"he lamp": p}),
    )
    assert outcome.answer.text == f"{lead}“{sentence}” (A title)"
    assert chosen(outcome)[0].asked_yes_no


@pytest.mark.parametrize(
    ("text", "denies"),
    [
        ("李白是不是唐代诗人？", False),
        ("巴黎有没有地铁？", False),
        ("伦敦是大不列颠及北爱尔兰联合王国的首都。", False),
        ("不少人喜欢它。", False),
        ("长城从太空看不见。", True),
        ("这只是民间传说。", True),
        ("有人请他出任总统，他谢绝了。", True),
    ],
)
def test_chinese_denials(text: str, denies: bool):
    wording = load_wording("nearest")
    own = wording.pattern("grants_zh").sub("", text)
    assert bool(wording.pattern("denies_zh").search(own)) == denies


async def test_drad_replaces_from_the_doubtful_sentence_on():
    draft = "Carr was a smith. It was invented in Florida. It burned oil."
    outcome = await answered(Drad(), draft=draft, reader=judge(Carr=0.0))
    assert outcome.drafts == [draft, f"Carr was a smith. {QUOTED}"]
    assert outcome.answer.text == outcome.drafts[-1]
    assert "correction_quoted" in outcome.answer.flags
    # The words of the evidence are no guess of the model: nothing in them is measured.
    assert outcome.steps.count("detect") == 1


GONE_ON = " a shed in 1904."
TAUGHT = FULL.model_copy(update={"adapted": ("judge",)})


@pytest.mark.parametrize(
    ("added", "p", "text"),
    [
        (GONE_ON, 0.7, "Carr was a smith. It was invented in a shed in 1904."),
        # The judge does not support it; it gives no year; the sentence does not give that year;
        # it came to no end.
        (GONE_ON, 0.3, f"Carr was a smith. {QUOTED}"),
        (" a shed.", 0.7, f"Carr was a smith. {QUOTED}"),
        (" a shed in 1905.", 0.7, f"Carr was a smith. {QUOTED}"),
        (" a shed in 1904 and", 0.7, f"Carr was a smith. {QUOTED}"),
    ],
)
async def test_drad_goes_on_from_the_doubtful_entity(added: str, p: float, text: str):
    draft = "Carr was a smith. It was invented in Florida. It burned oil."

    def reply(request: GenerationRequest) -> Any:
        begun = request.messages[-1]
        if begun.role == "assistant":
            assert begun.content == "It was invented in"
            return added
        return pieces(draft, 0.9, Florida=0.1)

    outcome = await run_method(
        Drad(),
        QUESTION,
        PieceModel(reply, WEAK),
        shelf=Shelf(lambda _: [f"{OTHER} {NEAREST}"]),
        models={"judge_1": judge(shed=p)},
        similarity=Cosines({NEAREST: 0.9}),
        recognizer=FixedRecognizer("Florida"),
    )
    assert outcome.answer.text == text


async def test_drad_goes_on_in_chinese_without_a_space():
    sentence = "卡尔灯于1904年发明于柏林。"

    def reply(request: GenerationRequest) -> Any:
        if request.messages[-1].role == "assistant":
            return "1904年。"
        return [("卡尔灯发明于", 0.9), ("1848", 0.1), ("年。", 0.9)]

    outcome = await run_method(
        Drad(),
        "卡尔灯是哪一年发明的？",
        PieceModel(reply, WEAK),
        shelf=Shelf(lambda _: [sentence]),
        models={"judge_1": JudgeModel("A judge", lambda said: 0.99 * ("1904" in said), TAUGHT)},
        similarity=Cosines({sentence: 0.9}),
        recognizer=FixedRecognizer("1848年"),
    )
    assert outcome.answer.text == "卡尔灯发明于1904年。"


async def test_drad_keeps_its_beginning_only_where_the_model_goes_on_from_it():
    can = WEAK.model_copy(update={"prefill": False})
    outcome = await answered(Drad(), can=can, reader=judge(Carr=0.9))
    assert outcome.answer.text == QUOTED


async def test_a_draft_that_the_sentence_supports_stays():
    outcome = await answered(Drad(), reader=judge(Florida=0.5))
    assert outcome.answer.text == DRAFT
    assert "correction_kept" in outcome.answer.flags
    assert chosen(outcome)[0].form == "kept"


async def test_a_right_yes_stays_and_a_wrong_no_goes_as_a_whole():
    asked = {"question": "Was the lamp sold in Florida?", "found": ["The lamp was sold."]}
    near, reader = {"The lamp was sold.": 0.9}, judge(**{"he lamp": 0.9})
    stays = await answered(
        Drad(), draft="Yes, in Florida.", near=near, reader=reader, **asked
    )  # fmt: skip
    assert stays.answer.text == "Yes, in Florida."
    goes = await answered(
        Drad(), draft="No. Not in Florida.", near=near, reader=reader, **asked
    )  # fmt: skip
    assert goes.answer.text == "Yes. “The lamp was sold.” (A title)"


async def test_rowen_writes_from_the_sentence_and_asks_for_little():
    outcome = await answered(Rowen(), reader=judge(Carr=0.7))
    assert outcome.answer.text == SHORT
    assert outcome.drafts == [DRAFT, SHORT]
    # Neither reasoning nor queries: a weak model's would serve for nothing.
    assert not {"reason", "query"} & set(outcome.steps)


async def test_ever_ends_with_the_sentence():
    draft = f"{DRAFT} It burned oil."
    outcome = await answered(Ever(), draft=draft, reader=judge(**{"1904": 0.7}))
    assert outcome.answer.text == SHORT
    assert outcome.steps.count("verify") == 1
    assert "contradicted" not in outcome.answer.flags
    assert "correction_shortened" in outcome.answer.flags
    (ended,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "sentence")
    assert (ended.text, ended.verdict, ended.draft) == (SHORT, "supported", 1)


async def test_ever_keeps_the_sentence_where_nothing_is_near():
    outcome = await answered(Ever(), reader=judge(), near={})
    assert outcome.answer.text == DRAFT
    assert "correction_none" in outcome.answer.flags
    # No correction of the model was asked for, so none was unusable.
    assert "rectification_unusable" not in outcome.answer.flags
    (ended,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "sentence")
    assert isinstance(ended.detail, SentenceVerified)
    assert ended.detail.stopped == "nothing_near"


@pytest.mark.parametrize(
    ("draft", "answer", "stopped"),
    [
        ("No, that is wrong.", "Yes. “The lamp was sold.” (A title)", "corrected"),
        ("Yes, that is right.", "Yes, that is right.", "same"),
    ],
)
async def test_ever_checks_a_yes_or_no_that_has_nothing_else_to_look_up(
    draft: str, answer: str, stopped: str
):
    outcome = await answered(
        Ever(),
        question="Was the lamp sold?",
        draft=f"{draft} It burned oil in Florida.",
        found=["The lamp was sold."],
        near={"The lamp was sold.": 0.9},
        reader=judge(**{"he lamp": 0.9}),
        max_sentences=1,
    )
    assert outcome.answer.text == answer
    (ended,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "sentence")
    assert isinstance(ended.detail, SentenceVerified)
    assert ended.detail.stopped == stopped


async def test_haarag_shows_the_models_words_before_it_quotes():
    outcome = await answered(Haarag(), reader=judge(Carr=0.2), tau_a=0.05, tau_r=0.0)
    assert outcome.drafts == [SHORT, QUOTED]
    assert (outcome.answer.original, outcome.answer.text) == (SHORT, QUOTED)
    # Its alignment is above the threshold; the judge's word on its sentence counts more here.
    verdicts = [e.verdict for e in outcome.events if isinstance(e, Judged) and e.what == "answer"]
    assert verdicts == ["doubtful"]
    # The same judge's doubt of the sentence itself counts no more.
    alignments = [e for e in outcome.events if isinstance(e, Judged) and e.what == "alignment"]
    assert [one.verdict for one in alignments] == ["doubtful", "aligned"]


async def test_haarag_keeps_what_the_judge_supports():
    outcome = await answered(Haarag(), reader=judge(Carr=0.6), tau_a=0.05, tau_r=0.0)
    assert outcome.drafts == [SHORT]
    assert "correction_shortened" in outcome.answer.flags


async def test_haarags_judge_reads_the_sentence_that_the_draft_was_written_from():
    reader = judge(Carr=0.6)
    await answered(Haarag(), reader=reader, tau_a=0.05, tau_r=0.0)
    assert {claim.evidence for claim in reader.seen} == {(f"A title: {NEAREST}",)}


@pytest.mark.parametrize(
    ("short", "text"),
    [
        ("Mary Carr invented it.", "Mary Carr invented it."),
        # Any name of the sentence would be supported by it.
        ("The Blue Lamp.", "“Mary Carr invented the Blue Lamp in 1848.” (A title)"),
    ],
)
async def test_an_answer_to_who_names_somebody_of_the_sentence(short: str, text: str):
    sentence = "Mary Carr invented the Blue Lamp in 1848."
    outcome = await answered(
        Rag(),
        question="Who invented the lamp?",
        found=[sentence],
        short=short,
        reader=judge(Carr=0.9, Lamp=0.9),
        near={sentence: 0.9},
        recognizer=FixedRecognizer("Mary Carr", label="PERSON"),
    )
    assert outcome.answer.text == text


async def test_haarag_gives_no_answer_where_nothing_is_near():
    near = {NEAREST: 0.43}
    outcome = await answered(Haarag(), near=near, tau_a=0.05, tau_r=0.0, rephrase="off")
    says_nothing = "The context does not answer this question."
    assert outcome.drafts == [says_nothing]
    assert (outcome.answer.text, outcome.answer.abstained) == (says_nothing, True)
    assert outcome.answer.flags == ("insufficient_context", "correction_none")
    assert not written(outcome)


async def test_haarag_answers_once_a_later_search_brings_the_sentence():
    outcome = await answered(
        Haarag(),
        found=[OTHER],
        found_later=[NEAREST],
        reader=judge(Carr=0.6),
        tau_a=0.05,
        tau_r=0.0,
    )
    assert outcome.drafts == ["The context does not answer this question.", SHORT]
    assert (outcome.answer.text, outcome.answer.abstained) == (SHORT, False)
    # The flags are those of the draft that is the answer.
    assert "correction_shortened" in outcome.answer.flags
    assert "correction_none" not in outcome.answer.flags


async def test_what_the_model_recalls_is_not_quoted():
    outcome = await answered(Ever(), variant="nrg_sq", reader=judge())
    assert "nearest" not in outcome.steps


NAME = FixedRecognizer("Mary Carr", label="PERSON")
YEAR = FixedRecognizer("1904", label="DATE")


@pytest.mark.parametrize(
    ("question", "draft", "recognizer", "support", "form"),
    [
        # Nobody is named, or nobody but the thing that is asked about.
        ("Who invented the lamp?", "The lamp was invented by an engineer.", NAME, 0.9, "quoted"),
        ("Who invented the Carr lamp?",
         "The Carr lamp was invented by an engineer.", NAME, 0.9, "quoted"),
        # A figure alone does not make a draft right.
        ("When was the lamp invented?", "The lamp was invented in 1904.", YEAR, 0.1, "kept"),
        ("When was the lamp invented?",
         "The lamp, the longest range of mountains of the world, was invented in 1904.",
         YEAR, 0.1, "quoted"),
    ],
)  # fmt: skip
async def test_what_is_kept_as_the_answer(
    question: str, draft: str, recognizer: FixedRecognizer, support: float, form: str
):
    sentence = "Mary Carr invented the lamp in 1904."
    outcome = await answered(
        Rowen(),
        question=question,
        found=[sentence],
        near={sentence: 0.9},
        draft=draft,
        short="",
        reader=judge(lamp=support),
        recognizer=recognizer,
    )
    assert chosen(outcome)[0].form == form

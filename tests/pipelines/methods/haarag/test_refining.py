"""HAARAG worked through by hand: alignment, refinement, what is flagged, the judges."""

import asyncio
from typing import Any

import pytest

from pipelines.base import Choice
from pipelines.errors import UnreachableError
from pipelines.methods.haarag import Haarag
from pipelines.models.base import Capabilities, ChoiceRequest, GenerationRequest
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.scripted import ScriptedModel
from pipelines.retrieval.indexes import EmbedderSimilarity, LexicalEmbedder
from pipelines.run.events import Revised, SpanStarted
from tests.scripted.bench import ClaimReader, Shelf, run_method
from tests.scripted.haarag import (
    PAPER,
    QUESTION,
    WRITES,
    Chunks,
    TableSimilarity,
    again,
    aligned,
    chunks_of,
    haarag,
    judged,
    queries_of,
    replays,
    score,
    stopped,
)

LAW = "B: Clinton studied law."
HOPE = "A: Clinton was born in Hope."
YORK = "Clinton was born in York."
STUDIED = "He studied law."
DRAFT = f"{YORK} {STUDIED}"
ANSWER = "He was born in Hope."
SETTINGS: dict[str, Any] = {"tau_r": 0.5, "tau_a": 0.6, "rephrase": "off"}

# The first context is LAW alone: C_a = 0.5 / sqrt(1). Looking for YORK finds HOPE too; then
# C_a = mean(0.9, 0.5) / sqrt((1 + 0.2 + 0.2 + 1) / 4) = 0.7 / sqrt(0.6) = 0.904.
FOUND = {QUESTION: [LAW], YORK: [HOPE]}
TABLE = {
    (QUESTION, LAW): 0.6,
    (QUESTION, HOPE): 0.4,
    (DRAFT, LAW): 0.5,
    (YORK, LAW): 0.3,
    (STUDIED, LAW): 0.8,
    (YORK, HOPE): 0.7,
    (HOPE, LAW): 0.2,
    (ANSWER, HOPE): 0.9,
    (ANSWER, LAW): 0.5,
}


async def test_an_answer_that_does_not_align_is_refined_by_its_unsupported_sentence():
    outcome = await haarag([DRAFT, ANSWER], FOUND, TABLE, **SETTINGS)
    assert outcome.steps == [
        *("method", "retrieve", "draft", "align"),
        *("refine", "draft", "align", "conclude"),
    ]
    # The sentence on law is supported and not searched for.
    assert list(dict.fromkeys(outcome.queries)) == [QUESTION, YORK]
    assert (outcome.answer.text, outcome.answer.original) == (ANSWER, DRAFT)
    assert outcome.answer.flags == ()

    first, second = judged(outcome, "alignment")
    assert score(first, "evidence_alignment").value == pytest.approx(0.5)
    assert score(second, "evidence_alignment").value == pytest.approx(0.7 / 0.6**0.5)
    assert [first.verdict, second.verdict] == ["not_aligned", "aligned"]
    (answer,) = judged(outcome, "answer")
    assert (answer.text, answer.verdict) == (DRAFT, "not_aligned")

    refined = judged(outcome, "retrieval")[1]
    # HOPE is as near as its nearest query, the sentence: 0.7. LAW stays: a sentence rests on it.
    assert [(c.id, c.similarity, c.outcome) for c in chunks_of(refined)] == [
        ("A", 0.7, "kept"),
        ("B", 0.6, "kept"),
    ]
    # The confidence is about the question alone: (0.6 + 0.4) / 2.
    assert score(refined, "retrieval_confidence").value == pytest.approx(0.5)
    assert queries_of(refined) == (QUESTION, YORK)
    last = [event for event in outcome.events if isinstance(event, Revised)][-1]
    assert (last.draft, last.before, last.after) == (1, DRAFT, ANSWER)
    replays(outcome, **SETTINGS)
    assert stopped(outcome) == ("aligned", len(outcome.drafts) - 1)


async def test_every_sentence_has_its_nearest_chunk_and_evidence_sentence():
    chunk = "B: Clinton studied law. Later he taught it."
    parts = ("B: Clinton studied law.", "Later he taught it.")
    table = {
        (QUESTION, chunk): 0.6,
        (DRAFT, chunk): 0.7,
        (YORK, chunk): 0.3,
        (STUDIED, chunk): 0.6,
        (STUDIED, parts[0]): 0.8,
        (YORK, parts[1]): 0.4,
    }
    outcome = await haarag([DRAFT], {QUESTION: [chunk]}, table, **SETTINGS)
    york, studied = judged(outcome, "sentence")
    assert [york.verdict, studied.verdict] == ["not_aligned", "aligned"]
    assert (DRAFT[york.start : york.end], york.sentence) == (YORK, 0)
    assert (DRAFT[studied.start : studied.end], studied.sentence) == (STUDIED, 1)
    # 0.6 is on the threshold.
    assert score(studied, "sentence_alignment").value == 0.6
    assert not score(studied, "sentence_alignment").flagged
    assert score(studied, "sentence_evidence").value == 0.8
    assert aligned(studied).evidence == parts[0]
    assert aligned(york).evidence == parts[1]
    assert chunk[aligned(york).start : aligned(york).end] == parts[1]
    replays(outcome, **SETTINGS)


async def test_when_the_iterations_are_used_up_the_best_aligned_answer_is_returned_as_unreliable():
    # The second answer: C_a = 0.3 / sqrt(0.6) = 0.387, less than the first one's 0.5.
    table = TABLE | {(ANSWER, HOPE): 0.3, (ANSWER, LAW): 0.3}
    outcome = await haarag([DRAFT, ANSWER], FOUND, table, max_iterations=2, **SETTINGS)
    assert (outcome.answer.text, outcome.answer.flags) == (DRAFT, ("unreliable",))
    assert stopped(outcome) == ("iterations", 0)
    replays(outcome, max_iterations=2, **SETTINGS)
    # 0.45 / sqrt(0.6) = 0.581: still below tau_a, but nearer than the first.
    table |= {(ANSWER, HOPE): 0.45, (ANSWER, LAW): 0.45}
    outcome = await haarag([DRAFT, ANSWER], FOUND, table, max_iterations=2, **SETTINGS)
    assert (outcome.answer.text, outcome.answer.original) == (ANSWER, DRAFT)
    assert outcome.answer.flags == ("unreliable",)
    assert stopped(outcome) == ("iterations", 1)


async def test_one_iteration_only_checks():
    outcome = await haarag([DRAFT], FOUND, TABLE, max_iterations=1, **SETTINGS)
    assert outcome.drafts == [DRAFT]
    assert outcome.answer.flags == ("unreliable",)
    replays(outcome, max_iterations=1, **SETTINGS)


async def test_a_third_iteration_looks_for_what_the_second_answer_lacks():
    town = "D: Hope is a town in Arkansas."
    found = FOUND | {ANSWER: [town]}
    # The whole second answer is one sentence, below tau_a with both chunks.
    table = TABLE | {(ANSWER, HOPE): 0.4, (ANSWER, LAW): 0.3, (ANSWER, town): 0.8}
    table |= {("In Hope.", town): 0.9, ("In Hope.", HOPE): 0.9}
    outcome = await haarag([DRAFT, ANSWER, "In Hope."], found, table, **SETTINGS)
    assert list(dict.fromkeys(outcome.queries)) == [QUESTION, YORK, ANSWER]
    assert outcome.drafts == [DRAFT, ANSWER, "In Hope."]
    replays(outcome, **SETTINGS)


async def test_refining_searches_deeper_and_gives_what_was_not_given():
    """k = 1: one new chunk after the other, each found by the next depth of the question's search;
    at the third there is room for one that was given before.
    """
    more, rain = "D: Clinton studied.", "E: It rains."
    found = {QUESTION: [LAW, rain, more, HOPE]}
    table = {(QUESTION, LAW): 0.6, (QUESTION, more): 0.4, (QUESTION, rain): 0.5}
    shelf = Chunks(found)
    settings: dict[str, Any] = {**SETTINGS, "k": 1, "k_limit": 4}
    outcome = await haarag([YORK, STUDIED, ANSWER], shelf, table | {(YORK, rain): 0.2}, **settings)
    assert [pair for pair in shelf.asked if pair[0] == QUESTION] == [
        (QUESTION, 1),
        (QUESTION, 2),
        (QUESTION, 4),
    ]
    requests = [call.request for call in outcome.calls]
    written = [one for one in requests if isinstance(one, GenerationRequest)]
    prompts = [one.messages[-1].content for one in written]
    given = [[one for one in (LAW, rain, more, HOPE) if one in prompt] for prompt in prompts]
    assert given == [[LAW], [rain], [LAW, more]]
    outcomes = [[(c.id, c.outcome) for c in chunks_of(e)] for e in judged(outcome, "retrieval")]
    assert outcomes[-1] == [("B", "kept"), ("E", "given"), ("D", "kept"), ("A", "low")]
    assert outcome.drafts == [YORK, STUDIED, ANSWER]
    replays(outcome, **settings)


async def test_where_no_new_passage_is_left_it_ends_and_says_so():
    outcome = await haarag([DRAFT], FOUND | {YORK: [LAW]}, TABLE, **SETTINGS)
    assert outcome.queries == [QUESTION, QUESTION, YORK]
    assert outcome.drafts == [DRAFT]
    assert outcome.answer.flags == ("unreliable",)
    assert stopped(outcome) == ("nothing_new", 0)
    replays(outcome, **SETTINGS)


async def test_a_near_duplicate_of_what_was_given_is_nothing_new():
    twin = "D: Clinton studied law, he said."
    table = TABLE | {(LAW, twin): 0.96, (YORK, twin): 0.7}
    outcome = await haarag([DRAFT], FOUND | {YORK: [twin]}, table, **SETTINGS)
    last = judged(outcome, "retrieval")[-1]
    assert [(c.id, c.outcome, c.like) for c in chunks_of(last)] == [
        ("D", "duplicate", "B"),
        ("B", "kept", ""),
    ]
    assert stopped(outcome) == ("nothing_new", 0)


async def test_a_failed_refinement_keeps_the_answer_and_says_so():
    broken = UnreachableError("The index is gone.", remedy="Build it.")
    outcome = await haarag([DRAFT], {QUESTION: [LAW], YORK: broken}, TABLE, **SETTINGS)
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("search_incomplete", "unreliable")
    replays(outcome, **SETTINGS)


async def test_what_was_searched_for_already_is_not_searched_for_again():
    settings: dict[str, Any] = SETTINGS | {"tau_a": 0.7, "k_limit": 4}
    outcome = await haarag([QUESTION], FOUND, TABLE, **settings)
    assert outcome.queries == [QUESTION]
    # A question states nothing.
    assert outcome.answer.flags == ("states_nothing",)
    replays(outcome, **settings)
    assert stopped(outcome) == ("nothing_new", 0)


async def test_question_and_answer_are_aligned_as_one_text():
    """A right answer of one word has nothing in common with a passage, but is no doubtful one."""
    short = "Hope."
    similarity = TableSimilarity(TABLE | {(f"{QUESTION} {short}", HOPE): 0.8, (short, HOPE): 0.1})
    found = {QUESTION: [HOPE]}
    settings: dict[str, Any] = SETTINGS | {"tau_r": 0.4}
    outcome = await haarag([short], found, similarity, **settings)
    assert f"{QUESTION} {short}" in similarity.seen
    (alignment,) = judged(outcome, "alignment")
    assert (alignment.verdict, alignment.scores[0].value) == ("aligned", 0.8)
    (sentence,) = judged(outcome, "sentence")
    assert (sentence.verdict, score(sentence, "sentence_alignment").value) == ("aligned", 0.8)
    # The nearest evidence is that of the sentence alone.
    assert score(sentence, "sentence_evidence").value == 0.1
    assert (outcome.answer.text, outcome.answer.flags) == (short, ())


NOTHING = "The context does not answer this question."


async def test_an_answer_that_claims_nothing_is_an_abstention():
    outcome = await haarag([NOTHING], FOUND, TABLE, **SETTINGS)
    assert outcome.answer.abstained
    assert outcome.answer.flags == ("insufficient_context",)
    assert judged(outcome, "sentence") == []
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "unchecked"
    # It is compared with nothing, and measured against no threshold.
    assert (answer.scores[0].value, answer.scores[0].threshold) == (None, None)
    replays(outcome, **SETTINGS)
    assert stopped(outcome) == ("nothing_new", 0)


async def test_a_claim_after_it_is_checked():
    text = f"{NOTHING} However, he was born in York."
    table = TABLE | {(text, LAW): 0.3, ("However, he was born in York.", LAW): 0.3}
    judge = {"judge_2": reads()}
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1}
    outcome = await haarag([text], FOUND, table, models=judge, **settings)
    assert not outcome.answer.abstained
    assert outcome.answer.flags == ("unreliable",)
    nothing, claim = judged(outcome, "sentence")
    assert [nothing.verdict, claim.verdict] == ["unchecked", "not_aligned"]
    # The sentence that claims nothing is measured against nothing, and no judge is asked about it.
    assert nothing.scores[0].threshold is None
    assert len([call for call in outcome.calls if call.choice is not None]) == 1
    replays(outcome, **settings)


@pytest.mark.parametrize("source", ["(Bill Clinton)", "（比尔·克林顿）"])
async def test_the_source_of_a_quotation_is_no_claim(source: str):
    quotation = "“He was born in York.”"
    text = f"{quotation} {source}"
    table = TABLE | {(text, LAW): 0.3, (quotation, LAW): 0.3}
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1}
    outcome = await haarag([text], FOUND, table, models={"judge_2": reads()}, **settings)
    quoted, named = judged(outcome, "sentence")
    assert [quoted.text, named.text] == [quotation, source]
    assert (named.verdict, named.scores[0].threshold) == ("unchecked", None)
    assert len([call for call in outcome.calls if call.choice is not None]) == 1
    replays(outcome, **settings)


async def test_a_passage_on_the_question_is_not_given_up_for_one_that_is_not():
    """The model finds no answer in good passages: they stay, and the nearest new one comes in."""
    near, sea, rain = "D: Clinton grew up in Hope.", "E: The sea.", "F: It rains."
    found = {QUESTION: [HOPE, near, LAW, sea, rain]}
    table = {(QUESTION, HOPE): 0.8, (QUESTION, near): 0.7, (QUESTION, LAW): 0.3}
    table |= {(QUESTION, sea): 0.2, (QUESTION, rain): 0.15}
    settings: dict[str, Any] = {**SETTINGS, "k": 3, "k_limit": 6, "min_similarity": 0.2}
    table |= {(ANSWER, HOPE): 0.9, (ANSWER, near): 0.8}
    outcome = await haarag([NOTHING, ANSWER], found, table, **settings)
    second = judged(outcome, "retrieval")[1]
    assert [(c.id, c.outcome) for c in chunks_of(second)] == [
        ("A", "kept"),
        ("D", "kept"),
        # Nearer than any new one as well; one place is for a new one.
        ("B", "kept"),
        ("E", "kept"),
        ("F", "surplus"),
    ]
    replays(outcome, **settings)


async def test_an_honest_original_is_not_replaced_by_a_doubtful_claim():
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 2, "tau_r": 0.1}
    found = {QUESTION: [LAW, HOPE, "F: It rains.", "G: It snows.", "H: It is hot."]}
    outcome = await haarag([NOTHING, YORK], found, {(QUESTION, LAW): 0.6}, **settings)
    assert outcome.drafts == [NOTHING, YORK]
    assert judged(outcome, "alignment")[1].verdict == "not_aligned"
    assert (outcome.answer.text, outcome.answer.abstained) == (NOTHING, True)
    assert outcome.answer.flags == ("insufficient_context",)
    assert stopped(outcome) == ("iterations", 0)


async def test_where_the_context_does_not_suffice_the_question_is_put_in_other_words():
    settings: dict[str, Any] = SETTINGS | {"rephrase": "widen"}
    found = {QUESTION: [LAW], "Where is his birthplace?": [HOPE]}
    table = TABLE | {("Where is his birthplace?", HOPE): 0.9}
    outcome = await haarag(
        [NOTHING, "1. Where is his birthplace?", ANSWER], found, table, **settings
    )
    assert outcome.queries == [QUESTION, QUESTION, "Where is his birthplace?"]
    assert outcome.answer.text == ANSWER
    assert (outcome.answer.original, outcome.answer.abstained) == (NOTHING, False)
    replays(outcome, **settings)


async def test_an_empty_answer_is_asked_for_once_more():
    outcome = await haarag(["<think>Hm.</think>", "He studied law."], FOUND, TABLE, **SETTINGS)
    assert outcome.drafts[0] == "He studied law."
    failed = await haarag(["<think>Hm.</think>", " "], FOUND, TABLE, **SETTINGS)
    assert failed.final is None


async def test_an_empty_refinement_leaves_the_answer():
    found = {QUESTION: [LAW], "He was born in Rome.": [HOPE]}
    outcome = await haarag(["He was born in Rome.", " "], found, TABLE, **SETTINGS)
    assert outcome.drafts[:2] == ["He was born in Rome.", ""]
    assert outcome.answer.text == "He was born in Rome."
    replays(outcome, **SETTINGS)


async def test_thinking_is_no_part_of_the_answer():
    outcome = await haarag(["<think>Law?</think>\nHe studied law."], FOUND, TABLE, **SETTINGS)
    assert outcome.answer.text == STUDIED


async def test_a_chinese_question_is_compared_by_its_words():
    """Hashed characters and pairs: no model reads the text, the language's rules hold."""
    question, draft = "克林顿出生在哪里？", "克林顿出生在希望镇。"
    chunk = "克林顿出生在阿肯色州的希望镇。他学过法律。"
    outcome = await run_method(
        Haarag(),
        question,
        ScriptedModel.from_replies([draft], capabilities=WRITES),
        shelf=Shelf(lambda _: [chunk, "西班牙下雨。"]),
        similarity=EmbedderSimilarity(LexicalEmbedder()),
        **PAPER,
    )
    assert outcome.answer.text == draft
    (sentence,) = judged(outcome, "sentence")
    assert aligned(sentence).evidence == "克林顿出生在阿肯色州的希望镇。"
    chunks = chunks_of(judged(outcome, "retrieval")[0])
    assert [each.outcome for each in chunks] == ["kept", "low"]
    replays(outcome)
    assert judged(outcome, "alignment")[0].scores[0].threshold is not None


class Judge(ScriptedModel):
    """Says YES with a probability for each statement, once all its questions are asked."""

    def __init__(self, yes: dict[str, float], parties: int, name: str = "judge", **can: Any):
        super().__init__((), name=name, capabilities=Capabilities(logprobs=True, **can))
        self.yes = yes
        self.barrier = asyncio.Barrier(parties)

    async def choose(self, request: ChoiceRequest) -> Choice:
        async with asyncio.timeout(60):
            await self.barrier.wait()
        asked = request.messages[-1].content
        share = next(value for text, value in self.yes.items() if text in asked)
        if share < 0:
            raise UnreachableError("Nobody there.", remedy="Wait.")
        return Choice(
            probabilities={"yes": share, "no": 1 - share}, other_mass=0, source="logprobs"
        )


# A wrong detail that the cosines do not see: C_a = 0.9, the sentence 0.8.
UNSEEN = TABLE | {(DRAFT, LAW): 0.9, (YORK, LAW): 0.8}


async def test_the_judges_opinion_is_shown_and_decides_nothing():
    judge = {"judge_1": Judge({YORK: 0.2, STUDIED: 0.9}, 2, judges=False)}
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges"}
    outcome = await haarag([DRAFT], FOUND, UNSEEN, models=judge, **settings)
    york, _ = judged(outcome, "sentence")
    assert score(york, "entailment").value == pytest.approx(0.2)
    assert score(york, "entailment").flagged
    assert york.verdict == "aligned"
    (answer,) = judged(outcome, "answer")
    assert (answer.verdict, answer.scores[0].name) == ("aligned", "evidence_alignment")
    assert outcome.answer.flags == ()
    assert stopped(outcome) == ("aligned", 0)
    replays(outcome, **settings)
    # With other settings they decide, and the run would have gone on.
    decided = again(outcome, **settings, entailment_decides=True)
    assert decided.diverges_at == 1
    assert [e.verdict for e in decided.method.judged if e.what == "answer"] == ["doubtful"]


async def test_judges_that_decide_see_a_wrong_detail_that_the_cosine_does_not():
    judges = {
        "judge_1": Judge({YORK: 0.2, STUDIED: 0.9}, 2, "one"),
        "judge_3": Judge({YORK: 0.4, STUDIED: 0.7}, 2, "three", judges=False),
    }
    settings: dict[str, Any] = SETTINGS | {
        "entailment": "judges",
        "entailment_decides": True,
        "max_iterations": 1,
    }
    outcome = await haarag([DRAFT], FOUND, UNSEEN, models=judges, **settings)
    york, studied = judged(outcome, "sentence")
    # (0.2 + 0.4) / 2 and (0.9 + 0.7) / 2.
    assert score(york, "entailment").value == pytest.approx(0.3)
    assert score(studied, "entailment").value == pytest.approx(0.8)
    assert [york.verdict, studied.verdict] == ["doubtful", "supported"]
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "doubtful"
    assert (answer.scores[0].name, answer.scores[0].value) == ("entailment", york.scores[2].value)
    assert outcome.answer.flags == ("unreliable", "weak_judge")
    replays(outcome, **settings)


async def test_one_model_judges_once_and_the_main_model_where_there_is_no_judge():
    judge = Judge({YORK: 0.9, STUDIED: 0.9}, 2)
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges", "max_iterations": 1}
    models = {"judge_1": judge, "judge_2": judge}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=models, **settings)
    asked = [call.role for call in outcome.calls if call.choice is not None]
    assert asked == ["judge_1", "judge_1"]
    replies = [DRAFT, {"choice": {"yes": 0.6, "no": 0.4}, "times": 2}]
    outcome = await haarag(replies, FOUND, TABLE, **settings)
    entailed = [score(event, "entailment").value for event in judged(outcome, "sentence")]
    assert entailed == [0.6, 0.6]
    replays(outcome, **settings)


def reads() -> ClaimReader:
    """Supports what is about York, and nothing else."""
    supported, lacking = ClaimVerdict(0.9, 0.05, 0.05), ClaimVerdict(0.2, 0.1, 0.7)
    return ClaimReader(lambda claim: supported if claim.statement == YORK else lacking)


async def test_by_default_a_judge_made_for_it_is_asked_about_every_sentence():
    models = {"judge_1": Judge({}, 1, "writes"), "judge_2": reads()}
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=models, **settings)
    york, studied = judged(outcome, "sentence")
    assert score(york, "entailment").value == 0.9
    # What the evidence lacks is not supported either.
    assert score(studied, "entailment").value == 0.2
    assert {call.role for call in outcome.calls if call.choice is not None} == {"judge_2"}
    assert "weak_judge" not in outcome.answer.flags
    replays(outcome, **settings)


async def test_the_main_model_can_be_asked_about_every_sentence():
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1, "entailment": "main"}
    replies = [DRAFT, {"choice": {"yes": 0.6, "no": 0.4}, "times": 2}]
    outcome = await haarag(replies, FOUND, TABLE, models={"judge_2": reads()}, **settings)
    assert {call.role for call in outcome.calls if call.choice is not None} == {"main"}
    replays(outcome, **settings)


async def test_a_judge_that_fails_leaves_the_others_their_say():
    judges = {
        "judge_1": Judge({YORK: -1, STUDIED: -1}, 1, "broken"),
        "judge_2": Judge({YORK: 0.8, STUDIED: 0.9}, 2, "well"),
    }
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges", "max_iterations": 1}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=judges, **settings)
    entailed = [score(event, "entailment").value for event in judged(outcome, "sentence")]
    assert entailed == [0.8, 0.9]
    steps = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "entail"]
    assert [step.at.sentence for step in steps] == [0, 1]
    replays(outcome, **settings)


async def test_no_judge_is_asked_about_an_answer_that_claims_nothing():
    shelf = Chunks(FOUND)
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges"}
    outcome = await haarag([NOTHING], shelf, TABLE, **settings)
    assert [call for call in outcome.calls if call.choice is not None] == []
    replays(outcome, **settings)


async def test_what_deciding_judges_gave_no_opinion_on_is_not_supported():
    # The alignment alone would pass, but it was to be judged, and nobody answered.
    settings: dict[str, Any] = SETTINGS | {
        "entailment": "main",
        "entailment_decides": True,
        "max_iterations": 1,
    }
    unsure = {"text": "Hard to say.", "times": 4}
    outcome = await haarag([DRAFT, unsure], FOUND, UNSEEN, **settings)
    assert [event.verdict for event in judged(outcome, "sentence")] == ["unchecked", "unchecked"]
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "unchecked"
    assert "not_checked" in outcome.answer.flags
    replays(outcome, **settings)
    # Where nobody is asked, nobody can support it: it is about its context, and no more.
    alone = SETTINGS | {"entailment": "off", "entailment_decides": True, "max_iterations": 1}
    outcome = await haarag([DRAFT], FOUND, UNSEEN, **alone)
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "aligned"

"""Which concepts a sentence holds, and which lists and questions can be used."""

from __future__ import annotations

import pytest

from pipelines.base import Generation, Passage
from pipelines.methods.ever import Ever
from pipelines.methods.ever.concepts import (
    concepts_in,
    read_concepts,
)
from pipelines.methods.subjects import find_concept, holds_details, passages_about, said_beyond
from tests.scripted.bench import FULL, FixedRecognizer, Outcome, run_method
from tests.scripted.ever import (
    FIRST,
    FOUND,
    QUESTION,
    UNHANDED,
    EverModel,
    Part,
    asked_of,
    detail_of,
    ever_run,
    judged_of,
    kind_of,
    kinds,
)


def texts(sentence: str, *listed: str, limit: int = 16) -> list[str]:
    return [span.text for span in concepts_in(sentence, listed, limit).spans]


def test_a_whole_date_is_kept_and_the_year_inside_it_is_part_of_it():
    sentence = "She was born on 5 June 1995 in York."
    assert texts(sentence, "1995", "5 June 1995", "York") == ["5 June 1995", "York"]
    # A year that also stands alone is a concept of its own.
    again = f"{sentence[:-1]} and left in 1995."
    assert texts(again, "1995", "5 June 1995") == ["5 June 1995", "1995"]


def test_what_the_sentence_does_not_hold_is_dropped():
    found = concepts_in("She was a chemist.", ["chemist", "pianist", "Vienna"], 5)
    assert [span.text for span in found.spans] == ["chemist"]
    assert found.left_out == ()


def test_the_sentence_as_a_whole_is_no_detail_of_itself():
    sentence = "She was a chemist in York."
    assert texts(sentence, "She was a chemist in York", "chemist") == ["chemist"]
    assert texts(sentence, sentence) == []


def test_a_bound_leaves_the_last_ones_out():
    found = concepts_in("One two three four.", ["four", "three", "two", "one"], 2)
    assert [span.text for span in found.spans] == ["One", "two"]
    assert [span.text for span in found.left_out] == ["three", "four"]


@pytest.mark.parametrize(
    ("sentence", "concept", "place"),
    [
        ("Start of art.", "art", (9, 12)),
        ("It cost 3.14 crowns.", "3", None),
        ("It cost 3.14 crowns.", "14", None),
        ("It cost 3.14 crowns.", "3.14", (8, 12)),
        ("It had 12,000 rooms.", "000", None),
        ("In 1995, 3 left.", "1995", (3, 7)),
        ("Dr. Ada left the U.S. early.", "U.S.", (17, 21)),
        ("He said “hope”.", '"hope"', (8, 14)),
        ("It was the Queen’s.", "queen's", (11, 18)),
        ("New\nYork it was.", "New York", (0, 8)),
        ("他生于1995年6月5日。", "1995年6月5日", (3, 12)),
        ("他是化学家。", "化学家", (2, 5)),
        ("Nothing here.", "", None),
        ("Nothing here.", "...", None),
    ],
)
def test_concepts_are_found_as_whole_words_and_numbers(sentence, concept, place):
    assert find_concept(sentence, concept) == place


@pytest.mark.parametrize(
    ("reply", "listed"),
    [
        ("- chemist\n- 1931", ["chemist", "1931"]),
        ('{"concepts": ["chemist", "5 June 1995"]}', ["chemist", "5 June 1995"]),
        ('{"concepts": []}', []),
        ("None", []),
        ("无", []),
        ("chemist", ["chemist"]),
        ("1. 化学家\n2. 1931年", ["化学家", "1931年"]),
        ("", None),
        ("I'm sorry, but I can't help with that.", None),
    ],
)
def test_lists_are_read_or_said_to_be_unreadable(reply, listed):
    assert read_concepts(reply) == listed


async def test_a_model_held_to_a_schema_lists_and_judges_in_json():
    part = Part(
        texts={"": FIRST},
        concepts={FIRST: '{"concepts": ["chemist", "1931"]}'},
        verdicts={
            "chemist": '{"reasoning": "It says so.", "verdict": "True"}',
            "1931": '{"reasoning": "Nothing on it.", "verdict": "NEI"}',
        },
    )
    held = UNHANDED.model_copy(update={"structured_output": True})
    outcome = await ever_run(part, capabilities=held)
    found = {e.text: (e.verdict, detail_of(e).reasoning) for e in judged_of(outcome, "concept")}
    assert found["chemist"] == ("supported", "It says so.")
    assert found["1931"] == ("not_enough", "Nothing on it.")
    (asked,) = asked_of(outcome, "extract")
    assert (asked.json_schema or {})["required"] == ["concepts"]


@pytest.mark.parametrize(
    ("draws", "verdict", "share", "reason"),
    [
        (["False", "True", "False"], "contradicted", 2 / 3, ""),
        (["True", "Well.", "True"], "supported", 2 / 3, ""),
        (["True", "Well.", "Hm."], "unchecked", None, "unreadable"),
        (["True", "False", "Hm."], "unchecked", None, "tie"),
        (["Hm.", "Well.", "So."], "unchecked", None, "unreadable"),
        (["NEI", "True", "False", "NEI", "True"], "unchecked", None, "tie"),
    ],
)
async def test_several_verdicts_are_drawn_and_the_majority_counts(draws, verdict, share, reason):
    part = Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}, verdicts={"chemist": draws})
    outcome = await ever_run(part, samples=len(draws), max_rounds=1)
    concept = judged_of(outcome, "concept")[0]
    assert concept.verdict == verdict
    assert [score.value for score in concept.scores] == ([] if share is None else [share])
    drawn = asked_of(outcome, "verify")
    # Draws carry their number, so that a recorded run can be played again.
    assert sorted(request.sample or 0 for request in drawn) == list(range(len(draws)))
    assert {request.temperature for request in drawn} == {0.3}
    assert detail_of(concept).reason == reason
    assert ("revise" in kinds(outcome)) == (verdict == "contradicted")


CLINTON = Passage(id="a", title="Bill Clinton", text="He was born in Hope.", source="")
HOPPER = Passage(id="b", title="Ships", text="Grace Hopper was born here.", source="")


@pytest.mark.parametrize(
    ("claim", "question", "read"),
    [
        ("Bill Clinton was born in Ulm.", "Where was Bill Clinton born?", [CLINTON]),
        # The claim is about somebody else than the question.
        ("Grace Hopper was born in Ulm.", "Where was Bill Clinton born?", [HOPPER]),
        # Five passages about others are none about her.
        ("Ada Brandt was born in Ulm.", "Where was Ada Brandt born?", []),
        ("The tower stands in Ulm.", "What is known of the tower?", []),
        ("She was born there.", "", [CLINTON, HOPPER]),
    ],
)
def test_a_judge_reads_what_names_whom_the_claim_is_about(
    claim: str, question: str, read: list[Passage]
):
    assert passages_about(claim, [CLINTON, HOPPER], question=question) == tuple(read)


def test_chinese_names_are_looked_for_whole():
    found = Passage(id="c", title="李白", text="号青莲居士。", source="")
    other = found.model_copy(update={"id": "d", "title": "杜甫"})
    claim = "李白的号是青莲居士。"
    assert passages_about(claim, [other, found], question="李白的号是什么？") == (found,)
    assert passages_about(claim, [other, found]) == (found,)
    assert passages_about("爱迪生发明了电话。", [other, found]) == ()


@pytest.mark.parametrize(
    ("claim", "concept", "title", "text", "named"),
    [
        # Beside the concept, the claim is about what else it names.
        ("Marie Curie discovered penicillin.", "Marie Curie", "Penicillin", "A mould.", True),
        ("Marie Curie discovered penicillin.", "penicillin", "Penicillin", "A mould.", False),
        ("Steve Jobs founded Apple.", "Steve Jobs", "Newton", "An apple fell.", False),
        ("Charles Dickens was born in Kent.", "Kent", "Charles Darwin", "Born in Kent.", False),
        ("The Eiffel Tower is high.", "high", "Paris", "Eiffel built it.", True),
        ("Brasilia is a capital.", "capital", "Brasília", "A city.", True),
        ("In 1955 Ada Brandt died.", "1955", "Ada Brandt", "", True),
        ("马欢写了《瀛涯胜览》。", "马欢", "郑和", "费信写了《瀛涯胜览》。", True),
        ("屠呦呦出生于江苏南京。", "江苏", "屠呦呦", "她生于宁波。", True),
        ("屠呦呦出生于江苏南京。", "江苏", "李白", "他生于碎叶。", False),
    ],
)
def test_what_a_claim_is_about_is_what_stands_beside_its_concept(
    claim: str, concept: str, title: str, text: str, named: bool
):
    passage = Passage(id="p", title=title, text=text, source="")
    assert bool(passages_about(claim, [passage], concept=concept)) is named


def test_pieces_of_a_text_without_a_title_belong_together():
    pieces = [
        Passage(id=text, title="", text=text, source="")
        for text in ("Ada Brandt was a chemist.", "She died in Ulm.")
    ]
    assert passages_about("Ada Brandt died in Ulm.", pieces, concept="Ulm") == tuple(pieces)


async def listing(listed: str, *names: str, weak: bool) -> Outcome:
    """EVER in its own way on FIRST, with a model that writes `listed` when asked for concepts."""
    model = EverModel(
        Part(texts={"": FIRST}, concepts={FIRST: listed}), FULL.model_copy(update={"weak": weak})
    )
    return await run_method(
        Ever(),
        QUESTION,
        model,
        shelf=FOUND,
        recognizer=FixedRecognizer(*names),
        wording="model",
        checked_by="main",
    )


@pytest.mark.parametrize("listed", ["None", "{}[", "- Vienna", ""])
async def test_a_weak_model_without_a_usable_list_gets_the_entities(listed: str):
    outcome = await listing(listed, "1931", "Ada Brandt", weak=True)
    (event,) = judged_of(outcome, "concepts")
    assert detail_of(event).listed == "entities"
    # The name that the question gives is no detail to check.
    assert [one.text for one in judged_of(outcome, "concept")] == ["1931"]
    # It is not asked again: another list of a weak model says as little.
    assert len(asked_of(outcome, "extract")) == 1


@pytest.mark.parametrize(
    ("weak", "listed", "names", "expected"),
    [
        (True, "- chemist", ["1931"], "entities"),
        (True, "- chemist\n- 1931", ["1931"], "read"),
        (True, "None", [], "beyond"),
        (False, "None", ["1931"], "entities"),
        (False, "None", [], "none"),
        (False, "{}[", ["1931"], "entities"),
        (False, "{}[", [], "unreadable"),
    ],
)
async def test_what_can_be_seen_is_a_fact_whatever_the_list_says(
    weak: bool, listed: str, names: list[str], expected: str
):
    outcome = await listing(listed, *names, weak=weak)
    (event,) = judged_of(outcome, "concepts")
    assert detail_of(event).listed == expected


@pytest.mark.parametrize(
    ("sentence", "question", "expected"),
    [
        (
            "The lamp is made of a large, smooth piece of marble.",
            "Of what material is the lamp made?",
            "large, smooth piece of marble",
        ),
        (
            "The lamp first burned on the coast.",
            "Where did the lamp first burn?",
            "burned on the coast",
        ),
        # Twelve words are enough.
        ("A b1 c1 d1 e1 f1 g1 h1 i1 j1 k1 l1 m1 n1.", "?", "b1 c1 d1 e1 f1 g1 h1 i1 j1 k1 l1 m1"),
        ("The lamp is made of material.", "Of what material is the lamp made?", ""),
        ("The answer to this question is this.", "Who made the lamp?", ""),
        ("电灯是卡尔发明的。", "谁发明了电灯？", "卡尔"),
        ("卡尔六岁时患了心脏病。", "卡尔六岁时患了什么病？", "心脏病"),
        ("灯在海岸上点亮。", "灯在海岸上点亮了吗？", ""),
    ],
)
def test_what_a_sentence_says_beyond_the_question(sentence: str, question: str, expected: str):
    assert said_beyond(sentence, question) == expected


async def test_it_is_no_fact_in_an_answer_of_yes_or_no():
    sentence = "No, it was dug with great care."
    model = EverModel(
        Part(texts={"": sentence}, concepts={sentence: "None"}),
        FULL.model_copy(update={"weak": True}),
    )
    outcome = await run_method(
        Ever(),
        "Was the tunnel dug by hand?",
        model,
        shelf=FOUND,
        recognizer=FixedRecognizer(),
        wording="model",
        checked_by="main",
    )
    (event,) = judged_of(outcome, "concepts")
    assert detail_of(event).listed == "unreadable"


@pytest.mark.parametrize(
    ("weak", "taught", "demonstrations", "adapted"),
    [
        (True, True, "auto", True),
        (True, False, "auto", False),
        (False, True, "auto", False),
        (False, True, "on", True),
        (True, True, "off", False),
    ],
)
async def test_facts_and_corrections_are_asked_for_with_the_format_adapter(
    weak: bool, taught: bool, demonstrations: str, adapted: bool
):
    steps = ("extract", "revise") if taught else ()
    model = EverModel(
        Part(texts={"": FIRST}, concepts={FIRST: ["1931"]}, verdicts={"1931": "False"}),
        FULL.model_copy(update={"weak": weak, "adapted": steps}),
    )
    outcome = await run_method(
        Ever(),
        QUESTION,
        model,
        shelf=FOUND,
        recognizer=FixedRecognizer(),
        wording="model",
        checked_by="main",
        demonstrations=demonstrations,
    )
    for one in asked_of(outcome):
        assert one.adapted == (adapted and kind_of(one) in ("extract", "revise"))
    assert {"extract", "revise"} <= set(map(kind_of, asked_of(outcome)))
    # The support check has its three demonstrations only where they are switched on.
    checks = [one for one in asked_of(outcome) if kind_of(one) == "verify"]
    turns = 7 if demonstrations == "on" else 1
    assert {len(one.messages) for one in checks} == {turns}


@pytest.mark.parametrize(
    ("fresh", "verdict", "share", "reason"),
    [(1, "unchecked", None, "repeated"), (2, "supported", 1.0, ""), (3, "supported", 1.0, "")],
)
async def test_verdicts_that_a_service_gives_again_are_no_draws(fresh, verdict, share, reason):
    again = Generation(text="Reasoning: As told.\nVerdict: True", repeated=True)
    draws = [*["True"] * fresh, *[again] * (3 - fresh)]
    part = Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}, verdicts={"chemist": draws})
    outcome = await ever_run(part, samples=3, max_rounds=1)
    concept = judged_of(outcome, "concept")[0]
    assert concept.verdict == verdict
    assert [score.value for score in concept.scores] == ([] if share is None else [share])
    assert detail_of(concept).reason == reason


@pytest.mark.parametrize(
    ("concept", "text", "held"),
    [
        ("860万", "人脑约有860亿个神经元。", False),
        ("860亿", "人脑约有860亿个神经元。", True),
        ("860", "人脑约有860亿个神经元。", True),
        ("86 million neurons", "It has about 86 billion neurons.", False),
        ("86 billion neurons", "It has about 86 billion neurons.", True),
        ("8851.8千米", "总长8851.8千米。", True),
        ("in 1921", "She visited it in 1920.", False),
    ],
)
def test_a_number_is_given_with_what_it_is_multiplied_by(concept: str, text: str, held: bool):
    passage = Passage(id="1", title="", text=text, source="test", rank=1)
    assert holds_details(concept, [passage]) is held

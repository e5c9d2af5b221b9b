"""The early stop: writing ends behind the first doubtful entity and its lookahead."""

from __future__ import annotations

from pipelines.base import Generation
from pipelines.methods.drad import Drad
from pipelines.models.base import Delta, GenerationRequest, Watcher
from pipelines.run.events import EntitiesFound
from pipelines.text import Entity
from tests.scripted.bench import FixedRecognizer, PieceModel, pieces, run_method
from tests.scripted.drad import (
    DRAFT,
    EVIDENCE,
    NAMES,
    NOTHING,
    QUESTION,
    THOUGHT,
    again,
    by_prefix,
    entities,
    run,
)


async def test_early_stop_ends_the_writing_after_the_lookahead():
    draft = pieces(DRAFT, York=0.3)
    model = by_prefix(draft, **{"in": " Hope."})
    outcome = await run(model, early_stop=True, m=2)
    # k = 4: writing ends once t_6 is there.
    assert outcome.answer.original == "Clinton was born in York and raised"
    assert outcome.queries == ["born in and raised"]
    assert outcome.answer.text == "Clinton was born in Hope."


async def test_early_stop_without_evidence_writes_the_rest():
    draft = pieces(DRAFT, York=0.3)
    model = by_prefix(draft, **{"raised": " in Florida."})
    outcome = await run(model, shelf=NOTHING, early_stop=True, m=2)
    assert outcome.drafts == [
        "Clinton was born in York and raised",
        "Clinton was born in York and raised in Florida.",
    ]
    assert outcome.answer.flags == ("early_stop", "no_evidence")
    assert again(outcome, early_stop=True, m=2).answer == outcome.answer


CITY = "He was born in New York City and raised in Florida. He won in 1993."
CITY_NAMES = ("New York City", "New York", *NAMES)


class Cities(FixedRecognizer):
    """Finds "New York" while nothing follows it, as a recognizer does that sees no more."""

    def recognize(self, text: str, language: str | None = None) -> list[Entity]:
        found = super().recognize(text, language)
        whole = [e for e in found if e.text == "New York City"]
        inside = [e for e in found if any(w.start <= e.start and e.end <= w.end for w in whole)]
        return [e for e in found if e in whole or e not in inside]


async def test_early_stop_never_judges_part_of_an_entity():
    # P(New York) = (0.3 + 0.3) / 2, but P(New York City) = (0.3 + 0.3 + 1.0 ...) / 3 is enough.
    model = by_prefix(pieces(CITY, New=0.45, York=0.45, City=0.99))
    outcome = await run_method(
        Drad(), QUESTION, model, shelf=EVIDENCE, recognizer=Cities(*CITY_NAMES),
        early_stop=True, m=1,
    )  # fmt: skip
    # (0.45 + 0.45 + 0.99) / 3 = 0.63
    assert outcome.answer.original == CITY
    assert outcome.answer.flags == ()
    assert ("New York", "doubtful") not in entities(outcome, 0)


async def test_an_entity_at_the_end_of_a_text_that_was_cut_is_not_judged():
    text = "Born in York and New York City."
    model = by_prefix(pieces(text, York=0.3, New=0.1), **{"york": " City."})
    outcome = await run_method(
        Drad(), QUESTION, model, shelf=NOTHING, recognizer=Cities(*CITY_NAMES),
        early_stop=True, m=3,
    )  # fmt: skip
    # York and the three tokens after it are there, New York City is not yet.
    assert outcome.drafts == ["Born in York and New York", text]
    assert entities(outcome, 0) == [("York", "doubtful")]
    assert [name for name, _ in entities(outcome, 1)] == ["York", "New York City"]


async def test_an_early_stop_is_told():
    model = by_prefix(pieces(DRAFT, York=0.3), **{"in": " Hope."})
    outcome = await run(model, early_stop=True, m=2)
    assert outcome.answer.flags == ("early_stop",)


class Chunked(PieceModel):
    """Hands its tokens on several at a time, and goes on when it is told to stop."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        (whole,) = await super().generate(request)
        tokens = list(whole.tokens or ())
        for at in range(0, len(tokens), 4):
            part = tokens[at : at + 4]
            if watch:
                text = whole.text[part[0].start : part[-1].end]
                watch(Delta(text=text, tokens=tuple(part)))
        return (whole,)


async def test_where_a_text_stops_does_not_depend_on_how_it_arrives():
    model = by_prefix(pieces(DRAFT, York=0.3), **{"in": " Hope."})
    outcome = await run(Chunked(model._answer), early_stop=True, m=2)
    assert outcome.answer.original == "Clinton was born in York and raised"
    found = again(outcome, early_stop=True, m=2)
    assert (found.diverges_at, found.answer) == (None, outcome.answer)


async def test_what_the_early_stop_looked_at_is_recorded():
    outcome = await run(by_prefix(DRAFT), early_stop=True, m=4)
    texts = [event.text for event in outcome.events if isinstance(event, EntitiesFound)]
    assert texts == [
        "Clinton was born in York",
        "Clinton was born in York and raised in Florida.",
        DRAFT,
    ]


async def test_early_stop_waits_until_the_thinking_is_over():
    draft = [*THOUGHT, *pieces(DRAFT, York=0.3)]
    outcome = await run(by_prefix(draft, **{"in": " Hope."}), early_stop=True, m=2)
    assert outcome.answer.original == "Clinton was born in York and raised"
    assert again(outcome, early_stop=True, m=2).answer == outcome.answer

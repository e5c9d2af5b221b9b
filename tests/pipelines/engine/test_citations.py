"""A text that cites, each sentence by the very source that it cites."""

from __future__ import annotations

from typing import Any

import pytest

from app.cli.check import describe_check
from app.public.contract import check_result
from components.base.words import Catalogue
from components.run.check import check_view
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.check_rows import check_record
from pipelines.engine.checking import CheckedText, TextToCheck, checked_text
from pipelines.methods.together.method import Together
from pipelines.models.base import Claim
from pipelines.models.judges.base import ClaimVerdict
from pipelines.retrieval.documents import TextRetriever
from pipelines.run.events import MethodSpec
from pipelines.run.view import RunView, fold
from tests.scripted.bench import ClaimReader, FixedRecognizer, PieceModel, Shelf, run_method

TOWER = "The Eiffel Tower was completed in 1889."
HEIGHT = "The Eiffel Tower is 330 metres tall."
SOURCES = (TOWER, HEIGHT)


def reader() -> ClaimReader:
    """A judge that finds supported what stands word for word in what it reads."""

    def says(claim: Claim) -> ClaimVerdict:
        read = " ".join(claim.evidence).casefold()
        words = claim.statement.casefold().rstrip(".").split()
        right = all(word in read for word in words)
        return ClaimVerdict(*((0.99, 0.0, 0.01) if right else (0.01, 0.9, 0.09)))

    return ClaimReader(says)


async def run(text: str, sources: tuple[str, ...] = SOURCES) -> tuple[RunView, ClaimReader]:
    asked = RunRequest(
        text=TextToCheck(text=text, sources=sources), methods=[MethodSpec(name="together")]
    )
    spec, judge = plan_run(asked).spec, reader()
    shelf: Any = TextRetriever(spec.evidence.text) if sources else Shelf(lambda _: [TOWER])
    outcome = await run_method(
        Together(),
        spec.question,
        PieceModel(lambda _: []),
        shelf=shelf,
        models={"judge_1": judge},
        given=spec.answer,
        evidence=spec.evidence,
        recognizer=FixedRecognizer(),
    )
    return fold(outcome.trace.events), judge


async def checked(text: str, sources: tuple[str, ...] = SOURCES) -> CheckedText:
    found = checked_text((await run(text, sources))[0])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The Eiffel Tower was completed in 1889 [1].", [("supported", 1, False, 0)]),
        ("The Eiffel Tower was completed in 1889 [2].", [("not_by_source", 2, False, 1)]),
        ("The Eiffel Tower was completed in 1889 [7].", [("source_missing", 0, False, 0)]),
        ("The Eiffel Tower stands in Berlin [1].", [("not_by_source", 1, False, 0)]),
        (
            "The tall Eiffel Tower was completed in 1889 [1][2].",
            [("supported", 1, True, 0), ("supported", 2, True, 0)],
        ),
        (
            "The Eiffel Tower was completed in 1889 [1, 2].",
            [("supported", 1, False, 0), ("not_by_source", 2, False, 0)],
        ),
    ],
)
async def test_a_citation_is_judged_by_its_own_source(text: str, wanted: list[Any]):
    found = await checked(text)
    assert [(c.state, c.source, c.jointly, c.elsewhere) for c in found.citations] == wanted


async def test_without_sources_every_citation_misses_its_source_and_nothing_is_asked():
    view, judge = await run("The Eiffel Tower was completed in 1889 [1].", ())
    found = checked_text(view)
    assert found is not None
    assert [one.state for one in found.citations] == ["source_missing"]
    # The sentence itself, by what was searched for.
    assert len(judge.seen) == 1
    assert found.together is not None
    assert found.together.verdict == "supported"


async def test_the_number_of_a_mark_is_none_of_the_sentence():
    view, judge = await run("The Eiffel Tower is 330 metres tall [2].")
    assert {claim.statement for claim in judge.seen} == {HEIGHT}
    found = checked_text(view)
    assert found is not None
    assert found.sentences[0].together.verdict == "supported"


def test_every_check_of_a_text_that_cites_asks_for_its_citations():
    request = RunRequest(
        text=TextToCheck(text=f"{TOWER[:-1]} [1].", sources=SOURCES),
        methods=[MethodSpec(name="haarag")],
    )
    spec = plan_run(request).spec
    assert [one.name for one in spec.methods] == ["haarag", "together"]
    assert "judge_1" in spec.models
    plain = plan_run(RunRequest(text=TextToCheck(text=TOWER), methods=request.methods)).spec
    assert [one.name for one in plain.methods] == ["haarag"]
    assert plain.answer is not None
    assert "citations" not in plain.answer.model_dump()


@pytest.mark.parametrize(
    ("language", "said"), [("en", "not supported by this source"), ("zh", "所引来源不支持")]
)
async def test_every_front_end_shows_them(language: Any, said: str):
    view, _ = await run("The Eiffel Tower was completed in 1889 [2].")
    found = checked_text(view)
    assert found is not None
    assert said in check_view(view, Catalogue(language))
    assert "1. [2]  not by this source" in describe_check(view, found)
    (record,) = check_record(found)["citations"]
    assert (record["state"], record["source"], record["elsewhere"]) == ("not_by_source", 2, 1)
    (told,) = check_result(found, {}).citations
    assert (told.state, told.title, told.mark) == ("not_by_source", HEIGHT, "[2]")

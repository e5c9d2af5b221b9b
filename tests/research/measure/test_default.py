"""Counts over records made by hand, and the tables that show them."""

from __future__ import annotations

import re

import pytest

from pipelines.evaluation.metrics.reference import Outcome, Reference
from pipelines.run.events import Verdict
from research.measure import default as measures
from research.measure.asking import (
    MethodAnswer,
    Paraphrase,
    Part,
    QuestionRecord,
    ReportConcept,
    ReportQuestion,
)
from research.measure.default import Ratio, report

ASKED = ReportQuestion(
    part="tune", number=2, id="en-002", reference=Reference(question="Where?", answer="Ulm")
)


def attempt(
    outcome: Outcome,
    *,
    original: Outcome = "wrong",
    verdict: Verdict | None = None,
    seconds: float | None = 1.0,
    calls: int = 2,
) -> MethodAnswer:
    return MethodAnswer(
        outcome=outcome,
        original_outcome=original,
        verdict=verdict,
        seconds=seconds,
        calls=calls,
        judge_calls=1,
        prompt_tokens=1000 * calls,
        tokens=10 * calls,
    )


def record(part: Part = "tune", seconds: float = 9.0, **methods: MethodAnswer) -> QuestionRecord:
    asked = ASKED.model_copy(update={"part": part})
    return QuestionRecord(asked=asked, methods=methods, seconds=seconds)


def concept(
    claim: str, sentence: str, verdict: Verdict, *, fallback: bool = False
) -> ReportConcept:
    return ReportConcept(
        text="Ulm", sentence=sentence, question="?", claim=claim, fallback=fallback, verdict=verdict
    )


def test_a_share_shows_its_count():
    assert str(Ratio(3, 8)) == "3 of 8 (38 %)"
    assert str(Ratio(0, 0)) == "0 of 0 (–)"


def test_outcomes_are_counted():
    found = [attempt("right", original="right"), attempt("abstained"), attempt("right")]
    assert measures.outcomes(found) == {
        "right": Ratio(2, 3),
        "wrong": Ratio(0, 3),
        "abstained": Ratio(1, 3),
        "failed": Ratio(0, 3),
    }
    assert measures.originals_right(found) == Ratio(1, 3)


def test_direct_answers_are_mended_and_spoiled():
    records = [
        record(direct=attempt("wrong"), drad=attempt("right")),
        record(direct=attempt("wrong"), drad=attempt("wrong")),
        record(direct=attempt("right"), drad=attempt("right")),
        record(direct=attempt("right"), drad=attempt("abstained")),
        record(direct=attempt("right"), drad=attempt("failed")),
        record(direct=attempt("abstained"), drad=attempt("right")),
    ]
    assert measures.repairs(records, "drad") == (Ratio(1, 2), Ratio(2, 3))


def test_a_verdict_doubts_wrong_and_right_originals():
    found = [
        attempt("right", verdict="doubtful"),
        attempt("right", verdict="contradicted"),
        attempt("right", verdict="confident"),
        attempt("right", verdict=None),
        attempt("right", original="right", verdict="not_enough"),
        attempt("right", original="right", verdict="unchecked"),
        attempt("right", original="abstained", verdict="doubtful"),
    ]
    assert measures.detection(found) == (Ratio(2, 4), Ratio(1, 2))


def test_paraphrases_are_counted_over_all_questions():
    taken, meaning = Paraphrase(text="x?"), Paraphrase(text="y?", discarded="meaning")
    repeated = Paraphrase(text="z?", discarded="repeated")
    records = [
        record().model_copy(update={"paraphrases": (taken,) * 4 + (meaning, repeated)}),
        record().model_copy(update={"paraphrases": (taken,) * 3 + (meaning,)}),
        record(),
    ]
    assert [count for _, count in measures.paraphrasing(records)] == [
        Ratio(7, 10),
        *(2, 1),
        Ratio(1, 3),
    ]


def test_a_claim_that_says_the_sentence_again_is_a_verdict_on_its_only_concept():
    both = "He was born in Ulm in 1879."
    concepts = (
        concept("He was born in Ulm.", both, "supported"),
        concept(both, both, "not_enough", fallback=True).model_copy(update={"text": "1879"}),
        concept("He was born in Ulm", "He was born in Ulm.", "contradicted", fallback=True),
        concept("Einstein was born in Ulm.", "He was born in Ulm.", "supported"),
    )
    found = measures.checking([record().model_copy(update={"concepts": concepts})])
    assert [count for _, count in found[:3]] == [Ratio(2, 4), Ratio(3, 4), Ratio(2, 4)]
    verdicts = {"verdict: supported": 2, "verdict: not_enough": 1, "verdict: contradicted": 1}
    assert dict(found[3:]) == verdicts


def test_seconds_are_those_of_the_last_of_the_methods():
    records = [
        record(direct=attempt("right", seconds=1.0), rag=attempt("right", seconds=3.0)),
        record(direct=attempt("right", seconds=6.0), rag=attempt("right", seconds=5.0)),
        record(direct=attempt("right", seconds=2.0), rag=attempt("failed", seconds=None)),
    ]
    assert measures.until(records, ["direct"]) == (2.0, pytest.approx(5.2), 3)
    assert measures.until(records, ["direct", "rag"]) == (4.5, pytest.approx(5.7), 2)
    assert measures.until([], ["direct"]) is None
    assert measures.duration([9.0, 9.0, 9.0]) == (9.0, 9.0, 3)


def test_costs_are_means():
    found = measures.cost([attempt("right", calls=1), attempt("right", calls=4)])
    assert found == [2.5, 1.0, 2500.0, 25.0]


def test_the_report_has_a_section_for_each_part():
    direct, drad = attempt("wrong"), attempt("right", verdict="doubtful", seconds=4.0)
    records = [
        record("report", direct=direct, drad=drad),
        record("held-out", direct=direct, drad=drad),
        record("held-out", direct=direct, drad=drad),
    ]
    text = report(records, cores=4)
    assert "on 4 cores" in text
    sections = text.split("\n## ")[1:]
    assert [section.splitlines()[0] for section in sections] == [
        "Questions for the report (odd rows): 1",
        "Held-out questions: 2",
    ]
    lines = sections[1].splitlines()
    assert (
        "| DRAD | 2 of 2 (100 %) | 0 of 2 (0 %) | 0 of 2 (0 %) | 0 of 2 (0 %) | 0 of 2 (0 %) |"
        in lines
    )
    assert "| DRAD | 2 of 2 (100 %) | 0 of 0 (–) |" in lines
    assert "| Direct is complete | 1.0 | 1.0 | 2 |" in lines
    assert "| all | 9.0 | 9.0 | 4.0 | 2.0 | 4,000 | 40 |" in lines
    # Rowen and EVER did not run.
    assert "### Rowen's paraphrases" not in text
    assert "### EVER's concepts" not in text


def test_every_row_of_a_table_has_its_cells():
    paraphrases = (Paraphrase(text="x?"), Paraphrase(text="y?", discarded="meaning"))
    one = QuestionRecord(
        asked=ASKED,
        methods=dict.fromkeys(("direct", "rag", "rowen", "drad", "ever"), attempt("right")),
        paraphrases=paraphrases,
        concepts=(concept("It is.", "It is.", "not_enough"),),
    )
    text = report([one], cores=1)
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.count("|") for line in table.splitlines()}) == 1
    assert "| discarded: meaning | 1 |" in text
    assert "| verdict: not_enough | 1 |" in text

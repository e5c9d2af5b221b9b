"""The tables of what detectors find in texts whose errors are known, of a check made by hand."""

from __future__ import annotations

from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import CellFound, CheckedText, DetectorFound, SentenceFound
from pipelines.run.events import MethodSpec, Score, Verdict
from pipelines.samples.walkthroughs import SampleText, measured_texts
from pipelines.text import split_sentences
from research.measure.checks import (
    Calls,
    Count,
    calls_table,
    count,
    detector_table,
    sentence_table,
)
from research.measure.effort import without_question

TEXT = "Ada was born in York. She was a chemist. She died in Bath."
SAMPLE = SampleText(
    id="ada",
    language="en",
    title="Ada",
    about="She was a botanist.",
    wrong=(2,),
    question="",
    text=TEXT,
    sources=(),
)


def cell(verdict: Verdict | None, value: float | None = None) -> CellFound:
    return CellFound(
        verdict=verdict, score=None if value is None else Score(name="p_yes", value=value)
    )


def checked() -> CheckedText:
    found: list[dict[str, CellFound]] = [
        {"ever": cell("supported"), "slm": cell("doubtful", 0.314)},
        {"ever": cell("contradicted"), "slm": cell("doubtful", 0.2)},
        {"ever": cell("not_enough"), "slm": cell(None)},
    ]
    sentences = (
        SentenceFound(number=number, text=one.text, start=one.start, end=one.end, found=cells)
        for number, (one, cells) in enumerate(zip(split_sentences(TEXT), found, strict=True))
    )
    corrected = TEXT.replace("She was a chemist.", "She was a botanist.")
    return CheckedText(
        text=TEXT,
        question="",
        language="en",
        sentences=tuple(sentences),
        detectors=(
            DetectorFound(method="ever", state="done", corrected=corrected),
            DetectorFound(method="slm", state="done", weak=True),
        ),
    )


TEXTS = [(SAMPLE, checked())]


def test_sentences_are_counted_by_what_is_known_of_them():
    assert count("ever", TEXTS) == Count(1, 1, 1, 0)
    assert count("slm", TEXTS) == Count(1, 1, 0, 0)
    assert count("ever", [*TEXTS, *TEXTS]) == Count(2, 2, 2, 0)


def test_the_tables_are_markdown():
    assert detector_table(TEXTS).splitlines()[2:] == [
        "| ever | 1 of 1 | 1 of 2 | 1 of 1 | 0 of 2 |",
        "| slm (weak, not counted) | 1 of 1 | 1 of 2 | 0 of 1 | 0 of 2 |",
    ]
    assert sentence_table(TEXTS).splitlines()[2:] == [
        "| ada | Ada was born in York. | right | supported | doubtful 0.31 |",
        "| ada | She was a chemist. | wrong | contradicted | doubtful 0.20 |",
        "| ada | She died in Bath. | right | not_enough | – |",
    ]
    assert calls_table([*TEXTS, *TEXTS], [Calls(33.8, 26), Calls(10.4, 12)]).splitlines()[2:] == [
        "| ada | 3 | 34 | 26 |",
        "| ada | 3 | 10 | 12 |",
        "| all | 6 | 44 | 38 |",
    ]


def test_the_texts_are_checked_as_on_the_page():
    samples = measured_texts()
    sentences = [split_sentences(one.text) for one in samples]
    assert sum(len(one) for one in sentences) == 27
    assert sum(len(one.wrong) for one in samples) == 9
    for sample, spans in zip(samples, sentences, strict=True):
        assert all(1 <= number <= len(spans) for number in sample.wrong)
    methods = [MethodSpec(name=name) for name in without_question()]
    assert "selfcheck" not in without_question()
    assert plan_run(RunRequest(text=samples[0].given, methods=methods)).spec.answer is not None

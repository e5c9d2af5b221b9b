"""Answers made by hand: entities with their probability, entropy and truth."""

from __future__ import annotations

from pipelines.methods.drad.detection import EntityReading
from research.calibrate.drad import ReadAnswer, SampleQuestion

EVIDENCE = ("Canberra", "Canberra is the capital of Australia since 1913.")
RIGHT, WRONG = "Canberra", "Sydney"


def reading(text: str, probability: float | None, entropy: float | None, **fields) -> EntityReading:
    """An entity of one token; None where the model reported nothing."""
    return EntityReading(
        text=text,
        start=0,
        end=len(text),
        label="GPE",
        first=0,
        stop=1,
        sentence=0,
        sentence_start=0,
        probabilities=() if probability is None else (probability,),
        entropies=() if entropy is None else (entropy,),
        **fields,
    )


def answered(*readings: EntityReading, top_k: int | None = 10) -> ReadAnswer:
    question = SampleQuestion(id="en-000", text="What is it?", evidence=EVIDENCE)
    return ReadAnswer(question=question, readings=readings, top_k=frozenset({top_k}))


def two_halves() -> list[ReadAnswer]:
    """Two even-numbered answers that a threshold of 0.6 parts, two odd-numbered ones it does not.

    Odd: right (0.9, 0.3) and (0.5, 0.7), wrong (0.8, 0.9), (0.2, 0.5) and (0.1, 1.5).
    """
    return [
        answered(reading(RIGHT, 0.9, 0.1), reading(WRONG, 0.4, 2.0)),
        answered(reading(RIGHT, 0.9, 0.3), reading(RIGHT, 0.5, 0.7)),
        answered(
            reading(RIGHT, 0.8, 0.2),
            reading(WRONG, 0.7, 1.0),
            reading("What", 0.1, 2.2, repeats=True),
        ),
        answered(
            reading(WRONG, 0.8, 0.9), reading("Melbourne", 0.2, 0.5), reading("1927", 0.1, 1.5)
        ),
    ]

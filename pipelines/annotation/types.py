"""What is labelled and what a label says: tasks, items, labels, and the settings of a session.

Offsets are half-open [start, end) and count code points of the item's text, as Python does.
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, TypeAdapter, ValidationError, model_validator

from pipelines.base import Frozen, Offset
from pipelines.error_words import PhraseError, problem_at
from pipelines.errors import failure

Task = Literal["concept", "span", "sentence", "comparison", "answer"]
"""What people are asked about an item: whether a concept is true, where a text is hallucinated, how
wrong a sentence is, which of two texts is better, whether an answer is right."""

TASKS: tuple[Task, ...] = ("concept", "span", "sentence", "comparison", "answer")

ErrorKind = Literal["contradiction", "unsupported", "entity", "number", "relation", "other"]
"""What is wrong in a span: it contradicts the evidence, or nothing supports it; a name, a number
or date, or how two things are related is wrong; something else."""

MOST_SPANS = 200
"""Spans in one label."""

MAX_TEXT = 20_000
"""Characters of the text of an item."""

MAX_COMMENT = 5_000
"""Characters of a comment, a reason or a note."""

MAX_GUIDELINES = 100_000
"""Characters of a session's guidelines."""

MAX_CLIENT = 64
"""Characters of the name of a page's request."""


class ConceptLabel(Frozen):
    """Whether the concept is true, by the evidence."""

    task: Literal["concept"] = "concept"
    verdict: Literal["true", "false", "not_enough"]


class LabelSpan(Frozen):
    """A piece of the text that is hallucinated. Spans of one label may overlap."""

    start: Offset
    end: Offset
    kind: ErrorKind = "other"

    @model_validator(mode="after")
    def _has_length(self) -> Self:
        if self.end <= self.start:
            raise PhraseError("label.empty_span")
        return self


class SpanLabel(Frozen):
    """The hallucinated spans of the text, in the order of their starts; none: there are none."""

    task: Literal["span"] = "span"
    spans: Annotated[tuple[LabelSpan, ...], Field(max_length=MOST_SPANS)] = ()

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        ordered = tuple(sorted(set(self.spans), key=lambda one: (one.start, one.end, one.kind)))
        # The same span twice says nothing more.
        object.__setattr__(self, "spans", ordered)
        return self


class SentenceLabel(Frozen):
    """How wrong the sentence is."""

    task: Literal["sentence"] = "sentence"
    verdict: Literal["accurate", "minor", "major"]


class ComparisonLabel(Frozen):
    """Which text is better. The pages name them by their places; what is stored is which it was."""

    task: Literal["comparison"] = "comparison"
    verdict: Literal["original", "corrected", "same"]


class AnswerLabel(Frozen):
    """Whether the answer is right."""

    task: Literal["answer"] = "answer"
    verdict: Literal["correct", "partly", "wrong", "abstained"]


Label = Annotated[
    ConceptLabel | SpanLabel | SentenceLabel | ComparisonLabel | AnswerLabel,
    Field(discriminator="task"),
]
label_adapter: TypeAdapter[Label] = TypeAdapter(Label)
"""Parses and serialises a label; its `task` says which kind it is."""

VERDICTS: dict[Task, tuple[str, ...]] = {
    "concept": ("true", "false", "not_enough"),
    "span": (),
    "sentence": ("accurate", "minor", "major"),
    "comparison": ("original", "corrected", "same"),
    "answer": ("correct", "partly", "wrong", "abstained"),
}
"""The verdicts of each task, in their order; spans have none."""


class Evidence(Frozen):
    """A passage that is shown beside an item."""

    title: str = ""
    text: str
    source: str = ""
    url: str | None = None


class ItemPlace(Frozen):
    """Where an item comes from.

    `run` and `method` are the recorded run and its method, `span` the step that judged it (""
    where there is none), `draft` the method's draft. `evaluation` and `record` name the evaluation
    and the record of its data set, `data` the data set of imported texts.
    """

    run: str = ""
    method: str = ""
    span: str = ""
    draft: int | None = None
    sentence: int | None = None
    evaluation: str = ""
    record: str = ""
    data: str = ""


class ItemBody(Frozen):
    """What an annotator gets of an item: nothing that models said of it.

    [`start`, `end`) is the piece of `text` in question; without one it is the whole text.
    `statement` is the question or the claim that a concept was checked by. `other` is the corrected
    text of a comparison, whose original is `text`.
    """

    task: Task
    question: str = ""
    language: str = ""
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    start: Offset | None = None
    end: Offset | None = None
    statement: str = ""
    other: str = ""
    evidence: tuple[Evidence, ...] = ()
    place: ItemPlace = ItemPlace()
    group: str = ""

    @model_validator(mode="after")
    def _piece_within(self) -> Self:
        if (self.start is None) != (self.end is None):
            raise PhraseError("label.half_a_piece")
        if self.start is not None and self.end is not None:
            if not self.start < self.end <= len(self.text):
                raise PhraseError("label.piece_outside")
        elif self.task in ("concept", "sentence"):
            raise PhraseError("label.no_piece", task=self.task)
        if (self.task == "comparison") != bool(self.other):
            raise PhraseError("label.other_text")
        return self

    @property
    def piece(self) -> str:
        """The text in question."""
        return self.text[self.start : self.end]


class ModelVerdict(Frozen):
    """What a method said of an item.

    `doubt` is its deciding score, turned so that a higher one speaks for a hallucination (see
    `pipelines.evaluation.outcomes`); `score` is that score's name and `value` the number before it
    was turned, None where it had none and the doubt is that of the verdict. `at` is the piece that
    was judged, where that is not the item's own, and `words` are the words in it that its judges do
    not find supported, where they looked at words. `what` is what the verdict is about (`What` in
    `pipelines.run.events`), "" where an imported session does not say it.
    """

    method: str
    verdict: str
    doubt: float | None = None
    score: str = ""
    value: float | None = None
    at: tuple[Offset, Offset] | None = None
    what: Annotated[str, Field(exclude_if=lambda what: not what)] = ""
    words: Annotated[
        tuple[tuple[Offset, Offset], ...], Field(exclude_if=lambda words: not words)
    ] = ()


class Hidden(Frozen):
    """What models said of an item: shown once it is labelled, or as the session says.

    `spans` are pieces of the text that detectors doubt. `judge` is a judge's score in [0, 1] that
    the answer is right, where an evaluation has one.
    """

    verdicts: tuple[ModelVerdict, ...] = ()
    spans: tuple[ModelVerdict, ...] = ()
    judge: float | None = None


class SessionItem(Frozen):
    """An item to put into a session; `probability` in (0, 1] is that with which it was drawn."""

    key: Annotated[str, Field(min_length=1, max_length=64)]
    body: ItemBody
    hidden: Hidden = Hidden()
    gold: Label | None = None
    probability: Annotated[float, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def _gold_fits(self) -> Self:
        if self.gold is not None:
            require_fitting(self.gold, self.body)
        return self


class SessionSpec(Frozen):
    """How a session works, beside its overlap and guidelines, which may change.

    `show` is when annotators see what models said: never, once their label is saved, or before.
    `offer_spans`: detectors' spans are offered for accepting, trimming or dropping; they are then
    seen before labelling. `names` lists who may join, None everybody with the link;
    `most_annotators` how many. One of `gold_every` items is a control item. A label is too fast
    below `too_fast` seconds. `lease` is in seconds. `login`: who joins has to be logged in.
    """

    tasks: Annotated[tuple[Task, ...], Field(min_length=1)] = TASKS
    show: Literal["never", "after", "before"] = "after"
    offer_spans: bool = False
    names: tuple[str, ...] | None = None
    most_annotators: Annotated[int, Field(ge=1, le=1000)] = 100
    gold_every: Annotated[int, Field(ge=2, le=1000)] = 10
    too_fast: Annotated[float, Field(ge=0, le=600)] = 1.5
    lease: Annotated[float, Field(ge=10, le=86_400)] = 300.0
    without_gold: bool = False
    login: bool = False


class Login(NamedTuple):
    """Somebody whom an identity provider knows.

    `identity` names them for good; only its hash is kept. `name` is what the lead sees of them.
    `email` is one that the provider has verified, "" without; it is compared with the names that
    may join, and kept nowhere.
    """

    identity: str
    name: str
    email: str = ""


MOST_OVERLAP = 50
"""People who label one item."""


def require_fitting(label: Label, body: ItemBody) -> None:
    """Raise ValueError unless `label` is one for this item."""
    if label.task != body.task:
        raise PhraseError("label.other_task", wanted=body.task, given=label.task)
    if isinstance(label, SpanLabel) and any(one.end > len(body.text) for one in label.spans):
        raise PhraseError("label.span_outside")


def parse_label(value: object, body: ItemBody) -> Label:
    """Return `value` as a label of this item. Raises InvalidInputError that names what is wrong."""
    try:
        label = label_adapter.validate_python(value)
        require_fitting(label, body)
    except ValidationError as error:
        raise failure("annotation.bad_value", problem=problem_at(error)) from None
    except PhraseError as error:
        raise failure("annotation.bad_value", problem=error.phrase) from None
    return label


def parse_spec(value: object) -> SessionSpec:
    """Return `value` as the settings of a session; raises InvalidInputError."""
    try:
        return SessionSpec.model_validate(value)
    except ValidationError as error:
        raise failure("annotation.bad_session", problem=problem_at(error)) from None


def verdict_of(label: Label) -> str:
    """Return the label as one word, for confusion matrices: for spans whether there are any."""
    if isinstance(label, SpanLabel):
        return "spans" if label.spans else "no_spans"
    return label.verdict


def is_wrong(label: Label) -> bool | None:
    """Return whether people found an error, as the positive class of detectors; None: it cannot
    be said.

    For an answer that is partly right it is True, for an abstention and a comparison None.
    """
    match label:
        case ConceptLabel():
            return None if label.verdict == "not_enough" else label.verdict == "false"
        case SpanLabel():
            return bool(label.spans)
        case SentenceLabel():
            return label.verdict != "accurate"
        case AnswerLabel():
            return None if label.verdict == "abstained" else label.verdict != "correct"
        case ComparisonLabel():
            return None


def require_text(text: str, most: int) -> None:
    """Raise InvalidInputError for a text of more than `most` characters."""
    if len(text) > most:
        raise failure("annotation.too_long", count=len(text), most=most)

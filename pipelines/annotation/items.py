"""Items to label, made of recorded runs, of evaluations, and of labelled data.

The same item has the same key however often it is made, so that a session never holds it twice.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from random import Random
from typing import NamedTuple, get_args

import numpy as np
from pydantic import ValidationError

from pipelines.annotation.agreement import SAMPLING
from pipelines.annotation.types import (
    AnswerLabel,
    Evidence,
    Hidden,
    ItemBody,
    ItemPlace,
    Label,
    LabelSpan,
    ModelVerdict,
    SentenceLabel,
    SessionItem,
    SpanLabel,
    Task,
)
from pipelines.base import Frozen, Passage
from pipelines.error_words import problem_at
from pipelines.errors import failure
from pipelines.evaluation.metrics.answers import Ends, SpanCounts, SpanMatch, count_spans, overlap
from pipelines.evaluation.outcomes import Outcome, SpanVerdict, outcome_of
from pipelines.evaluation.plan import Item, LabelledSpan
from pipelines.evaluation.scoring import piece_of
from pipelines.evaluation.statistics.estimates import Estimate, Sampling, ratio_estimates
from pipelines.methods.replies.parsing import declines
from pipelines.run.calibrated import JUDGED_AS
from pipelines.run.events import Judged, Trace
from pipelines.run.findings import ConceptVerified
from pipelines.run.view import MethodView, UnsupportedWords, fold, passages_found
from pipelines.store.annotations import StoredItem
from pipelines.text import split_sentences

MOST_EVIDENCE = 20
"""Passages that are shown beside an item."""

_DOUBTED = ("contradicted", "doubtful")
_MARKED = ("entity", "concept", "sentence")
_SAME_PIECE = 0.5


def items_of_run(
    trace: Trace, tasks: Collection[Task], *, place: ItemPlace | None = None
) -> list[SessionItem]:
    """Return the items of `tasks` that a recorded run offers, in the order of its methods.

    A text that several methods share, such as the draft that they check, makes one item; what each
    said of it is kept, hidden. Concepts and entities are those that methods judged in it. Without
    an answer there are no items. Raises InvalidInputError for a run whose text is too long.
    """
    with _refusing(f"the run {trace.header.run}"):
        return _items_of_run(trace, tasks, place)


def _items_of_run(
    trace: Trace, tasks: Collection[Task], place: ItemPlace | None
) -> list[SessionItem]:
    view = fold(trace.events)
    spec = trace.header.spec
    base = place or ItemPlace(run=view.run)
    texts: dict[str, _Text] = {}
    comparisons: list[SessionItem] = []
    for method in view.methods.values():
        answer = method.answer
        if answer is None or not answer.original.strip():
            continue
        original = texts.setdefault(answer.original, _Text(answer.original))
        original.add(method, trace)
        if answer.text.strip() and answer.text != answer.original:
            final = texts.setdefault(answer.text, _Text(answer.text))
            final.methods.append(method)
            comparisons.append(
                _made(
                    ItemBody(
                        task="comparison",
                        question=spec.question,
                        language=trace.header.language,
                        text=answer.original,
                        other=answer.text,
                        evidence=_evidence(_passages([method])),
                        place=base.model_copy(update={"method": method.name}),
                        group=view.run,
                    ),
                    Hidden(),
                )
            )
    found: list[SessionItem] = []
    for text in texts.values():
        context = ItemBody(
            task="answer",
            question=spec.question,
            language=trace.header.language,
            text=text.text,
            evidence=_evidence(_passages(text.methods)),
            place=base.model_copy(update={"method": text.methods[0].name}),
            group=view.run,
        )
        found.extend(text.items(context))
    return [one for one in (*found, *comparisons) if one.body.task in tasks]


def items_of_evaluation(
    runs: Iterable[tuple[Trace, str, str, str]], tasks: Collection[Task]
) -> list[SessionItem]:
    """Return the items of an evaluation's answers.

    Each of `runs` is a trace, the id of the evaluation, that of the record of its data set, and the
    name of the system that answered, under which its verdicts are kept.
    """
    found: dict[str, SessionItem] = {}
    for trace, evaluation, record, system in runs:
        place = ItemPlace(run=trace.header.run, evaluation=evaluation, record=record)
        for item in items_of_run(trace, tasks, place=place):
            named = _of_system(item, system)
            earlier = found.get(named.key)
            found[named.key] = named if earlier is None else _merged(earlier, named)
    return list(found.values())


def items_of_data(
    items: Iterable[Item], tasks: Collection[Task], data: str = ""
) -> list[tuple[SessionItem, Label | None]]:
    """Return the items of labelled texts, each with the label that the data set gives it.

    Sentences and spans that were labelled become items; texts with a label as a whole are answers.
    Sentences and spans without a character are left out. Raises InvalidInputError that names the
    record whose text is too long, or that has other impossible values.
    """
    found: list[tuple[SessionItem, Label | None]] = []
    for item in items:
        if not item.text.strip():
            continue
        with _refusing(f"the record {item.id}"):
            base = ItemBody(
                task="answer",
                question=item.question,
                language=item.language or "",
                text=item.text,
                evidence=_evidence(item.passages),
                place=ItemPlace(data=data, record=item.id),
                group=item.group or item.id,
            )
            found.extend(one for one in _labelled(base, item) if one[0].body.task in tasks)
    return found


def items_of_checked_text(
    item: Item,
    runs: Iterable[tuple[Trace, str]],
    tasks: Collection[Task],
    *,
    data: str = "",
    evaluation: str = "",
) -> list[tuple[SessionItem, Label | None]]:
    """Return the items of a text that systems of an evaluation checked, each with the data
    set's label.

    `runs` are the recorded runs, each with the name of its system. What a system said of a sentence
    is what the evaluation's results count for it: its verdict on the sentence, else on what
    overlaps with it, else on the whole text.
    """
    checked = [_Checked.of(trace, system) for trace, system in runs]
    found: list[tuple[SessionItem, Label | None]] = []
    for made, label in items_of_data([item], tasks, data):
        body = made.body
        place = body.place.model_copy(update={"evaluation": evaluation})
        hidden = Hidden(
            verdicts=tuple(said for one in checked if (said := one.said_of(body)) is not None),
            spans=tuple(span for one in checked for span in one.spans)
            if body.task == "span"
            else (),
        )
        body = body.model_copy(update={"place": place})
        found.append((made.model_copy(update={"body": body, "hidden": hidden}), label))
    return found


def drawn(items: Sequence[SessionItem], count: int, seed: int) -> list[SessionItem]:
    """Return `count` of `items` at random, each with its probability of having been drawn.

    Such labels can correct a judge's score over all of `items` (see `annotation.corrected`).
    """
    if count >= len(items):
        return [one.model_copy(update={"probability": 1.0}) for one in items]
    chosen = sorted(Random(seed).sample(range(len(items)), count))
    return [items[at].model_copy(update={"probability": count / len(items)}) for at in chosen]


@contextmanager
def _refusing(source: str) -> Iterator[None]:
    """Say of which source a value is impossible, such as a text that is too long."""
    try:
        yield
    except ValidationError as error:
        problem = problem_at(error)
        raise failure("annotation.bad_source", source=source, problem=problem) from None


class _Said(NamedTuple):
    """What a method, under its name or that of its system, said of a piece of a draft."""

    method: str
    piece: SpanVerdict
    event: Judged
    words: UnsupportedWords

    @property
    def is_doubted(self) -> bool:
        return self.piece.verdict in _DOUBTED and self.piece.what in _MARKED

    @property
    def verdict(self) -> ModelVerdict:
        piece = self.piece
        score = piece.ranks[0] if piece.ranks else self.event.deciding
        return ModelVerdict(
            method=self.method,
            verdict=piece.verdict,
            doubt=piece.doubt,
            score=score.name,
            value=score.value,
            at=(piece.start, piece.end),
            what=piece.what,
        )

    @property
    def doubt(self) -> ModelVerdict:
        """The verdict with the words in the piece that are unsupported."""
        start = self.piece.start
        found = self.words.of(self.event, self.piece.text)
        places = tuple((start + one.start, start + one.end) for one in found)
        return self.verdict.model_copy(update={"words": places})


def _said_by(name: str, method: MethodView, outcome: Outcome) -> list[_Said]:
    """Return what `method` said of the pieces of its drafts, in order."""
    words = UnsupportedWords(method)
    events = [event for event in method.judged if event.what != "answer"]
    pairs = zip(outcome.pieces, events, strict=True)
    return [_Said(name, piece, event, words) for piece, event in pairs]


@dataclass
class _Text:
    """A text that methods wrote or checked, with what they said of it and its pieces."""

    text: str
    methods: list[MethodView] = field(default_factory=list)
    whole: list[ModelVerdict] = field(default_factory=list)
    said: list[_Said] = field(default_factory=list)

    def add(self, method: MethodView, trace: Trace) -> None:
        """Add what `method` said of its original answer."""
        self.methods.append(method)
        outcome = outcome_of(trace, method.name, trace.header.spec.models)
        if outcome is None:
            return
        if (whole := _whole(method.name, method, outcome)) is not None:
            self.whole.append(whole)
        # A piece is one of this text where its offsets and words agree with it.
        self.said += [
            one
            for one in _said_by(method.name, method, outcome)
            if self.text[one.piece.start : one.piece.end] == one.piece.text and one.piece.text
        ]

    def items(self, context: ItemBody) -> Iterator[SessionItem]:
        yield _made(context, Hidden(verdicts=tuple(self.whole)))
        if declines(self.text):
            # Who gives no answer claims nothing that could be rated piece by piece.
            return
        doubted = tuple(one.doubt for one in self.said if one.is_doubted)
        yield _made(
            context.model_copy(update={"task": "span"}),
            Hidden(verdicts=tuple(self.whole), spans=doubted),
        )
        for number, sentence in enumerate(split_sentences(self.text)):
            if declines(sentence.text):
                continue
            yield self._piece(context, "sentence", sentence.start, sentence.end, number)
        for start, end in self._concepts():
            yield self._piece(context, "concept", start, end, None)

    def _concepts(self) -> list[tuple[int, int]]:
        kinds = JUDGED_AS["concept"]
        pieces = (one.piece for one in self.said)
        return sorted({(one.start, one.end) for one in pieces if one.what in kinds})

    def _piece(
        self, context: ItemBody, task: Task, start: int, end: int, sentence: int | None
    ) -> SessionItem:
        kinds = JUDGED_AS["sentence" if task == "sentence" else "concept"]
        matching = [
            one
            for one in self.said
            if one.piece.what in kinds
            and overlap((one.piece.start, one.piece.end), (start, end)) > _SAME_PIECE
        ]
        events = [one.event for one in matching]
        details = [event for event in events if isinstance(event.detail, ConceptVerified)]
        statement, evidence = "", context.evidence
        first = details[0] if details else None
        if task == "concept" and first is not None and isinstance(first.detail, ConceptVerified):
            statement = first.detail.claim or first.detail.question
            known = {one.id: one for one in _passages(self.methods)}
            named = [known[one] for one in first.detail.evidence if one in known]
            evidence = _evidence(named) or evidence
        place = context.place.model_copy(
            update={
                "sentence": sentence,
                "span": first.span if first else "",
                "draft": first.draft if first else None,
                "method": matching[0].method if matching else context.place.method,
            }
        )
        body = context.model_copy(
            update={
                "task": task,
                "start": start,
                "end": end,
                "statement": statement,
                "evidence": evidence,
                "place": place,
            }
        )
        # Of a method that judged a piece more than once, the last word counts.
        said = {one.method: one.verdict for one in matching}
        return _made(body, Hidden(verdicts=tuple(said.values())))


class _Checked(NamedTuple):
    """What one system said of a text that it was given to check."""

    system: str
    whole: ModelVerdict | None
    pieces: list[_Said]

    @classmethod
    def of(cls, trace: Trace, system: str) -> _Checked:
        """Return what is in a run of one method."""
        checked = cls(system, None, [])
        for method in fold(trace.events).methods.values():
            outcome = outcome_of(trace, method.name, trace.header.spec.models)
            if outcome is None:
                continue
            said = _said_by(system, method, outcome)
            checked = cls(system, _whole(system, method, outcome), said)
        return checked

    @property
    def spans(self) -> list[ModelVerdict]:
        """The pieces that it doubts."""
        return [one.doubt for one in self.pieces if one.piece.draft == 0 and one.is_doubted]

    def said_of(self, body: ItemBody) -> ModelVerdict | None:
        """Return its verdict on what is in question."""
        if body.task != "sentence" or body.start is None or body.end is None:
            return self.whole
        sentence = LabelledSpan(start=body.start, end=body.end, label="accurate")
        chosen = piece_of(sentence, (one.piece for one in self.pieces))
        for one in self.pieces:
            if one.piece is chosen:
                return one.verdict
        return self.whole


def _whole(name: str, method: MethodView, outcome: Outcome) -> ModelVerdict | None:
    """Return what `method` said of its original answer as a whole, under a name."""
    if outcome.verdict is None:
        return None
    last = [event for event in method.judged if event.what == "answer"][-1]
    score = outcome.ranks[0] if outcome.ranks else last.deciding
    return ModelVerdict(
        method=name,
        verdict=outcome.verdict,
        doubt=outcome.doubt,
        score=score.name,
        value=score.value,
        what="answer",
    )


def _labelled(base: ItemBody, item: Item) -> Iterator[tuple[SessionItem, Label | None]]:
    for number, sentence in enumerate(item.sentences):
        if sentence.start >= sentence.end:
            continue
        place = base.place.model_copy(update={"sentence": number})
        body = base.model_copy(
            update={
                "task": "sentence",
                "start": sentence.start,
                "end": sentence.end,
                "place": place,
            }
        )
        yield _made(body, Hidden()), SentenceLabel(verdict=sentence.label)
    # A text that was labelled and has no span is free of errors.
    if item.spans or (item.hallucinated is False and not item.sentences):
        spans = tuple(_label_span(one) for one in item.spans if one.start < one.end)
        body = base.model_copy(update={"task": "span"})
        yield _made(body, Hidden()), SpanLabel(spans=spans)
    if item.hallucinated is not None:
        verdict = "wrong" if item.hallucinated else "correct"
        yield _made(base, Hidden()), AnswerLabel(verdict=verdict)
    if item.hallucinated is None and not item.sentences and not item.spans:
        for task in ("answer", "span"):
            yield _made(base.model_copy(update={"task": task}), Hidden()), None
        for number, span in enumerate(split_sentences(base.text)):
            place = base.place.model_copy(update={"sentence": number})
            told = {"task": "sentence", "start": span.start, "end": span.end, "place": place}
            yield _made(base.model_copy(update=told), Hidden()), None


def _label_span(span: LabelledSpan) -> LabelSpan:
    # Data sets have kinds of their own; RAGTruth's begin with these two words.
    said = span.kind.lower()
    if "conflict" in said or "contradict" in said:
        return LabelSpan(start=span.start, end=span.end, kind="contradiction")
    kind = "unsupported" if "baseless" in said or "unsupported" in said else "other"
    return LabelSpan(start=span.start, end=span.end, kind=kind)


def _passages(methods: Iterable[MethodView]) -> list[Passage]:
    return [passage for passage, _ in passages_found(methods)]


def _evidence(passages: Iterable[Passage]) -> tuple[Evidence, ...]:
    found = [
        Evidence(title=one.title, text=one.text, source=one.source, url=one.url)
        for one in passages
        if one.text.strip()
    ]
    return tuple(found[:MOST_EVIDENCE])


def _made(body: ItemBody, hidden: Hidden) -> SessionItem:
    """Return the item, checked, with the key of what is asked about which text."""
    body = ItemBody.model_validate(body.model_dump())
    asked = [body.task, body.question, body.text, body.start, body.end, body.other]
    where = [body.place.data, body.place.record, body.place.run if not body.place.record else ""]
    said = json.dumps([*asked, *where], ensure_ascii=True)
    return SessionItem(key=sha256(said.encode()).hexdigest()[:32], body=body, hidden=hidden)


def _of_system(item: SessionItem, system: str) -> SessionItem:
    """Return the item with its verdicts under the name of the system, which an evaluation knows."""
    hidden = item.hidden.model_copy(
        update={
            name: tuple(
                one.model_copy(update={"method": system}) for one in getattr(item.hidden, name)
            )
            for name in ("verdicts", "spans")
        }
    )
    return item.model_copy(update={"hidden": hidden})


def _merged(one: SessionItem, other: SessionItem) -> SessionItem:
    hidden = Hidden(
        verdicts=(*one.hidden.verdicts, *other.hidden.verdicts),
        spans=(*one.hidden.spans, *other.hidden.spans),
        judge=one.hidden.judge if one.hidden.judge is not None else other.hidden.judge,
    )
    return one.model_copy(update={"hidden": hidden})


# Whether detectors doubt the pieces of a text that people marked as hallucinated.

MATCHES: tuple[SpanMatch, ...] = get_args(SpanMatch)


class LocatedSpans(Frozen):
    """The pieces that a detector doubts against people's final spans, on `texts` texts.

    `f1` in [0, 1] by exact spans, by an intersection of at least half of the union, and by
    characters; `precision` and `recall` are by characters. All are of counts that were summed over
    texts, with intervals of the bootstrap over groups of texts.
    """

    method: str
    texts: int
    f1: dict[SpanMatch, Estimate]
    precision: Estimate
    recall: Estimate


def located_spans(
    items: Iterable[StoredItem], labels: Mapping[int, Label], sampling: Sampling = SAMPLING
) -> list[LocatedSpans]:
    """Return every detector that judged one of the texts; on a text that it judged it may doubt
    nothing.

    `labels` are final labels by item. Control items do not count. Detectors that doubt no piece of
    any text are left out: they judge texts as a whole.
    """
    counts: dict[str, list[tuple[dict[SpanMatch, SpanCounts], str]]] = {}
    locating: set[str] = set()
    for item in items:
        label = labels.get(item.number)
        if item.gold is not None or not isinstance(label, SpanLabel):
            continue
        hidden = Hidden.model_validate(item.hidden)
        marked = [(one.start, one.end) for one in label.spans]
        group = str(item.body.get("group") or item.number)
        for method in dict.fromkeys(one.method for one in (*hidden.verdicts, *hidden.spans)):
            doubted: list[Ends] = [
                one.at for one in hidden.spans if one.method == method and one.at is not None
            ]
            if doubted:
                locating.add(method)
            found: dict[SpanMatch, SpanCounts] = {
                match: count_spans(doubted, marked, match) for match in MATCHES
            }
            counts.setdefault(method, []).append((found, group))
    return [_located(method, own, sampling) for method, own in counts.items() if method in locating]


def _located(
    method: str, counts: list[tuple[dict[SpanMatch, SpanCounts], str]], sampling: Sampling
) -> LocatedSpans:
    groups = [group for _, group in counts]
    found = {
        match: np.array([one[match] for one, _ in counts], dtype=np.float64).T for match in MATCHES
    }
    hits, predicted, labelled = found["characters"]
    above = np.stack([*(2 * found[match][0] for match in MATCHES), hits, hits])
    below = np.stack(
        [*(found[match][1] + found[match][2] for match in MATCHES), predicted, labelled]
    )
    estimates = ratio_estimates(above, below, groups, sampling, proportions=False)
    return LocatedSpans(
        method=method,
        texts=len(counts),
        f1=dict(zip(MATCHES, estimates[: len(MATCHES)], strict=True)),
        precision=estimates[-2],
        recall=estimates[-1],
    )

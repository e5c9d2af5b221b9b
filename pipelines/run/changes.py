"""What changed between two runs: what was asked, what it ran on, and what came out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from pipelines.base import Passage
from pipelines.models.providers import ModelSpec
from pipelines.prompts import Wording, own_prompts
from pipelines.retrieval.documents import passage_key
from pipelines.run.events import EvidenceSpec, RunSpec, Score, Verdict
from pipelines.run.view import MethodView, RunView


class RunPair(NamedTuple):
    """Something in both runs, by name; None where a run does not have it."""

    name: str
    before: Any
    after: Any

    @property
    def changed(self) -> bool:
        """Whether the two differ."""
        return self.before != self.after


class ScorePair(NamedTuple):
    """A number behind the verdicts on the answers; None where a run does not have it."""

    name: str
    before: Score | None
    after: Score | None

    @property
    def difference(self) -> float | None:
        """The later value minus the earlier one; None where one of them is not known."""
        values = [one.value if one is not None else None for one in (self.before, self.after)]
        before, after = values
        return None if before is None or after is None else after - before


class MethodChanges(NamedTuple):
    """A method in both runs, or in one: then the other side is None.

    `settings` are those that differ; `verdicts` the last ones on the answer; `scores` their
    numbers; `passages` those that only one run found, first the earlier run's.
    """

    name: str
    before: MethodView | None
    after: MethodView | None
    settings: tuple[RunPair, ...]
    verdicts: tuple[Verdict | None, Verdict | None]
    scores: tuple[ScorePair, ...]
    passages: tuple[tuple[Passage, ...], tuple[Passage, ...]]

    @property
    def answers(self) -> tuple[str | None, str | None]:
        """What each run answered in the end."""
        return _answer(self.before), _answer(self.after)

    @property
    def changed(self) -> bool:
        """Whether answer, verdict or a number differ, or only one run has the method."""
        moved = any(pair.difference != 0 for pair in self.scores)
        return (
            self.before is None
            or self.after is None
            or len(set(self.answers)) > 1
            or len(set(self.verdicts)) > 1
            or moved
        )


class RunChanges(NamedTuple):
    """Two runs, the earlier one first. `facts`, `versions` and `prompts` are those that differ.

    `facts` are named "question", "language", "evidence", "seed", "reproducible", "profile",
    "calibrations" and "answer" (a given one); `models` are named by their role. `wording` holds the
    prompts whose texts differ, by file, language and prompt, with both texts; None is the shipped
    text.
    """

    facts: tuple[RunPair, ...]
    models: tuple[RunPair, ...]
    versions: tuple[RunPair, ...]
    prompts: tuple[RunPair, ...]
    wording: tuple[tuple[tuple[str, str, str], str | None, str | None], ...]
    methods: tuple[MethodChanges, ...]

    @property
    def same_question(self) -> bool:
        """Whether both runs were asked the same."""
        return all(pair.name != "question" for pair in self.facts)

    @property
    def same_conditions(self) -> bool:
        """Whether the runs had everything in common before they began."""
        settings = any(method.settings for method in self.methods)
        others = (self.facts, self.models, self.versions, self.prompts, self.wording)
        return not (any(others) or settings)


def in_order(first: RunView, second: RunView) -> tuple[RunView, RunView]:
    """Return the two runs, the one that began earlier first."""
    if first.header and second.header and second.header.created < first.header.created:
        return second, first
    return first, second


def changes(before: RunView, after: RunView) -> RunChanges:
    """Return what differs between two runs. Raises ValueError for one without its header."""
    if before.header is None or after.header is None:
        raise ValueError("Only runs that have begun can be compared.")
    old, new = before.header, after.header
    facts: dict[str, Callable[[RunSpec], object]] = {
        "question": lambda spec: spec.question,
        "evidence": lambda spec: spec.evidence,
        "seed": lambda spec: spec.seed,
        "reproducible": lambda spec: spec.reproducible,
        "profile": lambda spec: spec.profile,
        "calibrations": lambda spec: spec.calibrations,
        "answer": lambda spec: spec.answer.text if spec.answer else None,
    }
    pairs = [RunPair(name, read(old.spec), read(new.spec)) for name, read in facts.items()]
    pairs.insert(1, RunPair("language", old.language, new.language))
    names = [one.name for header in (old, new) for one in header.spec.methods]
    return RunChanges(
        facts=tuple(pair for pair in pairs if pair.changed),
        models=_differing(old.spec.models, new.spec.models),
        versions=_differing(old.versions, new.versions),
        prompts=_differing(old.prompts, new.prompts),
        wording=_wording(old.spec.prompts, new.spec.prompts),
        methods=tuple(
            _method(name, before.methods.get(name), after.methods.get(name))
            for name in dict.fromkeys(names)
        ),
    )


def _wording(
    before: Wording, after: Wording
) -> tuple[tuple[tuple[str, str, str], str | None, str | None], ...]:
    """Return every prompt whose text is not the same in both, with the two texts."""
    sides = [own_prompts(one) for one in (before, after)]
    places = dict.fromkeys([*sides[0], *sides[1]])
    texts = ((place, *(side.get(place) for side in sides)) for place in places)
    return tuple((place, old, new) for place, old, new in texts if old != new)


def model_words(model: ModelSpec | None) -> str:
    """Return what tells a model from others: name, id, address and revision, as one text."""
    if model is None:
        return ""
    parts = (model.name, model.model, model.base_url, model.revision)
    return " · ".join(filter(None, dict.fromkeys(parts)))


def evidence_words(evidence: EvidenceSpec) -> str:
    """Return where passages came from, and how they were searched where it is a library."""
    searched = evidence.mode if evidence.source in ("library", "qdrant") else None
    parts = (evidence.source, evidence.name, searched, evidence.base_url)
    return " · ".join(filter(None, dict.fromkeys(parts)))


def _method(name: str, before: MethodView | None, after: MethodView | None) -> MethodChanges:
    settings: tuple[RunPair, ...] = ()
    if before is not None and after is not None:
        settings = _differing(before.settings, after.settings)
    return MethodChanges(
        name=name,
        before=before,
        after=after,
        settings=settings,
        verdicts=(_verdict(before), _verdict(after)),
        scores=_scores(before, after),
        passages=(_only(before, after), _only(after, before)),
    )


def _differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[RunPair, ...]:
    pairs = (
        RunPair(name, before.get(name), after.get(name))
        for name in dict.fromkeys([*before, *after])
    )
    return tuple(pair for pair in pairs if pair.changed)


def _verdict(method: MethodView | None) -> Verdict | None:
    judged = method.judged if method else ()
    return next((event.verdict for event in reversed(judged) if event.what == "answer"), None)


def _scores(before: MethodView | None, after: MethodView | None) -> tuple[ScorePair, ...]:
    sides = [_last_scores(before), _last_scores(after)]
    names = dict.fromkeys(name for side in sides for name in side)
    return tuple(ScorePair(name, *(side.get(name) for side in sides)) for name in names)


def _last_scores(method: MethodView | None) -> dict[str, Score]:
    found = [event for event in method.judged if event.what == "answer"] if method else []
    return {score.name: score for score in found[-1].scores} if found else {}


def _only(method: MethodView | None, other: MethodView | None) -> tuple[Passage, ...]:
    """Return what a method found in one run that it did not find in the other, each once."""
    known = {passage_key(passage) for passage in _passages(other)}
    mine = {passage_key(passage): passage for passage in _passages(method)}
    return tuple(passage for key, passage in mine.items() if key not in known)


def _passages(method: MethodView | None) -> Iterable[Passage]:
    searches = method.searches if method else ()
    return (passage for search in searches for passage in search.passages)


def _answer(method: MethodView | None) -> str | None:
    if method is None:
        return None
    if method.answer is not None:
        return method.answer.text
    return method.drafts[-1].after if method.drafts else None
